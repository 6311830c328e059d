// SPDX-License-Identifier: Apache-2.0
// The inner loop of adamw. It reads the gradient, the parameter and both moments once, and writes
// the parameter and the moments once.
#include <cmath>

#include "simd/optimizer_adamw.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/optimizer_adamw.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

// T, P and R are the types of the gradient, the parameter and the moments.
template <class T, class P, class R>
void adamw(const AdamwStep& step, const void* gradient, void* parameter, void* first, void* second, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto c = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  const auto keep1 = c(step.keep1), add1 = c(step.add1), keep2 = c(step.keep2), add2 = c(step.add2);
  const auto correction2 = c(step.correction2), epsilon = c(step.epsilon), rate = c(step.rate), decay = c(step.decay);
  const auto one = [&](const T* g, P* p, R* m, R* v) HWY_ATTR {
    const auto x = load(d, g), before = load(d, static_cast<const P*>(p));
    const auto moment = hn::Add(hn::Mul(load(d, static_cast<const R*>(m)), keep1), hn::Mul(x, add1));
    const auto square = hn::Add(hn::Mul(load(d, static_cast<const R*>(v)), keep2), hn::Mul(hn::Mul(x, x), add2));
    const auto root = hn::Sqrt(hn::Div(square, correction2));
    const auto change = hn::Mul(hn::Div(moment, hn::Add(root, epsilon)), rate);
    store(d, hn::Sub(hn::Sub(before, hn::Mul(before, decay)), change), p);
    store(d, moment, m);
    store(d, square, v);
  };
  const auto* g = static_cast<const T*>(gradient);
  auto* p = static_cast<P*>(parameter);
  auto *m = static_cast<R*>(first), *v = static_cast<R*>(second);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) one(g + i, p + i, m + i, v + i);
  if (i == count) return;
  constexpr size_t kMost = HWY_MAX_BYTES / sizeof(float);
  T rest_g[kMost] = {};
  P rest_p[kMost] = {};
  R rest_m[kMost] = {}, rest_v[kMost] = {};
  const auto left = static_cast<size_t>(count - i);
  std::memcpy(rest_g, g + i, left * sizeof(T));
  std::memcpy(rest_p, p + i, left * sizeof(P));
  std::memcpy(rest_m, m + i, left * sizeof(R));
  std::memcpy(rest_v, v + i, left * sizeof(R));
  one(rest_g, rest_p, rest_m, rest_v);
  std::memcpy(p + i, rest_p, left * sizeof(P));
  std::memcpy(m + i, rest_m, left * sizeof(R));
  std::memcpy(v + i, rest_v, left * sizeof(R));
}

AdamwKernel find_adamw(uint32_t gradient, uint32_t parameter, uint32_t moments) {
  return for_dtype<AdamwKernel>(ShortFloats(), gradient, [&]<class T>() {
    if (parameter == BP_F32) return adamw<T, float, float>;
    return moments == BP_F32 ? adamw<T, T, float> : adamw<T, T, T>;
  });
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_adamw);
AdamwKernel adamw_kernel(uint32_t gradient, uint32_t parameter, uint32_t moments) {
  return HWY_DYNAMIC_DISPATCH(find_adamw)(gradient, parameter, moments);
}
}  // namespace backplane::onednn
#endif
