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

// Computes e^(y ln |x|). The result is negated if x is negative, or -0, and y is odd. It is NaN if x
// is negative and finite and y is not whole. It is 1 if x is 1 or y is 0.
struct Pow {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V y) const {
    const V one = hn::Set(d, 1.0f), magnitude = hn::Abs(x);
    const V power = exp_of(d, hn::Mul(y, log_of(d, magnitude)));
    const hn::RebindToSigned<D> di;
    const auto negative = hn::RebindMask(d, hn::Lt(hn::BitCast(di, x), hn::Zero(di)));
    const auto is_whole = [](V v) HWY_ATTR { return hn::Eq(hn::Floor(v), v); };
    const auto whole = is_whole(y);
    const auto odd = hn::AndNot(is_whole(hn::Mul(y, hn::Set(d, 0.5f))), whole);
    const V with_sign = hn::IfThenElse(hn::And(negative, odd), hn::Neg(power), power);
    const auto below = hn::And(hn::Lt(x, hn::Zero(d)), hn::Lt(magnitude, hn::Inf(d)));
    const V real = hn::IfThenElse(hn::AndNot(whole, below), nan_of(d), with_sign);
    return hn::IfThenElse(hn::Or(hn::Eq(x, one), hn::Eq(y, hn::Zero(d))), one, real);
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
