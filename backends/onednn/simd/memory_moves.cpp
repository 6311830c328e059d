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
// A vector of 128 bits. A square has as many lines as this vector has words. Interleaving pairs of
// lines, and then pairs of the results, transposes a square.
template <class Word>
using Square = hn::CappedTag<Word, 16 / sizeof(Word)>;

template <class To, class From, class V>
HWY_INLINE hn::Vec<To> lower(To to, From from, V a, V b) {
  return hn::BitCast(to, hn::InterleaveLower(from, a, b));
}
template <class To, class From, class V>
HWY_INLINE hn::Vec<To> upper(To to, From from, V a, V b) {
  return hn::BitCast(to, hn::InterleaveUpper(from, a, b));
}

template <class D, class D4, class D8, class V>
HWY_INLINE void store_four(D d, D4 d4, D8 d8, V a, V b, V c, V e, hn::TFromD<D>* to, int64_t pitch) {
  const auto low01 = lower(d8, d4, a, b), low23 = lower(d8, d4, c, e);
  const auto high01 = upper(d8, d4, a, b), high23 = upper(d8, d4, c, e);
  hn::StoreU(lower(d, d8, low01, low23), d, to);
  hn::StoreU(upper(d, d8, low01, low23), d, to + pitch);
  hn::StoreU(lower(d, d8, high01, high23), d, to + 2 * pitch);
  hn::StoreU(upper(d, d8, high01, high23), d, to + 3 * pitch);
}

HWY_INLINE void square(const std::byte* from, int64_t stride, uint64_t* to, int64_t pitch) {
  const Square<uint64_t> d;
  const auto a = hn::LoadU(d, reinterpret_cast<const uint64_t*>(from)),
             b = hn::LoadU(d, reinterpret_cast<const uint64_t*>(from + stride));
  hn::StoreU(hn::InterleaveLower(d, a, b), d, to);
  hn::StoreU(hn::InterleaveUpper(d, a, b), d, to + pitch);
}
HWY_INLINE void square(const std::byte* from, int64_t stride, uint32_t* to, int64_t pitch) {
  const Square<uint32_t> d;
  const Square<uint64_t> d8;
  const auto line = [&](int64_t i)
                        HWY_ATTR { return hn::LoadU(d, reinterpret_cast<const uint32_t*>(from + i * stride)); };
  store_four(d, d, d8, line(0), line(1), line(2), line(3), to, pitch);
}
// Stores a square of eight lines. Each element of `pairs` interleaves the words of two lines.
template <class D, class V>
HWY_INLINE void store_eight(D d, const V (&pairs)[8], hn::TFromD<D>* to, int64_t pitch) {
  const Square<uint16_t> d2;
  const Square<uint32_t> d4;
  const Square<uint64_t> d8;
  const auto low = [&](int i) HWY_ATTR { return lower(d4, d2, pairs[i], pairs[i + 1]); };
  const auto high = [&](int i) HWY_ATTR { return upper(d4, d2, pairs[i], pairs[i + 1]); };
  store_four(d, d4, d8, low(0), low(2), low(4), low(6), to, pitch);
  store_four(d, d4, d8, high(0), high(2), high(4), high(6), to + 4 * pitch, pitch);
}
HWY_INLINE void square(const std::byte* from, int64_t stride, uint16_t* to, int64_t pitch) {
  const Square<uint16_t> d;
  hn::Vec<Square<uint16_t>> lines[8];
  for (int64_t i = 0; i < 8; ++i) lines[i] = hn::LoadU(d, reinterpret_cast<const uint16_t*>(from + i * stride));
  store_eight(d, lines, to, pitch);
}
// Transposes 16 lines of 16 bytes. Interleaves pairs of lines, then continues with words of 16
// bits.
HWY_INLINE void square(const std::byte* from, int64_t stride, uint8_t* to, int64_t pitch) {
  const Square<uint8_t> d;
  const Square<uint16_t> d2;
  hn::Vec<Square<uint16_t>> low[8], high[8];
  for (int64_t i = 0; i < 8; ++i) {
    const auto a = hn::LoadU(d, reinterpret_cast<const uint8_t*>(from + 2 * i * stride)),
               b = hn::LoadU(d, reinterpret_cast<const uint8_t*>(from + (2 * i + 1) * stride));
    low[i] = lower(d2, d, a, b);
    high[i] = upper(d2, d, a, b);
  }
  store_eight(d, low, to, pitch);
  store_eight(d, high, to + 8 * pitch, pitch);
}

template <class Word>
void transpose(const std::byte* from, int64_t stride, std::byte* out, int64_t pitch, int64_t columns, int64_t lines) {
  constexpr int64_t kSide = 16 / sizeof(Word), kLine = 64;
  auto* to = reinterpret_cast<Word*>(out);
  const auto one = [&](int64_t column, int64_t line) {
    to[line * pitch + column] = reinterpret_cast<const Word*>(from + column * stride)[line];
  };
  int64_t i = 0;
  for (; i + kSide <= columns; i += kSide) {
    // Prefetches the next columns. Each column may be on another page, and the hardware prefetcher
    // does not cross page boundaries.
    for (int64_t ahead = i + 2 * kSide; ahead < i + 3 * kSide && ahead < columns; ++ahead) {
      for (int64_t byte = 0; byte < lines * static_cast<int64_t>(sizeof(Word)); byte += kLine)
        hwy::Prefetch(from + ahead * stride + byte);
    }
    int64_t l = 0;
    for (; l + kSide <= lines; l += kSide) {
      square(from + i * stride + l * static_cast<int64_t>(sizeof(Word)), stride, to + l * pitch + i, pitch);
    }
    for (; l < lines; ++l) {
      for (int64_t k = i; k < i + kSide; ++k) one(k, l);
    }
  }
  for (; i < columns; ++i) {
    for (int64_t l = 0; l < lines; ++l) one(i, l);
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
void transpose(const std::byte* from, int64_t stride, std::byte* to, int64_t pitch, int64_t columns, int64_t lines) {
  for (int64_t i = 0; i < columns; ++i) {
    const auto* line = reinterpret_cast<const Word*>(from + i * stride);
    for (int64_t l = 0; l < lines; ++l) reinterpret_cast<Word*>(to)[l * pitch + i] = line[l];
  }
}
void stream(const std::byte* from, std::byte* to, int64_t bytes) { std::memcpy(to, from, static_cast<size_t>(bytes)); }
#endif

MemoryMoves find_moves() {
  return {stream, {transpose<uint8_t>, transpose<uint16_t>, transpose<uint32_t>, transpose<uint64_t>}};
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
