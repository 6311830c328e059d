// SPDX-License-Identifier: Apache-2.0
// out = f(x) for each element.
#include "math.h"
#include "nest.h"

#define UNARY(Name, expression)                                \
  struct Name {                                                \
    typedef SIMT_T::Bits Out;                                  \
    typedef SIMT_T::Bits In;                                   \
    SIMT_FN static Out apply(In x, u32) { return expression; } \
  };

#if SIMT_IS_FLOAT
#define FUNCTION(Name, function) UNARY(Name, SIMT_T::bits(function(SIMT_T::value(x))))
// The sign operators and the rounding operators avoid arithmetic that could flush subnormals or
// quiet a NaN.
#define SIGN_BIT ((SIMT_T::Bits)(1u << (SIMT_T::kBits - 1)))
SIMT_FN float sin_f32(float x) { return sin_cos_f32(x, 0u); }
SIMT_FN float cos_f32(float x) { return sin_cos_f32(x, 1u); }
UNARY(Neg, x ^ SIGN_BIT)
UNARY(Abs, x&(SIMT_T::Bits)~SIGN_BIT)
UNARY(Floor, SIMT_T::is_nan(x) ? x : SIMT_T::bits(round_down(SIMT_T::value(x))) | (x & SIGN_BIT))
UNARY(Rint, SIMT_T::is_nan(x) ? x : SIMT_T::bits(round_even(SIMT_T::value(x))) | (x & SIGN_BIT))
FUNCTION(Sqrt, sqrt_f32)
FUNCTION(Rsqrt, rsqrt_f32)
FUNCTION(Exp, exp_f32)
FUNCTION(Log, log_f32)
FUNCTION(Sin, sin_f32)
FUNCTION(Cos, cos_f32)
FUNCTION(Tanh, tanh_f32)
FUNCTION(Erf, erf_f32)
FUNCTION(GeluErf, gelu_erf_f32)
FUNCTION(GeluTanh, gelu_tanh_f32)
FUNCTION(Silu, silu_f32)
FUNCTION(Sigmoid, sigmoid_f32)
SIMT_MAP1(neg, Neg)
SIMT_MAP1(abs, Abs)
SIMT_MAP1(floor, Floor)
SIMT_MAP1(rint, Rint)
SIMT_MAP1(sqrt, Sqrt)
SIMT_MAP1(rsqrt, Rsqrt)
SIMT_MAP1(exp, Exp)
SIMT_MAP1(log, Log)
SIMT_MAP1(sin, Sin)
SIMT_MAP1(cos, Cos)
SIMT_MAP1(tanh, Tanh)
SIMT_MAP1(erf, Erf)
SIMT_MAP1(gelu_0, GeluErf)
SIMT_MAP1(gelu_1, GeluTanh)
SIMT_MAP1(silu, Silu)
SIMT_MAP1(sigmoid, Sigmoid)
#elif SIMT_IS_BOOL
UNARY(Bitnot, x == 0)
SIMT_MAP1(bitnot, Bitnot)
#else
UNARY(Neg, (SIMT_T::Bits)0 - x)
UNARY(Abs, SIMT_T::value(x) < 0 ? (SIMT_T::Bits)((SIMT_T::Bits)0 - x) : x)
UNARY(Bitnot, (SIMT_T::Bits)~x)
SIMT_MAP1(neg, Neg)
#if SIMT_IS_SIGNED
SIMT_MAP1(abs, Abs)
#else
UNARY(Same, x)
SIMT_MAP1(abs, Same)
#endif
SIMT_MAP1(bitnot, Bitnot)
#endif
