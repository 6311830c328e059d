// SPDX-License-Identifier: Apache-2.0
// The inner loops of softmax and the norms. Sums have two stages: blocks in vectors of f32, totals of blocks in f64.
#include <cmath>
#include <limits>

#include "simd/norm.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/norm.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "simd/accumulate-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

struct Greatest {
  V most;
  HWY_INLINE void operator()(D, V x, int64_t) {
    most = hn::IfThenElse(hn::Or(hn::Gt(most, x), hn::IsNaN(most)), most, x);
  }
};

template <class T>
float greatest_of(D d, const T* x, int64_t count) {
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  Greatest step{hn::Set(d, kLeast)};
  each_vector(d, x, count, kLeast, step);
  HWY_ALIGN float lanes[kMost];
  hn::Store(step.most, d, lanes);
  float most = lanes[0];
  for (size_t i = 1; i < hn::Lanes(d); ++i) most = most > lanes[i] || most != most ? most : lanes[i];
  return most;
}

// e^(x - greatest), summed; kept in y where y is f32.
template <class T, bool kKeep>
struct Exponentials {
  T* y;
  int64_t count;
  V greatest;
  Total total;
  HWY_INLINE void operator()(D d, V x, int64_t i) {
    const V e = exp_of(d, hn::Sub(x, greatest));
    total.add(d, e);
    if constexpr (kKeep) {
      const auto lanes = static_cast<int64_t>(hn::Lanes(d));
      i + lanes <= count ? store(d, e, y + i) : store_part(d, e, y + i, count - i);
    }
  }
};
struct Scaled {
  V factor;
  HWY_INLINE V operator()(D, V e, int64_t) const { return hn::Mul(e, factor); }
};
struct ScaledExponential {
  V greatest, factor;
  HWY_INLINE V operator()(D d, V x, int64_t) const { return hn::Mul(exp_of(d, hn::Sub(x, greatest)), factor); }
};
struct Below {
  V greatest, log_sum;
  HWY_INLINE V operator()(D, V x, int64_t) const { return hn::Sub(hn::Sub(x, greatest), log_sum); }
};

template <class T, bool kLogarithm>
void softmax(const void* from, void* to, int64_t count) {
  const D d;
  const auto* x = static_cast<const T*>(from);
  auto* y = static_cast<T*>(to);
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  const V greatest = hn::Set(d, greatest_of(d, x, count));
  constexpr bool kKeep = !kLogarithm && sizeof(T) == sizeof(float);
  Exponentials<T, kKeep> exponentials{y, count, greatest, Total(d)};
  each_vector(d, x, count, kLeast, exponentials);
  const double sum = exponentials.total.get(d);
  if constexpr (kLogarithm) {
    Write<T, Below> write{y, count, {greatest, hn::Set(d, static_cast<float>(std::log(sum)))}};
    each_vector(d, x, count, kLeast, write);
  } else {
    const V factor = hn::Set(d, static_cast<float>(1 / sum));
    if constexpr (kKeep) {
      Write<T, Scaled> write{y, count, {factor}};
      each_vector(d, static_cast<const T*>(y), count, 0.0f, write);
    } else {
      Write<T, ScaledExponential> write{y, count, {greatest, factor}};
      each_vector(d, x, count, kLeast, write);
    }
  }
}

template <class T>
struct Affine {
  const T *gamma, *beta;
  int64_t count;
  V mean, rstd;
  HWY_INLINE V operator()(D d, V x, int64_t i) const {
    V result = hn::Mul(hn::Sub(x, mean), rstd);
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const bool whole = i + lanes <= count;
    if (gamma != nullptr) result = hn::Mul(result, whole ? load(d, gamma + i) : load_part(d, gamma + i, count - i, 0));
    if (beta != nullptr) result = hn::Add(result, whole ? load(d, beta + i) : load_part(d, beta + i, count - i, 0));
    return result;
  }
};

template <class T, bool kCentred>
Moments norm(const void* from, const void* gamma, const void* beta, void* to, int64_t count, double epsilon) {
  const D d;
  const auto* x = static_cast<const T*>(from);
  const Moments moments = moments_of<kCentred>(d, x, count, epsilon);
  const auto mean = static_cast<float>(moments.mean);
  Write<T, Affine<T>> write{static_cast<T*>(to),
                            count,
                            {static_cast<const T*>(gamma), static_cast<const T*>(beta), count, hn::Set(d, mean),
                             hn::Set(d, static_cast<float>(moments.rstd))}};
  each_vector(d, x, count, mean, write);
  return moments;
}

struct ChannelAffine {
  V mean, rstd, gamma, beta;
  HWY_INLINE V operator()(D, V x, int64_t) const {
    return hn::Add(hn::Mul(hn::Mul(hn::Sub(x, mean), rstd), gamma), beta);
  }
};

template <class T>
Moments group(const void* from, const void* gamma, const void* beta, void* to, int64_t channels, int64_t plane,
              double epsilon) {
  const D d;
  const auto* x = static_cast<const T*>(from);
  const Moments moments = moments_of<true>(d, x, channels * plane, epsilon);
  const auto mean = static_cast<float>(moments.mean);
  const auto parameter = [&](const void* all, int64_t channel, float otherwise) {
    return hn::Set(d, all == nullptr ? otherwise : static_cast<float>(static_cast<const T*>(all)[channel]));
  };
  for (int64_t c = 0; c < channels; ++c) {
    Write<T, ChannelAffine> write{static_cast<T*>(to) + c * plane,
                                  plane,
                                  {hn::Set(d, mean), hn::Set(d, static_cast<float>(moments.rstd)),
                                   parameter(gamma, c, 1), parameter(beta, c, 0)}};
    each_vector(d, x + c * plane, plane, mean, write);
  }
  return moments;
}

GroupRow find_group(uint32_t dtype) {
  if constexpr (kHasVectors) {
    return dtype == BP_F32 ? group<float> : dtype == BP_F16 ? group<f16> : dtype == BP_BF16 ? group<bf16> : nullptr;
  }
  return nullptr;
}

[[maybe_unused]] float greatest_step(const float* x, int64_t count) { return greatest_of(D(), x, count); }
[[maybe_unused]] double exponentials_step(float* x, int64_t count, float greatest) {
  const D d;
  Exponentials<float, true> exponentials{x, count, hn::Set(d, greatest), Total(d)};
  each_vector(d, static_cast<const float*>(x), count, -std::numeric_limits<float>::infinity(), exponentials);
  return exponentials.total.get(d);
}
[[maybe_unused]] void scale_step(float* x, int64_t count, float factor) {
  const D d;
  Write<float, Scaled> write{x, count, {hn::Set(d, factor)}};
  each_vector(d, static_cast<const float*>(x), count, 0.0f, write);
}
SoftmaxSteps find_steps() {
  if constexpr (kHasVectors) return {greatest_step, exponentials_step, scale_step};
  return {};
}

SoftmaxRow find_softmax(bool logarithm, uint32_t dtype) {
  if constexpr (kHasVectors) {
    switch (dtype) {
      case BP_F32:
        return logarithm ? softmax<float, true> : softmax<float, false>;
      case BP_F16:
        return logarithm ? softmax<f16, true> : softmax<f16, false>;
      case BP_BF16:
        return logarithm ? softmax<bf16, true> : softmax<bf16, false>;
      default:
        return nullptr;
    }
  }
  return nullptr;
}

NormRow find_norm(bool centred, uint32_t dtype) {
  if constexpr (kHasVectors) {
    switch (dtype) {
      case BP_F32:
        return centred ? norm<float, true> : norm<float, false>;
      case BP_F16:
        return centred ? norm<f16, true> : norm<f16, false>;
      case BP_BF16:
        return centred ? norm<bf16, true> : norm<bf16, false>;
      default:
        return nullptr;
    }
  }
  return nullptr;
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_softmax);
HWY_EXPORT(find_norm);
HWY_EXPORT(find_group);
HWY_EXPORT(find_steps);
SoftmaxRow softmax_row(bool logarithm, uint32_t dtype) { return HWY_DYNAMIC_DISPATCH(find_softmax)(logarithm, dtype); }
SoftmaxSteps softmax_steps() { return HWY_DYNAMIC_DISPATCH(find_steps)(); }
GroupRow group_row(uint32_t dtype) { return HWY_DYNAMIC_DISPATCH(find_group)(dtype); }
NormRow norm_row(bool centred, uint32_t dtype) { return HWY_DYNAMIC_DISPATCH(find_norm)(centred, dtype); }
}  // namespace backplane::onednn
#endif
