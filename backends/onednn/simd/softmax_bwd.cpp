// SPDX-License-Identifier: Apache-2.0
// The operator softmax_bwd along a contiguous row.
#include "simd/softmax.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/softmax_bwd.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/accumulate-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
SoftmaxBwdKernel find_softmax_bwd(bool, uint32_t) { return nullptr; }
#else
template <class T, bool kLogarithm>
void softmax_bwd(const void* gradient, const void* result, void* to, int64_t count) {
  const D d;
  const auto lanes = static_cast<int64_t>(2 * hn::Lanes(d));
  const auto *dy = static_cast<const T*>(gradient), *y = static_cast<const T*>(result);
  auto* dx = static_cast<T*>(to);
  Total sum(d);
  for (int64_t i = 0; i < count; i += lanes) {
    const Pair<V> upstream = load_pair_at(d, dy, i, count);
    if constexpr (kLogarithm) {
      sum.add(d, hn::Add(upstream.first, upstream.second));
    } else {
      const Pair<V> at = load_pair_at(d, y, i, count);
      sum.add(d, hn::MulAdd(upstream.first, at.first, hn::Mul(upstream.second, at.second)));
    }
  }
  const V total = hn::Set(d, static_cast<float>(sum.get(d)));
  const auto slope = [&](V upstream, V at) HWY_ATTR {
    return kLogarithm ? hn::NegMulAdd(exp_of(d, at), total, upstream) : hn::Mul(at, hn::Sub(upstream, total));
  };
  for (int64_t i = 0; i < count; i += lanes) {
    const Pair<V> upstream = load_pair_at(d, dy, i, count), at = load_pair_at(d, y, i, count);
    store_pair_at(d, {slope(upstream.first, at.first), slope(upstream.second, at.second)}, dx, i, count);
  }
}

SoftmaxBwdKernel find_softmax_bwd(bool logarithm, uint32_t dtype) {
  return for_dtype<SoftmaxBwdKernel>(
      ShortFloats(), dtype, [&]<class T>() { return logarithm ? softmax_bwd<T, true> : softmax_bwd<T, false>; });
}
#endif

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_softmax_bwd);
SoftmaxBwdKernel softmax_bwd_kernel(bool logarithm, uint32_t dtype) {
  return HWY_DYNAMIC_DISPATCH(find_softmax_bwd)(logarithm, dtype);
}
}  // namespace backplane::onednn
#endif
