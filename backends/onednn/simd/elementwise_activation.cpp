// SPDX-License-Identifier: Apache-2.0
// The operator activation_bwd.
#include "simd/elementwise_activation.hpp"

#include <backplane/ops.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/elementwise_activation.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

// Limits x, so that no power of x overflows. The slopes at the limits are 0 and 1.
template <class D, class V>
HWY_INLINE V limited(D d, V x) {
  return hn::Max(hn::Min(x, hn::Set(d, 16384.0f)), hn::Set(d, -16384.0f));
}

// Returns dy times the slope at x. A NaN in x gives NaN, although limited() loses it.
template <class D, class V>
HWY_INLINE V product(D, V dy, V x, V slope) {
  return hn::Mul(dy, hn::IfThenElse(hn::IsNaN(x), x, slope));
}

// Returns the slope of x sigmoid(w), where `derivative` is dw/dx: g (1 + x w' r) with g = sigmoid(w)
// and r = sigmoid(-w). The difference 1 - g would cancel.
template <class D, class V>
HWY_INLINE V gate_slope(D d, V x, V w, V derivative) {
  const V r = sigmoid_of(d, hn::Neg(w));
  return hn::Mul(sigmoid_of(d, w), hn::MulAdd(hn::Mul(x, derivative), r, hn::Set(d, 1.0f)));
}

struct Relu {
  static constexpr uint32_t kId = BP_ACTIVATION_RELU;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy, V z) const {
    return hn::IfThenElse(hn::Le(z, hn::Zero(d)), hn::Zero(d), dy);
  }
};

// The slope of gelu(x) = x Phi(x) is Phi(x) + x phi(x). Phi(x) is gelu(x) / x, and 1 / 2 near 0.
struct GeluErf {
  static constexpr uint32_t kId = BP_ACTIVATION_GELU_ERF;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy, V z) const {
    const V x = limited(d, z);
    const auto is_tiny = hn::Lt(hn::Abs(x), hn::Set(d, 1e-20f));
    const V distribution = hn::IfThenElse(is_tiny, hn::Set(d, 0.5f), hn::Div(gelu_erf_of(d, x), x));
    const V density = hn::Mul(hn::Set(d, 0.39894228f), exp_of(d, hn::Mul(hn::Mul(x, hn::Set(d, -0.5f)), x)));
    return product(d, dy, z, hn::MulAdd(x, density, distribution));
  }
};

// w = 2 sqrt(2 / pi) (x + 0.044715 x^3)
struct GeluTanh {
  static constexpr uint32_t kId = BP_ACTIVATION_GELU_TANH;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy, V z) const {
    const V x = limited(d, z), square = hn::Mul(x, x), linear = hn::Set(d, 1.59576912f);
    const V w = hn::Mul(x, hn::MulAdd(square, hn::Set(d, 0.071354816f), linear));
    return product(d, dy, z, gate_slope(d, x, w, hn::MulAdd(square, hn::Set(d, 0.21406445f), linear)));
  }
};

struct Silu {
  static constexpr uint32_t kId = BP_ACTIVATION_SILU;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy, V z) const {
    const V x = limited(d, z);
    return product(d, dy, z, gate_slope(d, x, x, hn::Set(d, 1.0f)));
  }
};

struct Sigmoid {
  static constexpr uint32_t kId = BP_ACTIVATION_SIGMOID;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy, V y) const {
    return hn::Mul(dy, hn::Mul(y, hn::Sub(hn::Set(d, 1.0f), y)));
  }
};

struct Tanh {
  static constexpr uint32_t kId = BP_ACTIVATION_TANH;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy, V y) const {
    return hn::Mul(dy, hn::NegMulAdd(y, y, hn::Set(d, 1.0f)));
  }
};

// Returns the kernel of the functor whose kId is `id`, or null if there is none.
template <class T, class... Functors>
VectorKernel kernel_of(uint32_t id) {
  VectorKernel kernel = nullptr;
  (void)((id == Functors::kId && (kernel = map2<T, Functors>, true)) || ...);
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
