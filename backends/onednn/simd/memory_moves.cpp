// SPDX-License-Identifier: Apache-2.0
// Transposes in registers and non-temporal copies of whole cache lines.
#include <hwy/cache_control.h>

#include <cmath>

#include "simd/memory_moves.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/memory_moves.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR
// The tag of a vector as wide as a cache line, or of the target's largest vector if that is smaller. A block
// has 16 bytes. With scalable vectors, the vector is one block, because the code needs the number of blocks at
// compile time.
template <class Word>
using Line = hn::CappedTag<Word, (HWY_HAVE_SCALABLE ? 16 : 64) / sizeof(Word)>;
// The tag of a vector of one block.
template <class Word>
using Block = hn::CappedTag<Word, 16 / sizeof(Word)>;

// The tag of the vectors that a transpose to a buffer reads from columns. For words of 1 and 2 bytes, a vector
// is a cache line, so each line is read at once. Read in parts, a line could be evicted before it is read
// completely: columns at a distance of 4 KiB or more share few ways of the first-level cache. For larger words,
// a transpose reads at most 4 columns at once, which do not conflict.
template <class Word>
using Wide = std::conditional_t<sizeof(Word) <= 2, Line<Word>, Block<Word>>;

// low_pairs and high_pairs interleave the words of the lower or upper half of each block of two vectors. Two
// interleaved words become one word of twice the size.
template <class D, class V>
HWY_INLINE auto low_pairs(D d, V a, V b) {
  return hn::BitCast(hn::RepartitionToWide<D>(), hn::InterleaveLower(d, a, b));
}
template <class D, class V>
HWY_INLINE auto high_pairs(D d, V a, V b) {
  return hn::BitCast(hn::RepartitionToWide<D>(), hn::InterleaveUpper(d, a, b));
}

// Stores block i of `v` at to + i * step.
template <class D, class V>
HWY_INLINE void store_blocks(D d, V v, hn::TFromD<D>* to, int64_t step) {
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) <= 16) {
    hn::StoreU(v, d, to);
  } else {
    const hn::Half<D> half;
    constexpr auto kBlocks = static_cast<int64_t>(hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) / 32);
    store_blocks(half, hn::LowerHalf(half, v), to, step);
    store_blocks(half, hn::UpperHalf(half, v), to + kBlocks * step, step);
  }
}

// Transposes, in each block, the kCount words of kCount vectors. `out(i, v)` receives vector i of the result. A
// recursive call has half as many vectors and words, because a word of this call is a pair of words of its
// caller.
template <int kCount, class D, class V, class Out>
HWY_INLINE void transpose_blocks(D d, const V (&lines)[kCount], const Out& out) {
  if constexpr (kCount == 2) {
    out(0, hn::InterleaveLower(d, lines[0], lines[1]));
    out(1, hn::InterleaveUpper(d, lines[0], lines[1]));
  } else {
    using Pair = decltype(low_pairs(d, lines[0], lines[0]));
    constexpr int kHalf = kCount / 2;
    Pair low[kHalf], high[kHalf];
    for (int i = 0; i < kHalf; ++i) {
      low[i] = low_pairs(d, lines[2 * i], lines[2 * i + 1]);
      high[i] = high_pairs(d, lines[2 * i], lines[2 * i + 1]);
    }
    const hn::RepartitionToWide<D> pairs;
    transpose_blocks<kHalf>(pairs, low, out);
    transpose_blocks<kHalf>(pairs, high, [&](int i, auto v) HWY_ATTR { out(kHalf + i, v); });
  }
}

// Transposes 16 / sizeof(Word) columns. Reads one vector of D from each column.
template <class D>
HWY_INLINE void transpose_part(D d, const std::byte* from, int64_t stride, hn::TFromD<D>* to, int64_t pitch) {
  using Word = hn::TFromD<D>;
  constexpr int kSide = 16 / sizeof(Word);
  hn::Vec<D> columns[kSide];
  for (int i = 0; i < kSide; ++i) columns[i] = hn::LoadU(d, reinterpret_cast<const Word*>(from + i * stride));
  transpose_blocks<kSide>(
      d, columns, [&](int i, auto v) HWY_ATTR { store_blocks(d, hn::BitCast(d, v), to + i * pitch, kSide * pitch); });
}

// The number of blocks of a vector.
template <class D>
inline constexpr int kBlocks = hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) / 16;

// Transposes the blocks of kBlocks vectors: exchanges block b of vector g with block g of vector b.
template <class D, class V>
HWY_INLINE void exchange_blocks(D d, V (&v)[kBlocks<D>]) {
  if constexpr (kBlocks<D> == 2) {
    const V low = hn::ConcatLowerLower(d, v[1], v[0]);
    v[1] = hn::ConcatUpperUpper(d, v[1], v[0]);
    v[0] = low;
  } else if constexpr (kBlocks<D> == 4) {
    const V low02 = hn::ConcatLowerLower(d, v[2], v[0]), low13 = hn::ConcatLowerLower(d, v[3], v[1]);
    const V high02 = hn::ConcatUpperUpper(d, v[2], v[0]), high13 = hn::ConcatUpperUpper(d, v[3], v[1]);
    v[0] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(low13), low02);
    v[1] = hn::OddEvenBlocks(low13, hn::SwapAdjacentBlocks(low02));
    v[2] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(high13), high02);
    v[3] = hn::OddEvenBlocks(high13, hn::SwapAdjacentBlocks(high02));
  }
}

// Transposes a square of words whose side is one vector of D. For words of 2 bytes, the square does not fit
// into the registers, so the compiler keeps a part of it on the stack.
template <bool kStream, class D>
HWY_INLINE void transpose_square(D d, const std::byte* from, int64_t stride, hn::TFromD<D>* to, int64_t pitch) {
  using Word = hn::TFromD<D>;
  constexpr int kSide = 16 / sizeof(Word);
  hn::Vec<D> groups[kSide][kBlocks<D>];
  for (int g = 0; g < kBlocks<D>; ++g) {
    hn::Vec<D> columns[kSide];
    for (int i = 0; i < kSide; ++i)
      columns[i] = hn::LoadU(d, reinterpret_cast<const Word*>(from + (g * kSide + i) * stride));
    transpose_blocks<kSide>(d, columns, [&](int i, auto v) HWY_ATTR { groups[i][g] = hn::BitCast(d, v); });
  }
  for (int i = 0; i < kSide; ++i) {
    exchange_blocks(d, groups[i]);
    for (int b = 0; b < kBlocks<D>; ++b) {
      Word* const line = to + (b * kSide + i) * pitch;
      kStream ? hn::Stream(groups[i][b], d, line) : hn::StoreU(groups[i][b], d, line);
    }
  }
}

template <class Word>
void transpose(const std::byte* from, int64_t stride, std::byte* out, int64_t pitch, int64_t columns, int64_t lines) {
  constexpr int64_t kSide = 16 / sizeof(Word), kLine = 64;
  const Wide<Word> wide;
  const Block<Word> block;
  const auto width = static_cast<int64_t>(hn::Lanes(wide));
  auto* to = reinterpret_cast<Word*>(out);
  const auto one = [&](int64_t column, int64_t line) {
    to[line * pitch + column] = reinterpret_cast<const Word*>(from + column * stride)[line];
  };
  int64_t i = 0;
  for (; i + kSide <= columns; i += kSide) {
    // Prefetches the columns of the iteration after the next one. Each column may be on another page, and the
    // hardware prefetcher does not cross page boundaries.
    for (int64_t ahead = i + 2 * kSide; ahead < i + 3 * kSide && ahead < columns; ++ahead) {
      for (int64_t byte = 0; byte < lines * static_cast<int64_t>(sizeof(Word)); byte += kLine)
        hwy::Prefetch(from + ahead * stride + byte);
    }
    const auto at = [&](int64_t l) { return from + i * stride + l * static_cast<int64_t>(sizeof(Word)); };
    int64_t l = 0;
    for (; l + width <= lines; l += width) transpose_part(wide, at(l), stride, to + l * pitch + i, pitch);
    for (; l + kSide <= lines; l += kSide) transpose_part(block, at(l), stride, to + l * pitch + i, pitch);
    for (; l < lines; ++l) {
      for (int64_t k = i; k < i + kSide; ++k) one(k, l);
    }
  }
  for (; i < columns; ++i) {
    for (int64_t l = 0; l < lines; ++l) one(i, l);
  }
}

// Whether a transpose by squares is faster than transpose(): a vector of Line<Word> is a cache line, or it is
// half a cache line and words have at least 4 bytes. Smaller words need more columns per square, which compete
// for the first-level cache.
template <class Word>
inline constexpr bool kHasSquares = kBlocks<Line<Word>> == 4 || (kBlocks<Line<Word>> == 2 && sizeof(Word) >= 4);

template <class Word>
bool stream_transposed(const std::byte* from, int64_t stride, std::byte* out, int64_t pitch, int64_t columns,
                       int64_t lines) {
  constexpr int64_t kLine = 64, kWords = kLine / sizeof(Word);
  const Line<Word> d;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  const bool is_aligned = reinterpret_cast<intptr_t>(out) % kLine == 0 && pitch % kWords == 0;
  if (!kHasSquares<Word> || !is_aligned || columns % kWords != 0 || lines % kWords != 0) return false;
  auto* to = reinterpret_cast<Word*>(out);
  // Reads kWords columns (a cache line of the output) from beginning to end before it reads the next kWords
  // columns. The hardware prefetcher predicts this order.
  for (int64_t i = 0; i < columns; i += kWords) {
    for (int64_t l = 0; l < lines; l += width) {
      for (int64_t k = i; k < i + kWords; k += width) {
        transpose_square<true>(d, from + k * stride + l * static_cast<int64_t>(sizeof(Word)), stride,
                               to + l * pitch + k, pitch);
      }
    }
  }
  return true;
}

template <class Word>
void transpose_squares(const std::byte* from, int64_t stride, std::byte* out, int64_t pitch, int64_t columns,
                       int64_t lines) {
  constexpr auto kWord = static_cast<int64_t>(sizeof(Word));
  const Line<Word> d;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole_columns = kHasSquares<Word> ? columns / width * width : 0, whole_lines = lines / width * width;
  auto* to = reinterpret_cast<Word*>(out);
  for (int64_t i = 0; i < whole_columns; i += width) {
    for (int64_t l = 0; l < whole_lines; l += width)
      transpose_square<false>(d, from + i * stride + l * kWord, stride, to + l * pitch + i, pitch);
  }
  if (whole_lines < lines && whole_columns > 0) {
    transpose<Word>(from + whole_lines * kWord, stride, out + whole_lines * pitch * kWord, pitch, whole_columns,
                    lines - whole_lines);
  }
  transpose<Word>(from + whole_columns * stride, stride, out + whole_columns * kWord, pitch, columns - whole_columns,
                  lines);
}

// Copies a row, which has at least the size of a vector of D. The last vector may overlap the previous one.
template <class D>
HWY_INLINE void copy_row(D d, const uint8_t* from, uint8_t* to, int64_t bytes) {
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i + width < bytes; i += width) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
  hn::StoreU(hn::LoadU(d, from + bytes - width), d, to + bytes - width);
}
void rows(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t bytes, int64_t rows) {
  const hn::ScalableTag<uint8_t> wide;
  const hn::CappedTag<uint8_t, 16> block;
  const auto* x = reinterpret_cast<const uint8_t*>(from);
  auto* y = reinterpret_cast<uint8_t*>(to);
  if (bytes >= static_cast<int64_t>(hn::Lanes(wide))) {
    for (int64_t r = 0; r < rows; ++r) copy_row(wide, x + r * from_stride, y + r * to_stride, bytes);
  } else if (bytes >= static_cast<int64_t>(hn::Lanes(block))) {
    for (int64_t r = 0; r < rows; ++r) copy_row(block, x + r * from_stride, y + r * to_stride, bytes);
  } else {
    for (int64_t r = 0; r < rows; ++r) std::memcpy(y + r * to_stride, x + r * from_stride, static_cast<size_t>(bytes));
  }
}

void stream(const std::byte* from, std::byte* to, int64_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t kLine = 64;
  const int64_t head = std::min<int64_t>(bytes, -reinterpret_cast<intptr_t>(to) & (kLine - 1));
  std::memcpy(to, from, static_cast<size_t>(head));
  const auto* x = reinterpret_cast<const uint8_t*>(from);
  auto* y = reinterpret_cast<uint8_t*>(to);
  int64_t i = head;
  for (; i + kLine <= bytes; i += kLine) {
    for (int64_t part = 0; part < kLine; part += width) hn::Stream(hn::LoadU(d, x + i + part), d, y + i + part);
  }
  std::memcpy(to + i, from + i, static_cast<size_t>(bytes - i));
}

#else
template <class Word>
bool stream_transposed(const std::byte*, int64_t, std::byte*, int64_t, int64_t, int64_t) {
  return false;
}
template <class Word>
void transpose(const std::byte* from, int64_t stride, std::byte* to, int64_t pitch, int64_t columns, int64_t lines) {
  for (int64_t i = 0; i < columns; ++i) {
    const auto* line = reinterpret_cast<const Word*>(from + i * stride);
    for (int64_t l = 0; l < lines; ++l) reinterpret_cast<Word*>(to)[l * pitch + i] = line[l];
  }
}
template <class Word>
void transpose_squares(const std::byte* from, int64_t stride, std::byte* to, int64_t pitch, int64_t columns,
                       int64_t lines) {
  transpose<Word>(from, stride, to, pitch, columns, lines);
}
void stream(const std::byte* from, std::byte* to, int64_t bytes) { std::memcpy(to, from, static_cast<size_t>(bytes)); }
void rows(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t bytes, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r)
    std::memcpy(to + r * to_stride, from + r * from_stride, static_cast<size_t>(bytes));
}
#endif

MemoryMoves find_moves() {
  return {stream,
          {transpose<uint8_t>, transpose<uint16_t>, transpose<uint32_t>, transpose<uint64_t>},
          {nullptr, transpose_squares<uint16_t>, transpose_squares<uint32_t>, transpose_squares<uint64_t>},
          {nullptr, stream_transposed<uint16_t>, stream_transposed<uint32_t>, stream_transposed<uint64_t>},
          rows};
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_moves);
const MemoryMoves& memory_moves() {
  static const MemoryMoves moves = HWY_DYNAMIC_DISPATCH(find_moves)();
  return moves;
}
}  // namespace backplane::onednn
#endif
