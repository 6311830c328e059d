// SPDX-License-Identifier: Apache-2.0
// The operator unary of f32, f16 and bf16, for functions whose vector form is short.
#include "simd/elementwise_function.hpp"

#include <backplane/ops.h>

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/elementwise_function.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

// Returns e^x - 1. The Taylor series of (e^x - 1) / x has an error of 0.2 u for |x| up to 1/2, where
// u = 2^-24. For larger |x|, the difference e^x - 1 loses at most 2 bits.
template <class D, class V>
HWY_INLINE V expm1_of(D d, V x) {
  const auto c = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  V p = hn::MulAdd(c(2.4801587e-5f), x, c(1.9841270e-4f));
  p = hn::MulAdd(p, x, c(1.3888889e-3f));
  p = hn::MulAdd(p, x, c(8.3333333e-3f));
  p = hn::MulAdd(p, x, c(4.1666667e-2f));
  p = hn::MulAdd(p, x, c(1.6666667e-1f));
  p = hn::MulAdd(p, x, c(0.5f));
  const V near = hn::MulAdd(hn::Mul(x, x), p, x);
  return hn::IfThenElse(hn::Lt(hn::Abs(x), c(0.5f)), near, hn::Sub(exp_of(d, x), c(1.0f)));
}

// Returns log(1 + x): the logarithm of the rounded sum s = 1 + x, plus (1 + x - s) / s, the first-order effect
// of the rounding.
template <class D, class V>
HWY_INLINE V log1p_of(D d, V x) {
  const V one = hn::Set(d, 1.0f), s = hn::Add(one, x), log = log_of(d, s);
  const V lost = hn::Sub(x, hn::Sub(s, one));
  const auto is_limit = hn::Or(hn::Eq(s, hn::Zero(d)), hn::Eq(s, hn::Inf(d)));
  return hn::IfThenElse(is_limit, log, hn::Add(log, hn::Div(lost, s)));
}

template <class D, class V>
HWY_INLINE V binary_log_of(D d, V x) {
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  return log2_of(d, x);
#else
  return hn::Mul(log_of(d, x), hn::Set(d, 1.44269502f));
#endif
}

// Returns log(1 + e^-|x|), the part of softplus that is added to max(x, 0).
template <class D, class V>
HWY_INLINE V soft_part(D d, V x) {
  return log1p_of(d, exp_of(d, hn::Neg(hn::Abs(x))));
}

// Returns x tanh(log(1 + e)) with e = e^x, where tanh(log(1 + e)) is n / (n + 2) with n = e (e + 2). The
// quotient is 1 from x = 20 on.
template <class D, class V>
HWY_INLINE V mish_of(D d, V x) {
  const V two = hn::Set(d, 2.0f), e = exp_of(d, at_most(d, x, 20.0f)), n = hn::Mul(e, hn::Add(e, two));
  return hn::Mul(x, hn::Div(n, hn::Add(n, two)));
}

template <class D, class V>
HWY_INLINE V hard_sigmoid_of(D d, V x) {
  const V sum = hn::Add(x, hn::Set(d, 3.0f));
  return hn::Mul(at_least(d, at_most(d, sum, 6.0f), 0.0f), hn::Set(d, 1.0f / 6));
}

// Returns the sign of x. Returns a zero or a NaN unchanged.
template <class D, class V>
HWY_INLINE V sign_of(D d, V x) {
  const auto has_sign = hn::Gt(hn::Abs(x), hn::Zero(d));
  return hn::IfThenElse(has_sign, hn::CopySign(hn::Set(d, 1.0f), x), x);
}

#define BACKPLANE_FUNCTION(id, Name, expression)         \
  struct Name {                                          \
    [[maybe_unused]] static constexpr uint32_t kId = id; \
    template <class D, class V>                          \
    HWY_INLINE V operator()(D d, V x) const {            \
      (void)d;                                           \
      return expression;                                 \
    }                                                    \
  };
BACKPLANE_FUNCTION(BP_UNARY_EXPM1, Expm1, expm1_of(d, x))
BACKPLANE_FUNCTION(BP_UNARY_EXP2, Exp2, exp2_of(d, at_least(d, at_most(d, x, 160.0f), -160.0f)))
BACKPLANE_FUNCTION(BP_UNARY_LOG1P, Log1p, log1p_of(d, x))
BACKPLANE_FUNCTION(BP_UNARY_LOG2, Log2, binary_log_of(d, x))
BACKPLANE_FUNCTION(BP_UNARY_LOG10, Log10, hn::Mul(log_of(d, x), hn::Set(d, 0.43429448f)))
BACKPLANE_FUNCTION(BP_UNARY_SIGN, Sign, sign_of(d, x))
BACKPLANE_FUNCTION(BP_UNARY_CEIL, Ceil, hn::Ceil(x))
BACKPLANE_FUNCTION(BP_UNARY_TRUNC, Trunc, hn::Trunc(x))
BACKPLANE_FUNCTION(BP_UNARY_FRAC, Frac, hn::Sub(x, hn::Trunc(x)))
BACKPLANE_FUNCTION(BP_UNARY_SOFTPLUS, Softplus, hn::Add(at_least(d, x, 0.0f), soft_part(d, x)))
BACKPLANE_FUNCTION(BP_UNARY_LOG_SIGMOID, LogSigmoid, hn::Sub(at_most(d, x, 0.0f), soft_part(d, x)))
BACKPLANE_FUNCTION(BP_UNARY_MISH, Mish, mish_of(d, x))
BACKPLANE_FUNCTION(BP_UNARY_HARD_SIGMOID, HardSigmoid, hard_sigmoid_of(d, x))
BACKPLANE_FUNCTION(BP_UNARY_HARD_SWISH, HardSwish, hn::Mul(x, hard_sigmoid_of(d, x)))
#undef BACKPLANE_FUNCTION

// Returns the kernel of the functor whose kId is `id`, or null if there is none.
template <class T, class... Functors>
VectorKernel kernel_of(uint32_t id) {
  VectorKernel kernel = nullptr;
  (void)((id == Functors::kId && (kernel = fastest_map1<T, Functors>(), true)) || ...);
  return kernel;
}

VectorKernel find_function(uint32_t function, uint32_t dtype) {
  return for_dtype<VectorKernel>(ShortFloats(), dtype, [&]<class T>() {
    return kernel_of<T, Expm1, Exp2, Log1p, Log2, Log10, Sign, Ceil, Trunc, Frac, Softplus, LogSigmoid, Mish,
                     HardSigmoid, HardSwish>(function);
  });
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_function);
VectorKernel function_kernel(uint32_t function, uint32_t dtype) {
  return HWY_DYNAMIC_DISPATCH(find_function)(function, dtype);
}
}  // namespace backplane::onednn
#endif
