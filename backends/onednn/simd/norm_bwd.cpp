// SPDX-License-Identifier: Apache-2.0
// The operator norm_bwd of layer_norm and rms_norm on contiguous rows.
#include <algorithm>

#include "simd/norm.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/norm_bwd.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/moments-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

template <class T, bool kCentred>
Moments moments(const void* x, int64_t count, double epsilon) {
  return moments_of<kCentred>(D(), static_cast<const T*>(x), count, epsilon);
}

template <class T, bool kCentred>
void norm_dx(const void* gradient, const void* input, const void* scale, void* to, int64_t count, Moments moments) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto *dy = static_cast<const T*>(gradient), *x = static_cast<const T*>(input);
  const auto* gamma = static_cast<const T*>(scale);
  const V mean = hn::Set(d, static_cast<float>(moments.mean)), rstd = hn::Set(d, static_cast<float>(moments.rstd));
  const auto scaled = [&](int64_t i) HWY_ATTR {
    const V upstream = load_at(d, dy, i, count);
    return gamma == nullptr ? upstream : hn::Mul(upstream, load_at(d, gamma, i, count));
  };
  const auto normalised = [&](int64_t i) HWY_ATTR { return hn::Mul(hn::Sub(load_at(d, x, i, count), mean), rstd); };
  Total sum_g(d), sum_gs(d);
  for (int64_t i = 0; i < count; i += lanes) {
    const V g = scaled(i);  // lanes past the end are 0
    if constexpr (kCentred) sum_g.add(d, g);
    sum_gs.add(d, hn::Mul(g, normalised(i)));
  }
  const auto n = static_cast<double>(count);
  const V mean_g = hn::Set(d, static_cast<float>(sum_g.get(d) / n));
  const V mean_gs = hn::Set(d, static_cast<float>(sum_gs.get(d) / n));
  for (int64_t i = 0; i < count; i += lanes) {
    const V remainder = hn::NegMulAdd(normalised(i), mean_gs, hn::Sub(scaled(i), mean_g));
    store_at(d, hn::Mul(remainder, rstd), static_cast<T*>(to), i, count);
  }
}

// The sums of dgamma and dbeta for one vector of columns. flush() adds the f32 sums of a block of rows to
// totals in f64, and clears the f32 sums.
struct ColumnSums {
  V dgamma, dbeta;
  double dgammas[kMaxLanes] = {}, dbetas[kMaxLanes] = {};

  HWY_INLINE explicit ColumnSums(D d) : dgamma(hn::Zero(d)), dbeta(hn::Zero(d)) {}
  HWY_INLINE void flush(D d) {
    HWY_ALIGN float lanes[kMaxLanes];
    for (const auto& [sum, totals] : {std::pair(&dgamma, dgammas), std::pair(&dbeta, dbetas)}) {
      hn::Store(*sum, d, lanes);
      for (size_t i = 0; i < hn::Lanes(d); ++i) totals[i] += static_cast<double>(lanes[i]);
      *sum = hn::Zero(d);
    }
  }
};

template <class T>
void store_totals(D d, const double* totals, T* to, int64_t i, int64_t end) {
  HWY_ALIGN float lanes[kMaxLanes] = {};
  for (size_t k = 0; k < hn::Lanes(d); ++k) lanes[k] = static_cast<float>(totals[k]);
  store_at(d, hn::Load(d, lanes), to, i, end);
}

template <class T>
void norm_parameters(const void* gradient, const void* input, const Moments* moments, int64_t rows, int64_t count,
                     int64_t begin, int64_t end, void* dgamma, void* dbeta) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto *dy = static_cast<const T*>(gradient), *x = static_cast<const T*>(input);
  constexpr int64_t kBlock = 64;
  for (int64_t i = begin; i < end; i += lanes) {
    ColumnSums sums(d);
    for (int64_t block = 0; block < rows; block += kBlock) {
      for (int64_t r = block; r < std::min(block + kBlock, rows); ++r) {
        const V mean = hn::Set(d, static_cast<float>(moments[r].mean)),
                rstd = hn::Set(d, static_cast<float>(moments[r].rstd));
        const V upstream = load_at(d, dy + r * count, i, end);
        const V normalised = hn::Mul(hn::Sub(load_at(d, x + r * count, i, end), mean), rstd);
        sums.dgamma = hn::MulAdd(upstream, normalised, sums.dgamma);
        sums.dbeta = hn::Add(upstream, sums.dbeta);
      }
      sums.flush(d);
    }
    if (dgamma != nullptr) store_totals(d, sums.dgammas, static_cast<T*>(dgamma), i, end);
    if (dbeta != nullptr) store_totals(d, sums.dbetas, static_cast<T*>(dbeta), i, end);
  }
}

template <bool kCentred>
NormBwdKernels kernels_of(uint32_t dtype) {
  return for_dtype<NormBwdKernels>(ShortFloats(), dtype, []<class T>() {
    return NormBwdKernels{moments<T, kCentred>, norm_dx<T, kCentred>, norm_parameters<T>};
  });
}

NormBwdKernels find_norm_bwd(bool centred, uint32_t dtype) {
  return centred ? kernels_of<true>(dtype) : kernels_of<false>(dtype);
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_norm_bwd);
NormBwdKernels norm_bwd_kernels(bool centred, uint32_t dtype) {
  return HWY_DYNAMIC_DISPATCH(find_norm_bwd)(centred, dtype);
}
}  // namespace backplane::onednn
#endif
