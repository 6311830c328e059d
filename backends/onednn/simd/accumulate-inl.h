// SPDX-License-Identifier: Apache-2.0
// Building blocks of kernels that reduce a contiguous row: loops over vectors of f32 with a partial
// last vector, and sums in two stages. Blocks are summed in f32, and the results of blocks in f64.
// Files that Highway compiles once per vector target include this header after <hwy/highway.h>.
#if defined(BACKPLANE_ONEDNN_ACCUMULATE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_ONEDNN_ACCUMULATE_INL_H
#undef BACKPLANE_ONEDNN_ACCUMULATE_INL_H
#else
#define BACKPLANE_ONEDNN_ACCUMULATE_INL_H
#endif

#include <cmath>
#include <type_traits>

#include "simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
inline constexpr size_t kMaxLanes = HWY_MAX_BYTES / sizeof(float);

// From AVX2 on, masked loads and stores do not access the lanes that the mask excludes.
inline constexpr bool kMasksMemory = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2;

// load_part loads the first `count` elements and fills the other lanes with `filler`. store_part
// stores the first `count` lanes.
template <class T>
HWY_INLINE V load_part(D d, const T* from, int64_t count, float filler) {
  if constexpr (kMasksMemory && std::is_same_v<T, float>) {
    const auto mask = hn::FirstN(d, static_cast<size_t>(count));
    return hn::IfThenElse(mask, hn::MaskedLoad(mask, d, from), hn::Set(d, filler));
  } else {
    HWY_ALIGN float lanes[kMaxLanes];
    for (size_t i = 0; i < kMaxLanes; ++i)
      lanes[i] = static_cast<int64_t>(i) < count ? static_cast<float>(from[i]) : filler;
    return hn::Load(d, lanes);
  }
}
template <class T>
HWY_INLINE void store_part(D d, V value, T* to, int64_t count) {
  if constexpr (kMasksMemory && std::is_same_v<T, float>) {
    hn::BlendedStore(value, hn::FirstN(d, static_cast<size_t>(count)), d, to);
  } else {
    T lanes[kMaxLanes];
    store(d, value, lanes);
    std::memcpy(to, lanes, static_cast<size_t>(count) * sizeof(T));
  }
}

// Loads the vector at index `i` of a row of `count` elements. Lanes past the end are zero.
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

// A step for each_vector. It sets y[i] to value(x[i]).
template <class T, class F>
struct Write {
  T* y;
  int64_t count;
  F value;
  HWY_INLINE void operator()(D d, V x, int64_t i) { store_at(d, value(d, x, i), y, i, count); }
};

// A sum of vectors. Each block of 16 vectors is summed in f32 and then added to a total in f64.
class Total {
 public:
  HWY_INLINE explicit Total(D d) : block_(hn::Zero(d)) {}
  HWY_INLINE void add(D d, V value) {
    block_ = hn::Add(block_, value);
    if (++depth_ == 16) flush(d);
  }
  HWY_INLINE double get(D d) {
    flush(d);
    return total_;
  }

 private:
  HWY_INLINE void flush(D d) {
    total_ += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, block_)));
    block_ = hn::Zero(d);
    depth_ = 0;
  }
  V block_;
  double total_ = 0;
  int depth_ = 0;
};

}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
