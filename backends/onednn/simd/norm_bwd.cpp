// SPDX-License-Identifier: Apache-2.0
// The inner loops of the gradients. Sums have two stages: blocks in vectors of f32, totals of blocks in f64.
#include <algorithm>

#include "simd/norm_bwd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/norm_bwd.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "simd/accumulate-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

template <class T, bool kLogarithm>
void softmax_bwd(const void* gradient, const void* result, void* to, int64_t count) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto *dy = static_cast<const T*>(gradient), *y = static_cast<const T*>(result);
  auto* dx = static_cast<T*>(to);
  Total sum(d);
  for (int64_t i = 0; i < count; i += lanes) {
    const V upstream = load_at(d, dy, i, count);
    sum.add(d, kLogarithm ? upstream : hn::Mul(upstream, load_at(d, y, i, count)));
  }
  const V total = hn::Set(d, static_cast<float>(sum.get(d)));
  for (int64_t i = 0; i < count; i += lanes) {
    const V upstream = load_at(d, dy, i, count), at = load_at(d, y, i, count);
    store_at(d, kLogarithm ? hn::NegMulAdd(exp_of(d, at), total, upstream) : hn::Mul(at, hn::Sub(upstream, total)), dx,
             i, count);
  }
}

template <class T, bool kCentred>
Moments moments(const void* x, int64_t count, double epsilon) {
  return moments_of<kCentred>(D(), static_cast<const T*>(x), count, epsilon);
}

template <class T, bool kCentred>
void norm_row(const void* gradient, const void* input, const void* scale, void* to, int64_t count, Moments moments) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto *dy = static_cast<const T*>(gradient), *x = static_cast<const T*>(input);
  const auto* gamma = static_cast<const T*>(scale);
  const V mean = hn::Set(d, static_cast<float>(moments.mean)), rstd = hn::Set(d, static_cast<float>(moments.rstd));
  const auto scaled = [&](int64_t i) HWY_ATTR {
    const V upstream = load_at(d, dy, i, count);
    return gamma == nullptr ? upstream : hn::Mul(upstream, load_at(d, gamma, i, count));
  };
  const auto straight = [&](int64_t i) HWY_ATTR { return hn::Mul(hn::Sub(load_at(d, x, i, count), mean), rstd); };
  Total plain(d), along(d);
  for (int64_t i = 0; i < count; i += lanes) {
    const V g = scaled(i);  // 0 beyond the end
    if constexpr (kCentred) plain.add(d, g);
    along.add(d, hn::Mul(g, straight(i)));
  }
  const auto n = static_cast<double>(count);
  const V plain_mean = hn::Set(d, static_cast<float>(plain.get(d) / n));
  const V along_mean = hn::Set(d, static_cast<float>(along.get(d) / n));
  for (int64_t i = 0; i < count; i += lanes) {
    const V rest = hn::NegMulAdd(straight(i), along_mean, hn::Sub(scaled(i), plain_mean));
    store_at(d, hn::Mul(rest, rstd), static_cast<T*>(to), i, count);
  }
}

// Sums of one vector of columns: every 64 rows go into f64.
struct ColumnSums {
  V dgamma, dbeta;
  double dgammas[kMost] = {}, dbetas[kMost] = {};

  HWY_INLINE explicit ColumnSums(D d) : dgamma(hn::Zero(d)), dbeta(hn::Zero(d)) {}
  HWY_INLINE void flush(D d) {
    HWY_ALIGN float lanes[kMost];
    for (const auto& [sum, totals] : {std::pair(&dgamma, dgammas), std::pair(&dbeta, dbetas)}) {
      hn::Store(*sum, d, lanes);
      for (size_t i = 0; i < hn::Lanes(d); ++i) totals[i] += static_cast<double>(lanes[i]);
      *sum = hn::Zero(d);
    }
  }
};

template <class T>
void store_totals(D d, const double* totals, T* to, int64_t i, int64_t end) {
  HWY_ALIGN float lanes[kMost] = {};
  for (size_t k = 0; k < hn::Lanes(d); ++k) lanes[k] = static_cast<float>(totals[k]);
  store_at(d, hn::Load(d, lanes), to, i, end);
}

template <class T>
void norm_columns(const void* gradient, const void* input, const Moments* moments, int64_t rows, int64_t count,
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
        const V straight = hn::Mul(hn::Sub(load_at(d, x + r * count, i, end), mean), rstd);
        sums.dgamma = hn::MulAdd(upstream, straight, sums.dgamma);
        sums.dbeta = hn::Add(upstream, sums.dbeta);
      }
      sums.flush(d);
    }
    if (dgamma != nullptr) store_totals(d, sums.dgammas, static_cast<T*>(dgamma), i, end);
    if (dbeta != nullptr) store_totals(d, sums.dbetas, static_cast<T*>(dbeta), i, end);
  }
}

template <class T>
NormBwd norm_of(bool centred) {
  if (centred) return {moments<T, true>, norm_row<T, true>, norm_columns<T>};
  return {moments<T, false>, norm_row<T, false>, norm_columns<T>};
}

SoftmaxBwdRow find_softmax_bwd(bool logarithm, uint32_t dtype) {
  if constexpr (kHasVectors) {
    switch (dtype) {
      case BP_F32:
        return logarithm ? softmax_bwd<float, true> : softmax_bwd<float, false>;
      case BP_F16:
        return logarithm ? softmax_bwd<f16, true> : softmax_bwd<f16, false>;
      case BP_BF16:
        return logarithm ? softmax_bwd<bf16, true> : softmax_bwd<bf16, false>;
      default:
        return nullptr;
    }
  }
  return nullptr;
}

NormBwd find_norm_bwd(bool centred, uint32_t dtype) {
  if constexpr (kHasVectors) {
    switch (dtype) {
      case BP_F32:
        return norm_of<float>(centred);
      case BP_F16:
        return norm_of<f16>(centred);
      case BP_BF16:
        return norm_of<bf16>(centred);
      default:
        return {};
    }
  }
  return {};
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_softmax_bwd);
HWY_EXPORT(find_norm_bwd);
SoftmaxBwdRow softmax_bwd_row(bool logarithm, uint32_t dtype) {
  return HWY_DYNAMIC_DISPATCH(find_softmax_bwd)(logarithm, dtype);
}
NormBwd norm_bwd(bool centred, uint32_t dtype) { return HWY_DYNAMIC_DISPATCH(find_norm_bwd)(centred, dtype); }
}  // namespace backplane::onednn
#endif
