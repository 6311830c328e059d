// SPDX-License-Identifier: Apache-2.0
// The operator activation_bwd.
#include "simd/elementwise_activation.hpp"

#include <backplane/ops.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/elementwise_activation.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

// Limits x to [-16384, 16384], so that no power of x overflows. Beyond these limits, the slope remains 0 or 1.
template <class D, class V>
HWY_INLINE V limited(D d, V x) {
  return at_least(d, at_most(d, x, 16384.0f), -16384.0f);
}

// Returns the slope of x sigmoid(w), where `derivative` is dw/dx: g (1 + x w' r) with g = sigmoid(w) and r =
// sigmoid(-w). r is not computed as 1 - g, because this difference would cancel.
template <class D, class V>
HWY_INLINE V gate_slope(D d, V x, V w, V derivative) {
  const V one = hn::Set(d, 1.0f);
  const V e = exp_in_range(d, at_least(d, hn::Neg(hn::Abs(w)), -104.0f));
  const V large = hn::Div(one, hn::Add(one, e)), small = hn::Mul(e, large);
  const auto negative = hn::Lt(w, hn::Zero(d));
  const V g = hn::IfThenElse(negative, small, large), r = hn::IfThenElse(negative, large, small);
  return hn::Mul(g, hn::MulAdd(hn::Mul(x, derivative), r, one));
}

struct Relu {
  [[maybe_unused]] static constexpr uint32_t kId = BP_ACTIVATION_RELU;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy, V z) const {
    return hn::IfThenElse(hn::Le(z, hn::Zero(d)), hn::Zero(d), dy);
  }
};

// The slope of gelu(x) = x Phi(x) is Phi(x) + x phi(x), where phi is the normal density and Phi its integral.
// With a = |x|, the slope at -a is Phi(-a) - a phi(a), and the slope at a is 1 minus the slope at -a.
struct GeluErf {
  [[maybe_unused]] static constexpr uint32_t kId = BP_ACTIVATION_GELU_ERF;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy, V x) const {
    const auto [a, power, factor] = gelu_erf_tail(d, x);
    const V left = hn::Mul(power, hn::NegMulAdd(a, hn::Set(d, 0.39894228f), factor));
    return hn::Mul(dy, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), left, hn::Sub(hn::Set(d, 1.0f), left)));
  }
};

// gelu with tanh is x sigmoid(w) with w = 2 sqrt(2 / pi) (x + 0.044715 x^3).
struct GeluTanh {
  [[maybe_unused]] static constexpr uint32_t kId = BP_ACTIVATION_GELU_TANH;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy, V z) const {
    const V x = limited(d, z), square = hn::Mul(x, x), linear = hn::Set(d, 1.59576912f);
    const V w = hn::Mul(x, hn::MulAdd(square, hn::Set(d, 0.071354816f), linear));
    return hn::Mul(dy, gate_slope(d, x, w, hn::MulAdd(square, hn::Set(d, 0.21406445f), linear)));
  }
};

struct Silu {
  [[maybe_unused]] static constexpr uint32_t kId = BP_ACTIVATION_SILU;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy, V z) const {
    const V x = limited(d, z);
    return hn::Mul(dy, gate_slope(d, x, x, hn::Set(d, 1.0f)));
  }
};

struct Sigmoid {
  [[maybe_unused]] static constexpr uint32_t kId = BP_ACTIVATION_SIGMOID;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy, V y) const {
    return hn::Mul(dy, hn::Mul(y, hn::Sub(hn::Set(d, 1.0f), y)));
  }
};

struct Tanh {
  [[maybe_unused]] static constexpr uint32_t kId = BP_ACTIVATION_TANH;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy, V y) const {
    return hn::Mul(dy, hn::NegMulAdd(y, y, hn::Set(d, 1.0f)));
  }
};

}  // namespace

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
template <class T>
struct PairForm<GeluErf, T> {
  using type = GatedBackward<GeluErf>;
};
template <class T>
struct PairForm<GeluTanh, T> {
  using type = GatedBackward<GeluTanh>;
};
template <class T>
struct PairForm<Silu, T> {
  using type = GatedBackward<Silu>;
};
#endif

namespace {

// Returns the kernel of the functor whose kId is `id`, or null if there is none.
template <class T, class... Functors>
VectorKernel kernel_of(uint32_t id) {
  VectorKernel kernel = nullptr;
  (void)((id == Functors::kId && (kernel = fastest_map2<T, Functors>(), true)) || ...);
  return kernel;
}

VectorKernel find_activation_bwd(uint32_t activation, uint32_t dtype) {
  return for_dtype<VectorKernel>(ShortFloats(), dtype, [&]<class T>() {
    return kernel_of<T, Relu, GeluErf, GeluTanh, Silu, Sigmoid, Tanh>(activation);
  });
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_activation_bwd);
VectorKernel activation_bwd_kernel(uint32_t activation, uint32_t dtype) {
  return HWY_DYNAMIC_DISPATCH(find_activation_bwd)(activation, dtype);
}
}  // namespace backplane::onednn
#endif
