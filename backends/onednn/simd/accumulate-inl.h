// SPDX-License-Identifier: Apache-2.0
// Per vector target: steps along a packed row in vectors of f32, the rest of a row included, and sums that stay exact enough.
// Included after <hwy/highway.h> by files that Highway compiles once a target.
#if defined(BACKPLANE_ONEDNN_LANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_ONEDNN_LANES_INL_H
#undef BACKPLANE_ONEDNN_LANES_INL_H
#else
#define BACKPLANE_ONEDNN_LANES_INL_H
#endif

#include <cmath>

#include "simd/norm.hpp"
#include "simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
inline constexpr size_t kMost = HWY_MAX_BYTES / sizeof(float);

// The first `count` elements, and `rest` beyond; and back.
template <class T>
HWY_INLINE V load_part(D d, const T* from, int64_t count, float rest) {
  HWY_ALIGN float lanes[kMost];
  for (size_t i = 0; i < kMost; ++i) lanes[i] = static_cast<int64_t>(i) < count ? static_cast<float>(from[i]) : rest;
  return hn::Load(d, lanes);
}
template <class T>
HWY_INLINE void store_part(D d, V value, T* to, int64_t count) {
  T lanes[kMost];
  store(d, value, lanes);
  std::memcpy(to, lanes, static_cast<size_t>(count) * sizeof(T));
}

// Calls step(vector, index) for every vector of the row; elements beyond the end are `rest`.
template <class T, class Step>
HWY_INLINE void each_vector(D d, const T* x, int64_t count, float rest, Step& step) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) step(d, load(d, x + i), i);
  if (i < count) step(d, load_part(d, x + i, count - i, rest), i);
}

// A sum of vectors: every 16 go into f64.
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

template <class T, class F>
struct Write {
  T* y;
  int64_t count;
  F value;
  HWY_INLINE void operator()(D d, V x, int64_t i) {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const V result = value(d, x, i);
    i + lanes <= count ? store(d, result, y + i) : store_part(d, result, y + i, count - i);
  }
};

// A vector at `i` of a row of `count`, zeros beyond its end.
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

struct Plain {
  Total total;
  HWY_INLINE void operator()(D d, V x, int64_t) { total.add(d, x); }
};
struct Squares {
  V mean;
  Total total;
  HWY_INLINE void operator()(D d, V x, int64_t) {
    const V distance = hn::Sub(x, mean);
    total.add(d, hn::Mul(distance, distance));
  }
};

// Mean and 1 / root of the variance with epsilon; the mean is 0 where it is not subtracted.
template <bool kCentred, class T>
Moments moments_of(D d, const T* x, int64_t count, double epsilon) {
  const auto n = static_cast<double>(count);
  double exact_mean = 0;
  if constexpr (kCentred) {
    Plain sum{Total(d)};
    each_vector(d, x, count, 0.0f, sum);
    exact_mean = sum.total.get(d) / n;
  }
  // Distances are from the rounded mean, which puts its error, squared, into the variance. Elements beyond the end are at no distance.
  const auto mean = static_cast<float>(exact_mean);
  Squares squares{hn::Set(d, mean), Total(d)};
  each_vector(d, x, count, mean, squares);
  const double shift = exact_mean - static_cast<double>(mean);
  const double variance = squares.total.get(d) / n - shift * shift;
  const double rstd = 1 / std::sqrt((variance > 0 || variance != variance ? variance : 0) + epsilon);
  return {exact_mean, rstd};
}

}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
