// SPDX-License-Identifier: Apache-2.0
// The last step of gemm: adds the scaled product and the scaled input c in f32, and rounds the sum once.
#include "simd/matmul_gemm.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/matmul_gemm.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

struct Scaled {
  float alpha;
  template <class D, class Out>
  HWY_INLINE void operator()(D d, Out* out, const float* product) const {
    store(d, hn::Mul(hn::Set(d, alpha), load(d, product)), out);
  }
};

struct ScaledSum {
  float alpha, beta;
  template <class D, class Out>
  HWY_INLINE void operator()(D d, Out* out, const float* product, const Out* c) const {
    const auto term = hn::Mul(hn::Set(d, beta), load(d, c));
    store(d, hn::MulAdd(hn::Set(d, alpha), load(d, product), term), out);
  }
};

template <class Out>
void scaled_sum(float alpha, const float* product, float beta, const void* c, void* out, int64_t count) {
  const hn::ScalableTag<float> d;
  if (c == nullptr) {
    map_vectors(d, Scaled{alpha}, count, static_cast<Out*>(out), product);
  } else {
    map_vectors(d, ScaledSum{alpha, beta}, count, static_cast<Out*>(out), product, static_cast<const Out*>(c));
  }
}

ScaledSumKernel find_scaled_sum(uint32_t dtype) {
  return for_dtype<ScaledSumKernel>(ShortFloats(), dtype, [&]<class T>() { return scaled_sum<T>; });
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_scaled_sum);
ScaledSumKernel scaled_sum_kernel(uint32_t dtype) { return HWY_DYNAMIC_DISPATCH(find_scaled_sum)(dtype); }
}  // namespace backplane::onednn
#endif
