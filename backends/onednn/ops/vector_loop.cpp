// SPDX-License-Identifier: Apache-2.0
#include "ops/vector_loop.hpp"

#include <backplane/kit/plan.hpp>
#include <bit>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace backplane::onednn {
namespace {

using namespace kit;

// A tile of elements passes through buffers, along a row and, where an operand lies across, with as many rows beside each other as `kAcrossBytes`
// hold: what the processor fetches from a page is used at once. Of single rows a tile has `kColumns`.
constexpr int64_t kColumns = 512;
constexpr int64_t kAcrossBytes = 256;
constexpr int64_t kTileBytes = 32 << 10;
constexpr int64_t kShortRow = 1024;  // bytes
constexpr int64_t kPadBytes = 64;    // of a row: rows a power of two apart would share a few places in the cache

// Asks for what is read soon and lies where the processor does not look by itself.
void fetch(const std::byte* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(from + i);
}

// Outputs that exceed this are written past the caches: they would not stay there.
constexpr int64_t kStreamed = 32 << 20;

template <class Word>
void pack_words(const std::byte* from, int64_t stride, Word* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = *reinterpret_cast<const Word*>(from + i * stride);
}
template <class Word>
void unpack_words(const Word* from, std::byte* to, int64_t stride, int64_t count) {
  for (int64_t i = 0; i < count; ++i) *reinterpret_cast<Word*>(to + i * stride) = from[i];
}
// Calls f with a pointer to words of as many bytes.
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

void end_stream() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

// How the rows of one execution are walked.
template <std::size_t N>
struct Walk {
  using Strides = std::array<int64_t, N>;
  using Pointers = std::array<std::byte*, N>;

  Row row;
  Strides bytes;   // of an element of each operand
  Strides across;  // from a row to the one beside it
  int64_t lines;   // rows that are taken together
  bool streams;
  bool copies;  // the row moves bytes only
  const TileMoves& moves = tile_moves();

  // `count` elements of `lines_here` rows beside each other.
  void tile(Pointers at, const Strides& strides, int64_t count, int64_t lines_here) const {
    if (strides == bytes && !streams) {
      for (int64_t l = 0; l < lines_here; ++l) {
        const void* in[N - 1];
        for (std::size_t k = 1; k < N; ++k) in[k - 1] = at[k] + l * across[k];
        row(in, at[0] + l * across[0], count);
      }
      return;
    }
    if (strides == bytes && copies) {
      for (int64_t l = 0; l < lines_here; ++l)
        moves.stream(at[1] + l * across[1], at[0] + l * across[0], count * bytes[0]);
      return;
    }
    alignas(64) std::byte buffers[N][kTileBytes + kAcrossBytes * kPadBytes];
    const int64_t columns = std::min(kColumns, kTileBytes / (lines * *std::max_element(bytes.begin(), bytes.end())));
    for (int64_t i = 0; i < count; i += columns) {
      const int64_t length = std::min(columns, count - i);
      for (std::size_t k = 1; k < N; ++k) {
        if (i != 0 && strides[k] == 0) continue;  // the same value again
        load(k, at[k] + i * strides[k], strides[k], buffers[k], columns, i == 0 && strides[k] == 0 ? columns : length,
             lines_here);
      }
      for (int64_t l = 0; l < lines_here; ++l) {
        const void* in[N - 1];
        for (std::size_t k = 1; k < N; ++k) {
          if (l + 2 < lines_here && strides[k] == bytes[k])
            fetch(at[k] + i * strides[k] + (l + 2) * across[k], length * bytes[k]);
          in[k - 1] = strides[k] == bytes[k] ? at[k] + i * strides[k] + l * across[k]
                                             : buffers[k] + l * pitch_of(k, columns) * bytes[k];
        }
        std::byte* to = at[0] + i * strides[0] + l * across[0];
        if (strides[0] == bytes[0] && !streams) {
          row(in, to, length);
          continue;
        }
        const bool moved = copies && strides[0] == bytes[0];
        if (!moved) row(in, buffers[0], length);
        if (strides[0] == bytes[0]) {
          moves.stream(moved ? static_cast<const std::byte*>(in[0]) : buffers[0], to, length * bytes[0]);
        } else {
          with_words(bytes[0], static_cast<const std::byte*>(buffers[0]),
                     [&](auto* words) { unpack_words(words, to, strides[0], length); });
        }
      }
    }
  }

  // Of the rows in operand k's buffer, in elements.
  int64_t pitch_of(std::size_t k, int64_t columns) const { return columns + kPadBytes / bytes[k]; }

  // Packs operand k's part of a tile, unless it is packed already.
  void load(std::size_t k, const std::byte* from, int64_t stride, std::byte* to, int64_t columns, int64_t length,
            int64_t lines_here) const {
    if (stride == bytes[k]) return;
    const int64_t pitch = pitch_of(k, columns);
    const bool transposed = across[k] == bytes[k] && lines_here > 1;
    if (transposed) {
      const int word = std::countr_zero(static_cast<uint64_t>(bytes[k]));
      return moves.transpose[word](from, stride, to, pitch, length, lines_here);
    }
    with_words(bytes[k], to, [&](auto* words) {
      for (int64_t l = 0; l < lines_here; ++l) pack_words(from + l * across[k], stride, words + l * pitch, length);
    });
  }
};

// The dimension along which an input lies packed that is not packed along rows; the nest's rank if there is none.
template <std::size_t N>
uint32_t packed_across(const LoopNest<N>& nest, const std::array<int64_t, N>& bytes) {
  const uint32_t inner = nest.rank() - 1;
  for (std::size_t k = 1; k < N; ++k) {
    if (nest.strides(inner)[k] == bytes[k] || nest.strides(inner)[k] == 0) continue;
    for (uint32_t d = 0; d < inner; ++d) {
      if (nest.strides(d)[k] == bytes[k]) return d;
    }
  }
  return nest.rank();
}

template <std::size_t N>
void walk(const LoopNest<N>& nest, Walk<N> each) {
  const uint32_t d = packed_across(nest, each.bytes);
  if (d == nest.rank()) {
    each.lines = 1;
    // Short rows are each the start of something new.
    const bool is_short = nest.rank() > 1 && nest.inner_count() * each.bytes[0] <= kShortRow;
    nest.rows([&](const auto& at, const auto& strides, int64_t count) {
      for (std::size_t k = 1; k < N && is_short; ++k) {
        const int64_t next = nest.strides(nest.rank() - 2)[k];
        if (strides[k] == each.bytes[k] && next != 0) fetch(at[k] + 4 * next, count * each.bytes[k]);
      }
      each.tile(at, strides, count, 1);
    });
  } else {
    each.lines = kAcrossBytes / *std::max_element(each.bytes.begin(), each.bytes.end());
    each.across = nest.strides(d);
    for (int64_t begin = 0; begin < nest.extent(d); begin += each.lines) {
      const int64_t lines = std::min(each.lines, nest.extent(d) - begin);
      nest.cut(d, begin, begin + 1).rows([&](const auto& at, const auto& strides, int64_t count) {
        each.tile(at, strides, count, lines);
      });
    }
  }
  if (each.streams) end_stream();
}

template <std::size_t N, std::size_t... I>
LoopNest<N> nest_of(const Call& call, std::index_sequence<I...>) {
  return LoopNest<N>({&call.out(), &call.in(I)...});
}

}  // namespace

template <std::size_t N>
void run_rows(const Call& call) {
  const auto& kernel = call.prepared<RowKernel>();
  std::array<int64_t, N> bytes;
  bytes[0] = static_cast<int64_t>(dtype_bytes(call.out().dtype));
  for (uint32_t k = 1; k < N; ++k) bytes[k] = static_cast<int64_t>(dtype_bytes(call.in(k - 1).dtype));
  const LoopNest<N> nest = nest_of<N>(call, std::make_index_sequence<N - 1>());
  const int64_t elements = nest.elements();
  const bool in_place =
      std::any_of(call.inputs.begin(), call.inputs.end(), [&](const View& in) { return in.data == call.out().data; });
  const Walk<N> each{.row = kernel.row,
                     .bytes = bytes,
                     .across = {},
                     .lines = 1,
                     .streams = elements * bytes[0] >= kStreamed && !in_place,
                     .copies = call.op->id == BP_OP_COPY};
  parallel(elements, kernel.grain, [&](int part, int parts) noexcept {
    if (parts == 1) return walk(nest, each);
    constexpr int64_t kLine = 64;  // elements: threads do not write to one cache line
    const uint32_t d = nest.longest();
    const Range range = range_of(nest.extent(d), part, parts, nest.extent(d) >= kLine * parts ? kLine : 1);
    if (range.begin < range.end) walk(nest.cut(d, range.begin, range.end), each);
  });
}
void run_packed(const RowKernel& kernel, const std::byte* from, const View& to) {
  const int64_t elements = to.elements(), bytes = static_cast<int64_t>(dtype_bytes(to.dtype));
  const int64_t from_bytes = from == to.data ? bytes : static_cast<int64_t>(sizeof(float));
  parallel(elements, kernel.grain, [&](int part, int parts) noexcept {
    const Range range = range_of(elements, part, parts, 64);
    const void* in[] = {from + range.begin * from_bytes};
    kernel.row(in, to.data + range.begin * bytes, range.end - range.begin);
  });
}

template void run_rows<2>(const Call&);
template void run_rows<3>(const Call&);
template void run_rows<4>(const Call&);

namespace {

// Many copies of the value are streamed where there are many, and stored otherwise.
template <class Word>
void fill(const Call& call) {
  const LoopNest<1> nest({&call.out()});
  const Word value = call.scalar<Word>(0);
  const int64_t elements = nest.elements(), size = sizeof(Word);
  const bool streams = elements * size >= kStreamed;
  parallel(elements, kCheap, [&](int part, int parts) noexcept {
    constexpr int64_t kCount = 512;
    alignas(64) Word values[kCount];
    std::fill_n(values, kCount, value);
    const uint32_t d = nest.longest();
    const Range range = range_of(nest.extent(d), part, parts, nest.extent(d) >= 64 * parts ? 64 : 1);
    if (range.begin == range.end) return;
    nest.cut(d, range.begin, range.end).rows([&](const auto& at, const auto& strides, int64_t count) {
      if (strides[0] != size) {
        for (int64_t i = 0; i < count; ++i) *reinterpret_cast<Word*>(at[0] + i * strides[0]) = value;
        return;
      }
      if (!streams) return void(std::fill_n(reinterpret_cast<Word*>(at[0]), count, value));
      for (int64_t i = 0; i < count; i += kCount) {
        tile_moves().stream(reinterpret_cast<const std::byte*>(values), at[0] + i * size,
                            std::min(kCount, count - i) * size);
      }
    });
    if (streams) end_stream();
  });
}

std::shared_ptr<const void> state_of(Row row, int64_t grain) {
  return row == nullptr ? nullptr : std::make_shared<RowKernel>(RowKernel{row, grain});
}

void replace(Kernels& kernels, uint32_t op, KernelDtypes dtypes, Kernel run, Row row, int64_t grain) {
  if (row == nullptr) return;
  KernelSpec spec = *kernels.find(op, dtypes);
  spec.run = run;
  spec.state = state_of(row, grain);
  kernels.add(op, dtypes.first, dtypes.second, spec);
}

template <int kBytes>
void copy_row(const void* const* in, void* out, int64_t count) {
  std::memmove(out, in[0], static_cast<std::size_t>(count * kBytes));  // the two are one where it is in place
}
Row copy_row_of(uint64_t bytes) {
  switch (bytes) {
    case 1:
      return copy_row<1>;
    case 2:
      return copy_row<2>;
    case 4:
      return copy_row<4>;
    default:
      return copy_row<8>;
  }
}

constexpr uint32_t kDtypes[] = {BP_BOOL, BP_U8, BP_I8, BP_I32, BP_U32, BP_I64, BP_F16, BP_BF16, BP_F32, BP_F64};

// The approximation is an attribute, so the row is chosen when the plan is made.
Status prepare_gelu(const CheckedDesc& checked, Prepared& prepared) {
  const bool tanh_form = checked.attributes.as<bp_gelu_attributes>().approximation == BP_GELU_TANH;
  const uint32_t dtype = checked.dtypes.first;
  prepared.any_size = true;
  prepared.state =
      state_of(activation_row(tanh_form ? BP_ACTIVATION_GELU_TANH : BP_ACTIVATION_GELU_ERF, dtype, dtype), kDear);
  return {};
}

// The predicate is an attribute, so the row is chosen when the plan is made.
Status prepare_compare(const CheckedDesc& checked, Prepared& prepared) {
  const uint32_t predicate = checked.attributes.as<bp_compare_attributes>().predicate;
  prepared.any_size = true;
  prepared.state = state_of(compare_row(predicate, checked.dtypes.first), kCheap);
  if (prepared.state != nullptr) prepared.run = run_rows<3>;
  return {};
}

}  // namespace

void add_rows(Kernels& kernels) {
  for (const uint32_t dtype : kDtypes) {
    for (uint32_t op = BP_OP_NEG; op <= BP_OP_BITNOT; ++op) {
      const bool dear = op >= BP_OP_EXP && op <= BP_OP_ERF;
      replace(kernels, op, {dtype, dtype}, run_rows<2>, unary_row(op, dtype), dear ? kDear : kCheap);
    }
    for (uint32_t op = BP_OP_ADD; op <= BP_OP_SHR; ++op) {
      replace(kernels, op, {dtype, dtype}, run_rows<3>, binary_row(op, dtype), kCheap);
    }
    for (const uint32_t to : kDtypes) {
      replace(kernels, BP_OP_CAST, {dtype, to}, run_rows<2>, cast_row(dtype, to), kCheap);
    }
    replace(kernels, BP_OP_SELECT, {dtype, dtype}, run_rows<4>, select_row(static_cast<uint32_t>(dtype_bytes(dtype))),
            kCheap);
    replace(kernels, BP_OP_COPY, {dtype, dtype}, run_rows<2>, copy_row_of(dtype_bytes(dtype)), kCheap);
    with_words(static_cast<int64_t>(dtype_bytes(dtype)), static_cast<std::byte*>(nullptr),
               [&]<class Word>(Word*) { kernels.add(BP_OP_FILL, dtype, fill<Word>); });
    KernelSpec compare = *kernels.find(BP_OP_COMPARE, {dtype, dtype});
    compare.prepare = prepare_compare;
    kernels.add(BP_OP_COMPARE, dtype, dtype, compare);
  }
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    const Row silu = activation_row(BP_ACTIVATION_SILU, dtype, dtype);
    if (silu == nullptr) continue;
    kernels.add(BP_OP_GELU, dtype, {.run = run_rows<2>, .prepare = prepare_gelu});
    kernels.add(BP_OP_SILU, dtype, {.run = run_rows<2>, .state = state_of(silu, kDear)});
    const Row sigmoid = activation_row(BP_ACTIVATION_SIGMOID, dtype, dtype);
    kernels.add(BP_OP_SIGMOID, dtype, {.run = run_rows<2>, .state = state_of(sigmoid, kDear)});
  }
}

}  // namespace backplane::onednn
