// SPDX-License-Identifier: Apache-2.0
// Elementwise unary operators and activations of f32, f16 and bf16, and neg, abs and bitnot of
// integers.
#include <cmath>

#include "simd/elementwise.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/elementwise_unary.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

// Defines the functor of the operator or activation `id`.
#define BACKPLANE_UNARY(id, Name, expression)            \
  struct Name {                                          \
    [[maybe_unused]] static constexpr uint32_t kId = id; \
    template <class D, class V>                          \
    HWY_INLINE V operator()(D d, V x) const {            \
      (void)d;                                           \
      return expression;                                 \
    }                                                    \
  };
BACKPLANE_UNARY(BP_OP_NEG, Neg, hn::Neg(x))
BACKPLANE_UNARY(BP_OP_ABS, Abs, hn::Abs(x))
BACKPLANE_UNARY(BP_OP_FLOOR, Floor, hn::Floor(x))
BACKPLANE_UNARY(BP_OP_RINT, Rint, hn::Round(x))
BACKPLANE_UNARY(BP_OP_SQRT, Sqrt, hn::Sqrt(x))
BACKPLANE_UNARY(BP_OP_RSQRT, Rsqrt, hn::Div(hn::Set(d, 1.0f), hn::Sqrt(x)))
BACKPLANE_UNARY(BP_OP_EXP, Exp, exp_of(d, x))
BACKPLANE_UNARY(BP_OP_LOG, Log, log_of(d, x))
BACKPLANE_UNARY(BP_OP_SIN, Sin, sin_of(d, x))
BACKPLANE_UNARY(BP_OP_COS, Cos, cos_of(d, x))
BACKPLANE_UNARY(BP_OP_TANH, Tanh, tanh_of(d, x))
BACKPLANE_UNARY(BP_OP_ERF, Erf, erf_of(d, x))
BACKPLANE_UNARY(BP_OP_BITNOT, BitNot, hn::Not(x))
BACKPLANE_UNARY(BP_ACTIVATION_RELU, Relu, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x))
BACKPLANE_UNARY(BP_ACTIVATION_GELU_ERF, GeluErf, gelu_erf_of(d, x))
BACKPLANE_UNARY(BP_ACTIVATION_GELU_TANH, GeluTanh, gelu_tanh_of(d, x))
BACKPLANE_UNARY(BP_ACTIVATION_SILU, Silu, silu_of(d, x))
BACKPLANE_UNARY(BP_ACTIVATION_SIGMOID, Sigmoid, sigmoid_of(d, x))
BACKPLANE_UNARY(BP_OP_EXP, ExpHalf, exp_half(d, x))
BACKPLANE_UNARY(BP_OP_TANH, TanhHalf, tanh_half(d, x))
BACKPLANE_UNARY(BP_OP_ERF, ErfHalf, erf_half(d, x))
BACKPLANE_UNARY(BP_ACTIVATION_SILU, SiluHalf, sigmoid_product_half(d, x, x))
BACKPLANE_UNARY(BP_ACTIVATION_SIGMOID, SigmoidHalf, sigmoid_product_half(d, hn::Set(d, 1.0f), x))
#undef BACKPLANE_UNARY

#if HWY_TARGET != HWY_SCALAR
}  // namespace

// Specialises PairForm (pairs-inl.h), so that fastest_map1 computes the functor `Name` in another form.
#define BACKPLANE_PAIR_FORM(Name, ...) \
  template <class T>                   \
  struct PairForm<Name, T> {           \
    using type = __VA_ARGS__;          \
  };
BACKPLANE_PAIR_FORM(Exp, EachOfPair<ExpHalf>)
BACKPLANE_PAIR_FORM(Tanh, EachOfPair<TanhHalf>)
BACKPLANE_PAIR_FORM(Erf, EachOfPair<ErfHalf>)
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
BACKPLANE_PAIR_FORM(GeluErf, Gated<GeluErf>)
BACKPLANE_PAIR_FORM(GeluTanh, Gated<GeluTanh>)
// For 16-bit floats, SiluHalf and SigmoidHalf are accurate enough. They compute a quotient with a short
// polynomial of the exponential, which needs no lookups in a table.
BACKPLANE_PAIR_FORM(Silu, std::conditional_t<kit::Half<T>, EachOfPair<SiluHalf>, Gated<Silu>>)
BACKPLANE_PAIR_FORM(Sigmoid, std::conditional_t<kit::Half<T>, EachOfPair<SigmoidHalf>, Gated<Sigmoid>>)
#endif
#undef BACKPLANE_PAIR_FORM

namespace {
#endif

template <class Out, class In, class F>
VectorKernel kernel_for() {
  if constexpr (std::same_as<In, Out>) {
    return fastest_map1<In, F>();
  } else {
    return map1<Out, In, F>;
  }
}

// Returns the kernel of the functor whose kId is `id`, or null if there is none.
template <class Out, class In, class... Functors>
VectorKernel kernel_of(uint32_t id) {
  VectorKernel kernel = nullptr;
  (void)((id == Functors::kId && (kernel = kernel_for<Out, In, Functors>(), true)) || ...);
  return kernel;
}

VectorKernel find_activation(uint32_t activation, uint32_t from, uint32_t to) {
  return for_dtype<VectorKernel>(ShortFloats(), from, [&]<class From>() {
    return for_dtype<VectorKernel>(ShortFloats(), to, [&]<class To>() -> VectorKernel {
      if constexpr (std::same_as<From, To> || std::same_as<From, float>) {
        return kernel_of<To, From, Relu, GeluErf, GeluTanh, Silu, Sigmoid>(activation);
      }
      return nullptr;
    });
  });
}

VectorKernel find_unary(uint32_t op, uint32_t dtype) {
  return for_dtype<VectorKernel>(
      kit::Types<float, f16, bf16, int8_t, int32_t, uint8_t, uint32_t>(), dtype, [&]<class T>() {
        if constexpr (kit::Floating<T>) {
          return kernel_of<T, T, Neg, Abs, Floor, Rint, Sqrt, Rsqrt, Exp, Log, Sin, Cos, Tanh, Erf>(op);
        } else if constexpr (std::is_signed_v<T>) {
          return kernel_of<T, T, Neg, Abs, BitNot>(op);
        } else {
          return kernel_of<T, T, BitNot>(op);
        }
      });
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_activation);
HWY_EXPORT(find_unary);
VectorKernel activation_kernel(uint32_t activation, uint32_t from, uint32_t to) {
  return HWY_DYNAMIC_DISPATCH(find_activation)(activation, from, to);
}
VectorKernel unary_kernel(uint32_t op, uint32_t dtype) { return HWY_DYNAMIC_DISPATCH(find_unary)(op, dtype); }
}  // namespace backplane::onednn
#endif
