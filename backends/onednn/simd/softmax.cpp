// SPDX-License-Identifier: Apache-2.0
// The operators softmax and log_softmax along a contiguous row.
#include <cmath>
#include <limits>

#include "simd/softmax.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/softmax.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/accumulate-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

// A step for each_vector. It computes the maximum per lane. NaN propagates.
struct Maximum {
  V maximum;
  HWY_INLINE void operator()(D, V x, int64_t) {
    maximum = hn::IfThenElse(hn::Or(hn::Gt(maximum, x), hn::IsNaN(maximum)), maximum, x);
  }
};

template <class T>
float maximum_of(D d, const T* x, int64_t count) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  Maximum step{hn::Set(d, kLowest)};
  each_vector(d, x, count, kLowest, step);
  HWY_ALIGN float lanes[kMaxLanes];
  hn::Store(step.maximum, d, lanes);
  float maximum = lanes[0];
  for (size_t i = 1; i < hn::Lanes(d); ++i) maximum = maximum > lanes[i] || maximum != maximum ? maximum : lanes[i];
  return maximum;
}

// A step for each_vector. It sums e^(x - maximum). If kKeep is set, the exponentials are stored in
// y.
template <class T, bool kKeep>
struct Exponentials {
  T* y;
  int64_t count;
  V maximum;
  Total total;
  HWY_INLINE void operator()(D d, V x, [[maybe_unused]] int64_t i) {
    const V e = exp_of(d, hn::Sub(x, maximum));
    total.add(d, e);
    if constexpr (kKeep) store_at(d, e, y, i, count);
  }
};
struct Scaled {
  V factor;
  HWY_INLINE V operator()(D, V e, int64_t) const { return hn::Mul(e, factor); }
};
struct Limited {
  V softcap;
  HWY_INLINE V operator()(D d, V x, int64_t) const { return hn::Mul(tanh_of(d, hn::Div(x, softcap)), softcap); }
};
struct ScaledExponential {
  V maximum, factor;
  HWY_INLINE V operator()(D d, V x, int64_t) const { return hn::Mul(exp_of(d, hn::Sub(x, maximum)), factor); }
};
struct LogSoftmax {
  V maximum, log_sum;
  HWY_INLINE V operator()(D, V x, int64_t) const { return hn::Sub(hn::Sub(x, maximum), log_sum); }
};

template <class T, bool kLogarithm>
void softmax(const void* from, void* to, int64_t count) {
  const D d;
  const auto* x = static_cast<const T*>(from);
  auto* y = static_cast<T*>(to);
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  const V maximum = hn::Set(d, maximum_of(d, x, count));
  constexpr bool kKeep = !kLogarithm && sizeof(T) == sizeof(float);
  Exponentials<T, kKeep> exponentials{y, count, maximum, Total(d)};
  each_vector(d, x, count, kLowest, exponentials);
  const double sum = exponentials.total.get(d);
  if constexpr (kLogarithm) {
    Write<T, LogSoftmax> write{y, count, {maximum, hn::Set(d, static_cast<float>(std::log(sum)))}};
    each_vector(d, x, count, kLowest, write);
  } else {
    const V factor = hn::Set(d, static_cast<float>(1 / sum));
    if constexpr (kKeep) {
      Write<T, Scaled> write{y, count, {factor}};
      each_vector(d, static_cast<const T*>(y), count, 0.0f, write);
    } else {
      Write<T, ScaledExponential> write{y, count, {maximum, factor}};
      each_vector(d, x, count, kLowest, write);
    }
  }
}

[[maybe_unused]] float maximum_step(const float* x, int64_t count) { return maximum_of(D(), x, count); }
[[maybe_unused]] double exponentials_step(float* x, int64_t count, float maximum) {
  const D d;
  Exponentials<float, true> exponentials{x, count, hn::Set(d, maximum), Total(d)};
  each_vector(d, static_cast<const float*>(x), count, -std::numeric_limits<float>::infinity(), exponentials);
  return exponentials.total.get(d);
}
[[maybe_unused]] void scale_step(float* x, int64_t count, float factor) {
  const D d;
  Write<float, Scaled> write{x, count, {hn::Set(d, factor)}};
  each_vector(d, static_cast<const float*>(x), count, 0.0f, write);
}
[[maybe_unused]] void limit_step(float* x, int64_t count, float softcap) {
  const D d;
  Write<float, Limited> write{x, count, {hn::Set(d, softcap)}};
  each_vector(d, static_cast<const float*>(x), count, 0.0f, write);
}
SoftmaxSteps find_softmax_steps() {
  if constexpr (kHasVectors) return {maximum_step, exponentials_step, scale_step, limit_step};
  return {};
}

SoftmaxKernel find_softmax(bool logarithm, uint32_t dtype) {
  return for_dtype<SoftmaxKernel>(ShortFloats(), dtype,
                                  [&]<class T>() { return logarithm ? softmax<T, true> : softmax<T, false>; });
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_softmax);
HWY_EXPORT(find_softmax_steps);
SoftmaxKernel softmax_kernel(bool logarithm, uint32_t dtype) {
  return HWY_DYNAMIC_DISPATCH(find_softmax)(logarithm, dtype);
}
SoftmaxSteps softmax_steps() { return HWY_DYNAMIC_DISPATCH(find_softmax_steps)(); }
}  // namespace backplane::onednn
#endif
