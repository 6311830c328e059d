// SPDX-License-Identifier: Apache-2.0
// Rows of the unary operators: f32, the halves through f32, and the integers' neg, abs and bitnot; rows of activations.
#include <cmath>

#include "ops/vector_loop.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/elementwise_unary.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

#define BACKPLANE_UNARY(Name, expression)     \
  struct Name {                               \
    template <class D, class V>               \
    HWY_INLINE V operator()(D d, V x) const { \
      (void)d;                                \
      return expression;                      \
    }                                         \
  };
BACKPLANE_UNARY(Neg, hn::Neg(x))
BACKPLANE_UNARY(Abs, hn::Abs(x))
BACKPLANE_UNARY(Floor, hn::Floor(x))
BACKPLANE_UNARY(Rint, hn::Round(x))
BACKPLANE_UNARY(Sqrt, hn::Sqrt(x))
BACKPLANE_UNARY(Rsqrt, hn::Div(hn::Set(d, 1.0f), hn::Sqrt(x)))
BACKPLANE_UNARY(Exp, exp_of(d, x))
BACKPLANE_UNARY(Log, log_of(d, x))
BACKPLANE_UNARY(Sin, sin_of(d, x))
BACKPLANE_UNARY(Cos, cos_of(d, x))
BACKPLANE_UNARY(Tanh, tanh_of(d, x))
BACKPLANE_UNARY(Erf, erf_of(d, x))
BACKPLANE_UNARY(BitNot, hn::Not(x))
BACKPLANE_UNARY(Relu, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x))
BACKPLANE_UNARY(GeluErf, gelu_erf_of(d, x))
BACKPLANE_UNARY(GeluTanh, gelu_tanh_of(d, x))
BACKPLANE_UNARY(Silu, hn::Mul(x, sigmoid_of(d, x)))
BACKPLANE_UNARY(Sigmoid, sigmoid_of(d, x))
#undef BACKPLANE_UNARY

template <class T>
Row float_row(uint32_t op) {
  switch (op) {
    case BP_OP_NEG:
      return map1<T, T, Neg>;
    case BP_OP_ABS:
      return map1<T, T, Abs>;
    case BP_OP_FLOOR:
      return map1<T, T, Floor>;
    case BP_OP_RINT:
      return map1<T, T, Rint>;
    case BP_OP_SQRT:
      return map1<T, T, Sqrt>;
    case BP_OP_RSQRT:
      return map1<T, T, Rsqrt>;
    case BP_OP_EXP:
      return map1<T, T, Exp>;
    case BP_OP_LOG:
      return map1<T, T, Log>;
    case BP_OP_SIN:
      return map1<T, T, Sin>;
    case BP_OP_COS:
      return map1<T, T, Cos>;
    case BP_OP_TANH:
      return map1<T, T, Tanh>;
    case BP_OP_ERF:
      return map1<T, T, Erf>;
    default:
      return nullptr;
  }
}

template <class T>
Row signed_row(uint32_t op) {
  switch (op) {
    case BP_OP_NEG:
      return map1<T, T, Neg>;
    case BP_OP_ABS:
      return map1<T, T, Abs>;
    case BP_OP_BITNOT:
      return map1<T, T, BitNot>;
    default:
      return nullptr;
  }
}

template <class In, class Out>
Row activation_of(uint32_t activation) {
  switch (activation) {
    case BP_ACTIVATION_RELU:
      return map1<Out, In, Relu>;
    case BP_ACTIVATION_GELU_ERF:
      return map1<Out, In, GeluErf>;
    case BP_ACTIVATION_GELU_TANH:
      return map1<Out, In, GeluTanh>;
    case BP_ACTIVATION_SILU:
      return map1<Out, In, Silu>;
    case BP_ACTIVATION_SIGMOID:
      return map1<Out, In, Sigmoid>;
    default:
      return nullptr;
  }
}

Row find_activation(uint32_t activation, uint32_t from, uint32_t to) {
  if constexpr (kHasVectors) {
    if (from == BP_F32 && to == BP_F32) return activation_of<float, float>(activation);
    if (from == BP_F32 && to == BP_BF16) return activation_of<float, bf16>(activation);
    if (from == BP_F32 && to == BP_F16) return activation_of<float, f16>(activation);
    if (from == BP_BF16 && to == BP_BF16) return activation_of<bf16, bf16>(activation);
    if (from == BP_F16 && to == BP_F16) return activation_of<f16, f16>(activation);
  }
  return nullptr;
}

Row find_unary(uint32_t op, uint32_t dtype) {
  if constexpr (kHasVectors) {
    switch (dtype) {
      case BP_F32:
        return float_row<float>(op);
      case BP_F16:
        return float_row<f16>(op);
      case BP_BF16:
        return float_row<bf16>(op);
      case BP_I8:
        return signed_row<int8_t>(op);
      case BP_I32:
        return signed_row<int32_t>(op);
      case BP_U8:
        return op == BP_OP_BITNOT ? map1<uint8_t, uint8_t, BitNot> : nullptr;
      case BP_U32:
        return op == BP_OP_BITNOT ? map1<uint32_t, uint32_t, BitNot> : nullptr;
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
HWY_EXPORT(find_activation);
HWY_EXPORT(find_unary);
Row activation_row(uint32_t activation, uint32_t from, uint32_t to) {
  return HWY_DYNAMIC_DISPATCH(find_activation)(activation, from, to);
}
Row unary_row(uint32_t op, uint32_t dtype) { return HWY_DYNAMIC_DISPATCH(find_unary)(op, dtype); }
}  // namespace backplane::onednn
#endif
