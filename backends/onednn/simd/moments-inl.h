// SPDX-License-Identifier: Apache-2.0
// Mean and variance of a contiguous row, for the norms and their backward pass. Files that Highway
// compiles once per vector target include this header after <hwy/highway.h>.
#if defined(BACKPLANE_ONEDNN_MOMENTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef BACKPLANE_ONEDNN_MOMENTS_INL_H
#undef BACKPLANE_ONEDNN_MOMENTS_INL_H
#else
#define BACKPLANE_ONEDNN_MOMENTS_INL_H
#endif

#include <cmath>

#include "simd/accumulate-inl.h"
#include "simd/norm.hpp"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {

// A step for each_pair. It sums the elements.
struct SumElements {
  Total total;
  HWY_INLINE void operator()(D d, Pair<V> x, int64_t) { total.add(d, hn::Add(x.first, x.second)); }
};
// A step for each_pair. It sums the squared distances from the mean.
struct SumSquares {
  V mean;
  Total total;
  HWY_INLINE void operator()(D d, Pair<V> x, int64_t) {
    const V first = hn::Sub(x.first, mean), second = hn::Sub(x.second, mean);
    total.add(d, hn::MulAdd(first, first, hn::Mul(second, second)));
  }
};

// Returns the mean and 1 / sqrt(variance + epsilon) of a row. If kCentred is false, the mean is 0.
template <bool kCentred, class T>
Moments moments_of(D d, const T* x, int64_t count, double epsilon) {
  const auto n = static_cast<double>(count);
  double exact_mean = 0;
  if constexpr (kCentred) {
    SumElements sum{Total(d)};
    each_pair(d, x, count, 0.0f, sum);
    exact_mean = sum.total.get(d) / n;
  }
  // `squares` sums the squared distances from the mean rounded to f32. The square of this rounding error is
  // then subtracted from the variance. Lanes past the end contain the mean, so their distance is 0.
  const auto mean = static_cast<float>(exact_mean);
  SumSquares squares{hn::Set(d, mean), Total(d)};
  const int64_t whole = count / (2 * static_cast<int64_t>(hn::Lanes(d))) * (2 * static_cast<int64_t>(hn::Lanes(d)));
  each_pair(d, x, whole, 0.0f, squares);
  for (int64_t i = whole; i < count; i += static_cast<int64_t>(hn::Lanes(d))) {
    const V rest =
        i + static_cast<int64_t>(hn::Lanes(d)) <= count ? load(d, x + i) : load_part(d, x + i, count - i, mean);
    squares(d, {rest, hn::Set(d, mean)}, i);
  }
  const double shift = exact_mean - static_cast<double>(mean);
  const double variance = squares.total.get(d) / n - shift * shift;
  const double rstd = 1 / std::sqrt((variance > 0 || variance != variance ? variance : 0) + epsilon);
  return {exact_mean, rstd};
}

}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
