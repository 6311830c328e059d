// SPDX-License-Identifier: Apache-2.0
// Building blocks of kernels that reduce a contiguous row: loops over vectors of f32 with a partial last
// vector, and sums in stages. Blocks are summed in f32, and the sums of blocks in f64. Files that Highway
// compiles once per vector target include this header after <hwy/highway.h>.
#if defined(BACKPLANE_ONEDNN_ACCUMULATE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_ONEDNN_ACCUMULATE_INL_H
#undef BACKPLANE_ONEDNN_ACCUMULATE_INL_H
#else
#define BACKPLANE_ONEDNN_ACCUMULATE_INL_H
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>

#include "simd/pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
inline constexpr size_t kMaxLanes = HWY_MAX_BYTES / sizeof(float);

// State whether the target has masked loads and stores for lanes of 32 and of 16 bits. Masked instructions do
// not access the memory of lanes that are not selected.
inline constexpr bool kMasksFloats = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2;
inline constexpr bool kMasksHalves = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3;

// load_part loads the first `count` elements and fills the other lanes with `filler`. store_part
// stores the first `count` lanes.
template <class T>
HWY_INLINE V load_part(D d, const T* from, int64_t count, float filler) {
  const auto inside = static_cast<size_t>(count);
  if constexpr (std::same_as<T, float> && kMasksFloats) {
    return hn::IfThenElse(hn::FirstN(d, inside), hn::MaskedLoad(hn::FirstN(d, inside), d, from), hn::Set(d, filler));
  } else {
    HWY_ALIGN float lanes[kMaxLanes];
    for (size_t i = 0; i < kMaxLanes; ++i) lanes[i] = i < inside ? static_cast<float>(from[i]) : filler;
    return hn::Load(d, lanes);
  }
}
template <class T>
HWY_INLINE void store_part(D d, V value, T* to, int64_t count) {
  if constexpr (std::same_as<T, float> && kMasksFloats) {
    hn::BlendedStore(value, hn::FirstN(d, static_cast<size_t>(count)), d, to);
  } else {
    T lanes[kMaxLanes];
    store(d, value, lanes);
    std::memcpy(to, lanes, static_cast<size_t>(count) * sizeof(T));
  }
}

// Loads the vector that begins at element `i` of a row of `count` elements. Lanes past the end are zero.
template <class T>
HWY_INLINE V load_at(D d, const T* row, int64_t i, int64_t count) {
  const bool whole = i + static_cast<int64_t>(hn::Lanes(d)) <= count;
  return whole ? load(d, row + i) : load_part(d, row + i, count - i, 0);
}
template <class T>
HWY_INLINE void store_at(D d, V value, T* row, int64_t i, int64_t count) {
  const bool whole = i + static_cast<int64_t>(hn::Lanes(d)) <= count;
  whole ? store(d, value, row + i) : store_part(d, value, row + i, count - i);
}

// Calls step(d, vector, index) for each vector of the row. Lanes past the end are `filler`.
template <class T, class Step>
HWY_INLINE void each_vector(D d, const T* x, int64_t count, float filler, Step& step) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) step(d, load(d, x + i), i);
  if (i < count) step(d, load_part(d, x + i, count - i, filler), i);
}

#if HWY_TARGET != HWY_SCALAR
// The following functions do for pairs of vectors what the functions above do for single vectors. load_words_part
// loads 16-bit elements without conversion.
template <class T>
HWY_INLINE hn::Vec<PairWords<D>> load_words_part(D, const T* from, int64_t count, T filler) {
  const PairWords<D> words;
  const auto fill = hn::Set(words, std::bit_cast<uint16_t>(filler));
  const auto inside = hn::FirstN(words, static_cast<size_t>(count));
  if constexpr (kMasksHalves) {
    return hn::IfThenElse(inside, hn::MaskedLoad(inside, words, words_of(from)), fill);
  } else {
    uint16_t padded[2 * kMaxLanes] = {};
    std::memcpy(padded, from, static_cast<size_t>(count) * sizeof(T));
    return hn::IfThenElse(inside, hn::LoadU(words, padded), fill);
  }
}
template <class T>
HWY_INLINE Pair<V> load_pair_part(D d, const T* from, int64_t count, float filler) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if constexpr (std::same_as<T, float>) {
    return {load_part(d, from, std::min(count, lanes), filler),
            load_part(d, from + std::min(count, lanes), std::max<int64_t>(count - lanes, 0), filler)};
  } else {
    return from_words<T>(d, load_words_part(d, from, count, T::from(static_cast<double>(filler))));
  }
}
template <class T>
HWY_INLINE void store_pair_part(D d, Pair<V> values, T* to, int64_t count) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if constexpr (std::same_as<T, float>) {
    store_at(d, values.first, to, 0, count);
    if (lanes < count) store_part(d, values.second, to + lanes, count - lanes);
  } else if constexpr (kMasksHalves) {
    const PairWords<D> words;
    hn::BlendedStore(to_words<T>(d, values), hn::FirstN(words, static_cast<size_t>(count)), words, words_of(to));
  } else {
    T padded[2 * kMaxLanes];
    store_pair(d, values, padded);
    std::memcpy(to, padded, static_cast<size_t>(count) * sizeof(T));
  }
}
template <class T>
HWY_INLINE Pair<V> load_pair_at(D d, const T* row, int64_t i, int64_t count) {
  const bool whole = i + static_cast<int64_t>(2 * hn::Lanes(d)) <= count;
  return whole ? load_pair(d, row + i) : load_pair_part(d, row + i, count - i, 0);
}
template <class T>
HWY_INLINE void store_pair_at(D d, Pair<V> values, T* row, int64_t i, int64_t count) {
  const bool whole = i + static_cast<int64_t>(2 * hn::Lanes(d)) <= count;
  whole ? store_pair(d, values, row + i) : store_pair_part(d, values, row + i, count - i);
}
template <class T, class Step>
HWY_INLINE void each_pair(D d, const T* x, int64_t count, float filler, Step& step) {
  const auto lanes = static_cast<int64_t>(2 * hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) step(d, load_pair(d, x + i), i);
  if (i < count) step(d, load_pair_part(d, x + i, count - i, filler), i);
}

// A step for each_pair. It sets y[i] to value(x[i]) for each element of the pair.
template <class T, class F>
struct WritePair {
  T* y;
  int64_t count;
  F value;
  HWY_INLINE void operator()(D d, Pair<V> x, int64_t i) {
    store_pair_at(d, {value(d, x.first, i), value(d, x.second, i)}, y, i, count);
  }
};
#endif

// A step for each_vector. It sets y[i] to value(x[i]) for each element of the vector.
template <class T, class F>
struct Write {
  T* y;
  int64_t count;
  F value;
  HWY_INLINE void operator()(D d, V x, int64_t i) { store_at(d, value(d, x, i), y, i, count); }
};

// Sums all lanes of many vectors. A block of 16 vectors and a group of 16 blocks are summed in f32, and groups
// in f64.
class Total {
 public:
  HWY_INLINE explicit Total(D d) : block_(hn::Zero(d)), blocks_(hn::Zero(d)) {}
  HWY_INLINE void add(D d, V value) {
    block_ = hn::Add(block_, value);
    if ((++depth_ & 15) == 0) flush(d);
  }
  HWY_INLINE double get(D d) {
    return total_ + static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(blocks_, block_))));
  }

 private:
  HWY_INLINE void flush(D d) {
    blocks_ = hn::Add(blocks_, block_);
    block_ = hn::Zero(d);
    if (depth_ != 256) return;
    total_ += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, blocks_)));
    blocks_ = hn::Zero(d);
    depth_ = 0;
  }
  V block_, blocks_;
  double total_ = 0;
  int depth_ = 0;
};

}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
