// SPDX-License-Identifier: Apache-2.0
// Elementwise binary operators of f32, f16, bf16 and integers of up to 32 bits.
#include <cmath>

#include "simd/elementwise.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/elementwise_binary.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

// Defines the functor `Name` of the operator `id`. Some operators have different functors for floats and
// integers.
#define BACKPLANE_BINARY(id, Name, expression)           \
  struct Name {                                          \
    [[maybe_unused]] static constexpr uint32_t kId = id; \
    template <class D, class V>                          \
    HWY_INLINE V operator()(D d, V a, V b) const {       \
      (void)d;                                           \
      return expression;                                 \
    }                                                    \
  };
BACKPLANE_BINARY(BP_OP_ADD, Add, hn::Add(a, b))
BACKPLANE_BINARY(BP_OP_SUB, Sub, hn::Sub(a, b))
BACKPLANE_BINARY(BP_OP_MUL, Mul, hn::Mul(a, b))
BACKPLANE_BINARY(BP_OP_DIV, Div, hn::Div(a, b))
// A NaN in either operand propagates. The maximum instruction of x86 propagates a NaN from one operand only.
BACKPLANE_BINARY(BP_OP_MAX, MaxFloat, hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b))
BACKPLANE_BINARY(BP_OP_MIN, MinFloat, hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b))
BACKPLANE_BINARY(BP_OP_MAX, MaxInt, hn::Max(a, b))
BACKPLANE_BINARY(BP_OP_MIN, MinInt, hn::Min(a, b))
BACKPLANE_BINARY(BP_OP_AND, BitAnd, hn::And(a, b))
BACKPLANE_BINARY(BP_OP_OR, BitOr, hn::Or(a, b))
BACKPLANE_BINARY(BP_OP_XOR, BitXor, hn::Xor(a, b))
#undef BACKPLANE_BINARY

// Returns the kernel of the functor whose kId is `id`, or null if there is none.
template <class T, class... Functors>
VectorKernel kernel_of(uint32_t id) {
  VectorKernel kernel = nullptr;
  (void)((id == Functors::kId && (kernel = map2<T, Functors>, true)) || ...);
  return kernel;
}

VectorKernel find_binary(uint32_t op, uint32_t dtype) {
  return for_dtype<VectorKernel>(kit::Types<float, f16, bf16, int32_t, uint32_t, int8_t, uint8_t>(), dtype,
                                 [&]<class T>() {
                                   if constexpr (kit::Floating<T>) {
                                     return kernel_of<T, Add, Sub, Mul, Div, MaxFloat, MinFloat>(op);
                                   } else if constexpr (sizeof(T) == 4) {
                                     return kernel_of<T, Add, Sub, Mul, MaxInt, MinInt, BitAnd, BitOr, BitXor>(op);
                                   } else {
                                     return kernel_of<T, Add, Sub, MaxInt, MinInt, BitAnd, BitOr, BitXor>(op);
                                   }
                                 });
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_binary);
VectorKernel binary_kernel(uint32_t op, uint32_t dtype) { return HWY_DYNAMIC_DISPATCH(find_binary)(op, dtype); }
}  // namespace backplane::onednn
#endif
