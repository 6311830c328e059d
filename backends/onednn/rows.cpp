// SPDX-License-Identifier: Apache-2.0
#include "rows.hpp"

#include <backplane/kit/plan.hpp>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace backplane::onednn {
namespace {

using namespace kit;

// A tile of elements passes through buffers: `kColumns` along a row and up to `kLines` rows beside each other. The buffers of all operands fit
// the second-level cache, and a line of memory that holds elements of many rows is read once.
constexpr int64_t kColumns = 512;
constexpr int64_t kLines = 32;
constexpr int64_t kTileBytes = 32 << 10;

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
// Rows whose elements lie beside those of the next row.
template <class Word>
void transpose_words(const std::byte* from, int64_t stride, Word* to, int64_t columns, int64_t lines, int64_t pitch) {
  for (int64_t i = 0; i < columns; ++i) {
    const auto* line = reinterpret_cast<const Word*>(from + i * stride);
    for (int64_t l = 0; l < lines; ++l) to[l * pitch + i] = line[l];
  }
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

void stream_out(const std::byte* from, std::byte* to, int64_t bytes) {
#if defined(__SSE2__)
  constexpr int64_t kWord = sizeof(__m128i);
  const int64_t head = std::min<int64_t>(bytes, -reinterpret_cast<intptr_t>(to) & (kWord - 1));
  std::memcpy(to, from, static_cast<std::size_t>(head));
  int64_t i = head;
  for (; i + kWord <= bytes; i += kWord) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
  }
  std::memcpy(to + i, from + i, static_cast<std::size_t>(bytes - i));
#else
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
#endif
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
    alignas(64) std::byte buffers[N][kTileBytes];
    const int64_t columns = std::min(kColumns, kTileBytes / (lines * *std::max_element(bytes.begin(), bytes.end())));
    for (int64_t i = 0; i < count; i += columns) {
      const int64_t length = std::min(columns, count - i);
      for (std::size_t k = 1; k < N; ++k)
        load(k, at[k] + i * strides[k], strides[k], buffers[k], columns, length, lines_here);
      for (int64_t l = 0; l < lines_here; ++l) {
        const void* in[N - 1];
        for (std::size_t k = 1; k < N; ++k) {
          in[k - 1] =
              strides[k] == bytes[k] ? at[k] + i * strides[k] + l * across[k] : buffers[k] + l * columns * bytes[k];
        }
        std::byte* to = at[0] + i * strides[0] + l * across[0];
        if (strides[0] == bytes[0] && !streams) {
          row(in, to, length);
          continue;
        }
        row(in, buffers[0], length);
        if (strides[0] == bytes[0]) {
          stream_out(buffers[0], to, length * bytes[0]);
        } else {
          with_words(bytes[0], static_cast<const std::byte*>(buffers[0]),
                     [&](auto* words) { unpack_words(words, to, strides[0], length); });
        }
      }
    }
  }

  // Packs operand k's part of a tile, unless it is packed already.
  void load(std::size_t k, const std::byte* from, int64_t stride, std::byte* to, int64_t columns, int64_t length,
            int64_t lines_here) const {
    if (stride == bytes[k]) return;
    with_words(bytes[k], to, [&](auto* words) {
      if (across[k] == bytes[k] && lines_here > 1)
        return transpose_words(from, stride, words, length, lines_here, columns);
      for (int64_t l = 0; l < lines_here; ++l) pack_words(from + l * across[k], stride, words + l * columns, length);
    });
  }
};

// The dimension along which an input lies packed that is not packed along rows; the nest's rank if there is none.
template <std::size_t N>
uint32_t packed_across(const Nest<N>& nest, const std::array<int64_t, N>& bytes) {
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
void walk(const Nest<N>& nest, Walk<N> each) {
  const uint32_t d = packed_across(nest, each.bytes);
  if (d == nest.rank()) {
    each.lines = 1;
    nest.rows([&](const auto& at, const auto& strides, int64_t count) { each.tile(at, strides, count, 1); });
  } else {
    each.lines = kLines;
    each.across = nest.strides(d);
    for (int64_t begin = 0; begin < nest.extent(d); begin += kLines) {
      const int64_t lines = std::min(kLines, nest.extent(d) - begin);
      nest.cut(d, begin, begin + 1).rows([&](const auto& at, const auto& strides, int64_t count) {
        each.tile(at, strides, count, lines);
      });
    }
  }
  if (each.streams) end_stream();
}

template <std::size_t N, std::size_t... I>
Nest<N> nest_of(const Call& call, std::index_sequence<I...>) {
  return Nest<N>({&call.out(), &call.in(I)...});
}

}  // namespace

template <std::size_t N>
void run_rows(const Call& call) {
  const auto& kernel = call.prepared<RowKernel>();
  std::array<int64_t, N> bytes;
  bytes[0] = static_cast<int64_t>(dtype_bytes(call.out().dtype));
  for (uint32_t k = 1; k < N; ++k) bytes[k] = static_cast<int64_t>(dtype_bytes(call.in(k - 1).dtype));
  const Nest<N> nest = nest_of<N>(call, std::make_index_sequence<N - 1>());
  const int64_t elements = nest.elements();
  const bool in_place =
      std::any_of(call.inputs.begin(), call.inputs.end(), [&](const View& in) { return in.data == call.out().data; });
  const Walk<N> each{kernel.row, bytes, {}, 1, elements * bytes[0] >= kStreamed && !in_place};
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
  const Nest<1> nest({&call.out()});
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
        stream_out(reinterpret_cast<const std::byte*>(values), at[0] + i * size, std::min(kCount, count - i) * size);
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
