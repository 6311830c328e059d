// SPDX-License-Identifier: Apache-2.0
// The operator pow of f32, f16 and bf16.
#include <cmath>

#include "simd/elementwise.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/elementwise_pow.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

// Returns magnitude^y for a magnitude of 0 or more.
template <class D, class V>
HWY_INLINE V power_of(D d, V magnitude, V y) {
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  const V s = hn::Mul(y, log2_of(d, magnitude));
  return exp2_of(d, at_least(d, at_most(d, s, 160.0f), -160.0f));
#else
  return exp_of(d, hn::Mul(y, log_of(d, magnitude)));
#endif
}

// Computes |x|^y, and negates the result if the sign bit of x is set and y is an odd integer. If x is negative
// and finite, and y is not an integer, the result is NaN. If x is 1 or y is 0, the result is 1.
struct Pow {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V y) const {
    const V zero = hn::Zero(d), one = hn::Set(d, 1.0f), infinity = hn::Inf(d), magnitude = hn::Abs(x);
    const V power = power_of(d, magnitude, y);
    const auto is_common =
        hn::And(hn::And(hn::Gt(x, zero), hn::Lt(x, infinity)), hn::And(hn::Ne(x, one), hn::Lt(hn::Abs(y), infinity)));
    if (HWY_LIKELY(hn::AllTrue(d, is_common))) return power;
    const hn::RebindToSigned<D> di;
    const auto negative = hn::RebindMask(d, hn::Lt(hn::BitCast(di, x), hn::Zero(di)));
    const auto is_whole = [](V v) HWY_ATTR { return hn::Eq(hn::Floor(v), v); };
    const auto whole = is_whole(y);
    const auto odd = hn::AndNot(is_whole(hn::Mul(y, hn::Set(d, 0.5f))), whole);
    const V with_sign = hn::IfThenElse(hn::And(negative, odd), hn::Neg(power), power);
    const auto below = hn::And(hn::Lt(x, zero), hn::Lt(magnitude, infinity));
    const V real = hn::IfThenElse(hn::AndNot(whole, below), nan_of(d), with_sign);
    return hn::IfThenElse(hn::Or(hn::Eq(x, one), hn::Eq(y, zero)), one, real);
  }
};

VectorKernel find_pow(uint32_t dtype) {
  return for_dtype<VectorKernel>(ShortFloats(), dtype,
                                 []<class T>() -> VectorKernel { return fastest_map2<T, Pow>(); });
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_pow);
VectorKernel pow_kernel(uint32_t dtype) { return HWY_DYNAMIC_DISPATCH(find_pow)(dtype); }
}  // namespace backplane::onednn
#endif
