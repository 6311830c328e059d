// SPDX-License-Identifier: Apache-2.0
#include "ops/vector_loop.hpp"

#include <algorithm>
#include <backplane/kit/loops.hpp>
#include <backplane/kit/plan.hpp>
#include <bit>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "runtime/threads.hpp"
#include "simd/memory_moves.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

// Operands that are not contiguous are copied to buffers tile by tile. Normally, a tile has up to kChunk
// elements of one row. If an input is contiguous across rows, a tile has kAlongBytes bytes of each of several
// adjacent rows. The number of rows is kMaxLines or, for elements of 1 or 2 bytes, the number of elements of a
// cache line. Of the shapes that were measured, these were the fastest.
constexpr int64_t kChunk = 512;
constexpr int64_t kAlongBytes = 512;
constexpr int64_t kLineBytes = 64;
constexpr int64_t kMaxLines = 64;
constexpr int64_t kTileBytes = kMaxLines * kAlongBytes;
constexpr int64_t kShortRow = 1024;  // maximum size, in bytes, of rows that are prefetched
// Bytes of padding after each row in a buffer. The padding puts rows into different cache sets.
constexpr int64_t kPadBytes = 64;

// Prefetches memory that the hardware prefetcher does not predict.
void prefetch(const std::byte* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(from + i);
}

template <class Word>
void gather_words(const std::byte* from, int64_t stride, Word* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = *reinterpret_cast<const Word*>(from + i * stride);
}
// Writes `value` to `count` words. Writes whole blocks of kPadBytes bytes, so it may exceed these words by less
// than one block.
template <class Word>
void fill_words(Word value, Word* to, int64_t count) {
  constexpr auto kBlock = static_cast<int64_t>(kPadBytes / sizeof(Word));
  Word block[kBlock];
  std::fill_n(block, kBlock, value);
  for (int64_t i = 0; i < count; i += kBlock) std::memcpy(to + i, block, sizeof(block));
}
template <class Word>
void scatter_words(const Word* from, std::byte* to, int64_t stride, int64_t count) {
  for (int64_t i = 0; i < count; ++i) *reinterpret_cast<Word*>(to + i * stride) = from[i];
}
// Calls f with `at`, cast to a pointer to words of `bytes` bytes.
template <class Byte, class F>
void with_words(int64_t bytes, Byte* at, const F& f) {
  const auto cast = [&]<class Word>(Word) {
    f(reinterpret_cast<std::conditional_t<std::is_const_v<Byte>, const Word, Word>*>(at));
  };
  switch (bytes) {
    case 1:
      return cast(uint8_t{});
    case 2:
      return cast(uint16_t{});
    case 4:
      return cast(uint32_t{});
    default:
      return cast(uint64_t{});
  }
}

// The kernel and operands of one execution, and the tiling of the operands' rows.
template <std::size_t N>
struct Tiling {
  using Strides = std::array<int64_t, N>;
  using Pointers = std::array<std::byte*, N>;

  VectorKernel kernel;
  Strides bytes;   // size of an element of each operand
  Strides across;  // distance in bytes between rows of a tile, for each operand
  int64_t lines;   // rows per tile
  bool streams;    // whether the output is written with non-temporal stores
  bool copies;     // whether the kernel only moves bytes
  const MemoryMoves& moves = memory_moves();

  // Processes `count` elements of each of `line_count` adjacent rows.
  void tile(Pointers at, const Strides& strides, int64_t count, int64_t line_count) const {
    if (strides == bytes && !streams) {
      for (int64_t l = 0; l < line_count; ++l) {
        const void* in[N - 1];
        for (std::size_t k = 1; k < N; ++k) in[k - 1] = at[k] + l * across[k];
        kernel(in, at[0] + l * across[0], count);
      }
      return;
    }
    if (strides == bytes && copies) {
      for (int64_t l = 0; l < line_count; ++l)
        moves.stream(at[1] + l * across[1], at[0] + l * across[0], count * bytes[0]);
      return;
    }
    alignas(64) std::byte buffers[N][kTileBytes + kMaxLines * kPadBytes];
    const int64_t columns = lines == 1 ? kChunk : kAlongBytes / widest();
    for (int64_t i = 0; i < count; i += columns) {
      const int64_t length = std::min(columns, count - i);
      for (std::size_t k = 1; k < N; ++k) {
        if (i != 0 && strides[k] == 0) continue;  // the buffer already contains a broadcast value
        load(k, at[k] + i * strides[k], strides[k], buffers[k], columns, i == 0 && strides[k] == 0 ? columns : length,
             line_count);
      }
      for (int64_t l = 0; l < line_count; ++l) {
        const void* in[N - 1];
        for (std::size_t k = 1; k < N; ++k) {
          if (l + 2 < line_count && strides[k] == bytes[k])
            prefetch(at[k] + i * strides[k] + (l + 2) * across[k], length * bytes[k]);
          in[k - 1] = strides[k] == bytes[k] ? at[k] + i * strides[k] + l * across[k]
                                             : buffers[k] + l * pitch_of(k, columns) * bytes[k];
        }
        std::byte* to = at[0] + i * strides[0] + l * across[0];
        if (strides[0] == bytes[0] && !streams) {
          kernel(in, to, length);
          continue;
        }
        const bool moved = copies && strides[0] == bytes[0];
        if (!moved) kernel(in, buffers[0], length);
        if (strides[0] == bytes[0]) {
          moves.stream(moved ? static_cast<const std::byte*>(in[0]) : buffers[0], to, length * bytes[0]);
        } else {
          with_words(bytes[0], static_cast<const std::byte*>(buffers[0]),
                     [&](auto* words) { scatter_words(words, to, strides[0], length); });
        }
      }
    }
  }

  // Transposes a plane from the input to the output without a buffer. Requires that the kernel only copies,
  // that the input is contiguous across rows and the output along rows, and that words have at least 2 bytes.
  // Returns false if it did nothing.
  bool transpose_plane(const Pointers& at, const Strides& strides, int64_t count, int64_t line_count) const {
    if (!copies || across[1] != bytes[1] || strides[0] != bytes[0] || bytes[0] < 2) return false;
    const int word = std::countr_zero(static_cast<uint64_t>(bytes[0]));
    const int64_t pitch = across[0] / bytes[0];
    if (streams) return moves.stream_transposed[word](at[1], strides[1], at[0], pitch, count, line_count);
    moves.transpose_squares[word](at[1], strides[1], at[0], pitch, count, line_count);
    return true;
  }

  int64_t widest() const { return *std::max_element(bytes.begin(), bytes.end()); }

  // Returns the distance between rows in the buffer of operand k, in elements.
  int64_t pitch_of(std::size_t k, int64_t columns) const { return columns + kPadBytes / bytes[k]; }

  // Copies the elements of operand k in a tile to contiguous rows of the buffer `to`. Does nothing if the
  // operand's rows are already contiguous.
  void load(std::size_t k, const std::byte* from, int64_t stride, std::byte* to, int64_t columns, int64_t length,
            int64_t line_count) const {
    if (stride == bytes[k]) return;
    const int64_t pitch = pitch_of(k, columns);
    const bool transposed = across[k] == bytes[k] && line_count > 1;
    if (transposed) {
      const int word = std::countr_zero(static_cast<uint64_t>(bytes[k]));
      return moves.transpose[word](from, stride, to, pitch, length, line_count);
    }
    with_words(bytes[k], to, [&]<class Word>(Word* words) {
      for (int64_t l = 0; l < line_count; ++l) {
        const std::byte* const line = from + l * across[k];
        if (stride == 0) {
          fill_words(*reinterpret_cast<const Word*>(line), words + l * pitch, length);
        } else {
          gather_words(line, stride, words + l * pitch, length);
        }
      }
    });
  }
};

// Searches for an input that is contiguous across rows but not along rows. Returns the dimension along which
// this input is contiguous, or nest.rank() if there is no such input.
template <std::size_t N>
uint32_t contiguous_across(const LoopNest<N>& nest, const std::array<int64_t, N>& bytes) {
  const uint32_t inner = nest.rank() - 1;
  for (std::size_t k = 1; k < N; ++k) {
    if (nest.strides(inner)[k] == bytes[k] || nest.strides(inner)[k] == 0) continue;
    for (uint32_t d = 0; d < inner; ++d) {
      if (nest.strides(d)[k] == bytes[k]) return d;
    }
  }
  return nest.rank();
}

// Runs a nest in which an input is contiguous along dimension d, plane by plane. A plane spans dimension d and
// the innermost dimension. For a copy, consecutive tiles follow each other along d, so that they read adjacent
// cache lines. For other kernels, consecutive tiles follow each other along the innermost dimension, along
// which the other operands are contiguous.
template <std::size_t N>
void run_transposed(const LoopNest<N>& nest, Tiling<N> each, uint32_t d) {
  const uint32_t inner = nest.rank() - 1;
  const int64_t width = each.widest(), columns = kAlongBytes / width;
  each.lines = width <= 2 ? kLineBytes / width : kMaxLines;
  each.across = nest.strides(d);
  nest.cut(d, 0, 1).cut(inner, 0, 1).rows([&](const auto& plane, const auto& strides, int64_t) {
    if (each.transpose_plane(plane, strides, nest.extent(inner), nest.extent(d))) return;
    const auto tile = [&](int64_t i, int64_t l) {
      auto at = plane;
      for (std::size_t k = 0; k < N; ++k) at[k] += i * strides[k] + l * each.across[k];
      each.tile(at, strides, std::min(columns, nest.extent(inner) - i), std::min(each.lines, nest.extent(d) - l));
    };
    if (each.copies) {
      for (int64_t i = 0; i < nest.extent(inner); i += columns) {
        for (int64_t l = 0; l < nest.extent(d); l += each.lines) tile(i, l);
      }
    } else {
      for (int64_t l = 0; l < nest.extent(d); l += each.lines) {
        for (int64_t i = 0; i < nest.extent(inner); i += columns) tile(i, l);
      }
    }
  });
}

// Searches for a dimension d, other than the two innermost ones, along which the rows of an input are adjacent
// in memory. Returns nest.rank() if there is no such dimension, or if rows are longer than kShortRow bytes.
template <std::size_t N>
uint32_t continues_along(const LoopNest<N>& nest, const std::array<int64_t, N>& bytes) {
  const uint32_t inner = nest.rank() - 1;
  for (uint32_t d = 0; d + 1 < inner && nest.inner_count() * bytes[0] <= kShortRow; ++d) {
    for (std::size_t k = 1; k < N; ++k) {
      if (nest.strides(inner)[k] == bytes[k] && nest.strides(d)[k] == nest.inner_count() * bytes[k]) return d;
    }
  }
  return nest.rank();
}

// Runs a nest with short rows, in which the rows of an input are adjacent along dimension d. Processes a group
// of adjacent rows of the output for each index of d. Both the input and the output then have long contiguous
// parts.
template <std::size_t N>
void run_short_rows(const LoopNest<N>& nest, const Tiling<N>& each, uint32_t d) {
  const uint32_t inner = nest.rank() - 1, next = inner - 1;
  const int64_t group = std::max<int64_t>(kShortRow / (nest.inner_count() * each.bytes[0]), 1);
  nest.cut(d, 0, 1).cut(next, 0, 1).rows([&](const auto& plane, const auto& strides, int64_t count) {
    for (int64_t begin = 0; begin < nest.extent(next); begin += group) {
      const int64_t end = std::min(begin + group, nest.extent(next));
      for (int64_t l = 0; l < nest.extent(d); ++l) {
        for (int64_t r = begin; r < end; ++r) {
          auto at = plane;
          for (std::size_t k = 0; k < N; ++k) at[k] += r * nest.strides(next)[k] + l * nest.strides(d)[k];
          each.tile(at, strides, count, 1);
        }
      }
    }
  });
}

// Copies short contiguous rows of operands that stay in the second-level cache. Returns false if the kernel
// does more than copy, if rows are long or not contiguous, or if the operands are large.
template <std::size_t N>
bool copy_short_rows(const LoopNest<N>& nest, const Tiling<N>& each) {
  constexpr int64_t kCachedBytes = int64_t{1} << 19;
  const int64_t row = nest.inner_count() * each.bytes[0];
  if (!each.copies || nest.rank() == 1 || nest.inner_strides() != each.bytes || row > kShortRow ||
      nest.elements() * each.bytes[0] > kCachedBytes) {
    return false;
  }
  const uint32_t next = nest.rank() - 2;
  const auto& step = nest.strides(next);
  nest.cut(next, 0, 1).rows([&](const auto& at, const auto&, int64_t) {
    each.moves.rows(at[1], step[1], at[0], step[0], row, nest.extent(next));
  });
  return true;
}

template <std::size_t N>
void run_tiles(const LoopNest<N>& nest, Tiling<N> each) {
  if (copy_short_rows(nest, each)) return;
  const uint32_t d = contiguous_across(nest, each.bytes);
  const uint32_t continued = continues_along(nest, each.bytes);
  if (d == nest.rank() && continued != nest.rank()) {
    each.lines = 1;
    run_short_rows(nest, each, continued);
  } else if (d == nest.rank()) {
    each.lines = 1;
    // Prefetches short rows, because they end before the hardware prefetcher has detected their stride.
    const bool is_short = nest.rank() > 1 && nest.inner_count() * each.bytes[0] <= kShortRow;
    nest.rows([&](const auto& at, const auto& strides, int64_t count) {
      for (std::size_t k = 1; k < N && is_short; ++k) {
        const int64_t next = nest.strides(nest.rank() - 2)[k];
        if (strides[k] == each.bytes[k] && next != 0) prefetch(at[k] + 4 * next, count * each.bytes[k]);
      }
      each.tile(at, strides, count, 1);
    });
  } else {
    run_transposed(nest, each, d);
  }
  if (each.streams) fence_stores();
}

// The views of one execution: the output, then the inputs.
template <std::size_t N>
using Operands = std::array<const View*, N>;

template <std::size_t N, std::size_t... I>
Operands<N> operands_of(const Call& call, std::index_sequence<I...>) {
  return {&call.out(), &call.in(I)...};
}

template <std::size_t N>
void run_operands(const VectorPlan& plan, const Operands<N>& views, bool copies) {
  std::array<int64_t, N> bytes;
  for (std::size_t k = 0; k < N; ++k) bytes[k] = static_cast<int64_t>(dtype_bytes(views[k]->dtype));
  const LoopNest<N> nest(views);
  const int64_t elements = nest.elements();
  if (elements == 0) return;
  const bool in_place =
      std::any_of(views.begin() + 1, views.end(), [&](const View* in) { return in->data == views[0]->data; });
  const Tiling<N> each{.kernel = plan.kernel,
                       .bytes = bytes,
                       .across = {},
                       .lines = 1,
                       .streams = plan.grain == kCheapGrain && elements * bytes[0] >= kStreamedBytes && !in_place,
                       .copies = copies};
  parallel(elements, plan.grain, [&](int part, int parts) noexcept {
    if (parts == 1) return run_tiles(nest, each);
    // The threads' ranges of a long dimension begin at multiples of 64 elements. These fill whole cache lines
    // with any dtype, so threads share no cache line. In a short dimension, threads may share cache lines.
    const uint32_t d = nest.longest();
    const Range range = range_of(nest.extent(d), part, parts, nest.extent(d) >= kLineBytes * parts ? kLineBytes : 1);
    if (range.begin < range.end) run_tiles(nest.cut(d, range.begin, range.end), each);
  });
}

}  // namespace

void fence_stores() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

std::shared_ptr<const void> vector_plan(VectorKernel kernel, int64_t grain) {
  return kernel == nullptr ? nullptr : std::make_shared<VectorPlan>(VectorPlan{kernel, grain});
}

void replace_kernel(Kernels& kernels, uint32_t op, KernelDtypes dtypes, Kernel run, VectorKernel kernel,
                    int64_t grain) {
  if (kernel == nullptr) return;
  KernelSpec spec = *kernels.find(op, dtypes);
  spec.run = run;
  spec.state = vector_plan(kernel, grain);
  kernels.add(op, dtypes.first, dtypes.second, spec);
}

template <std::size_t N>
void run_vectorised(const Call& call) {
  run_operands<N>(call.prepared<VectorPlan>(), operands_of<N>(call, std::make_index_sequence<N - 1>()),
                  call.op->id == BP_OP_COPY);
}

template <std::size_t N>
void run_views(const VectorPlan& plan, const std::array<View, N>& views) {
  Operands<N> operands;
  std::transform(views.begin(), views.end(), operands.begin(), [](const View& view) { return &view; });
  run_operands<N>(plan, operands, false);
}

void run_contiguous(const VectorPlan& plan, const std::byte* from, const View& to) {
  const int64_t elements = to.elements(), bytes = static_cast<int64_t>(dtype_bytes(to.dtype));
  const int64_t from_bytes = from == to.data ? bytes : static_cast<int64_t>(sizeof(float));
  parallel(elements, plan.grain, [&](int part, int parts) noexcept {
    const Range range = range_of(elements, part, parts, 64);
    const void* in[] = {from + range.begin * from_bytes};
    plan.kernel(in, to.data + range.begin * bytes, range.end - range.begin);
  });
}

template void run_vectorised<2>(const Call&);
template void run_vectorised<3>(const Call&);
template void run_vectorised<4>(const Call&);
template void run_views<3>(const VectorPlan&, const std::array<View, 3>&);
template void run_views<4>(const VectorPlan&, const std::array<View, 4>&);

}  // namespace backplane::onednn
