// SPDX-License-Identifier: Apache-2.0
// The operators layer_norm, rms_norm and group_norm on a contiguous row or group.
#include "simd/norm.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/norm.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/moments-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
NormKernel find_norm(bool, uint32_t) { return nullptr; }
GroupNormKernel find_group_norm(uint32_t) { return nullptr; }
#else
template <class T>
struct Affine {
  const T *gamma, *beta;
  int64_t count;
  V mean, rstd;
  HWY_INLINE V operator()(D d, V x, int64_t i) const {
    V result = hn::Mul(hn::Sub(x, mean), rstd);
    if (gamma != nullptr) result = hn::Mul(result, load_at(d, gamma, i, count));
    if (beta != nullptr) result = hn::Add(result, load_at(d, beta, i, count));
    return result;
  }
};

template <class T, bool kCentred>
Moments norm(const void* from, const void* gamma, const void* beta, void* to, int64_t count, double epsilon) {
  const D d;
  const auto* x = static_cast<const T*>(from);
  const Moments moments = moments_of<kCentred>(d, x, count, epsilon);
  const auto mean = static_cast<float>(moments.mean);
  Write<T, Affine<T> > write{static_cast<T*>(to),
                             count,
                             {static_cast<const T*>(gamma), static_cast<const T*>(beta), count, hn::Set(d, mean),
                              hn::Set(d, static_cast<float>(moments.rstd))}};
  each_vector(d, x, count, mean, write);
  return moments;
}

struct ChannelAffine {
  V mean, rstd, gamma, beta;
  HWY_INLINE V operator()(D, V x, int64_t) const {
    return hn::Add(hn::Mul(hn::Mul(hn::Sub(x, mean), rstd), gamma), beta);
  }
};

template <class T>
Moments group_norm(const void* from, const void* gamma, const void* beta, void* to, int64_t channels, int64_t plane,
                   double epsilon) {
  const D d;
  const auto* x = static_cast<const T*>(from);
  const Moments moments = moments_of<true>(d, x, channels * plane, epsilon);
  const auto mean = static_cast<float>(moments.mean);
  const auto parameter = [&](const void* all, int64_t channel, float otherwise) {
    return hn::Set(d, all == nullptr ? otherwise : static_cast<float>(static_cast<const T*>(all)[channel]));
  };
  for (int64_t c = 0; c < channels; ++c) {
    WritePair<T, ChannelAffine> write{static_cast<T*>(to) + c * plane,
                                      plane,
                                      {hn::Set(d, mean), hn::Set(d, static_cast<float>(moments.rstd)),
                                       parameter(gamma, c, 1), parameter(beta, c, 0)}};
    each_pair(d, x + c * plane, plane, 0.0f, write);
  }
  return moments;
}

NormKernel find_norm(bool centred, uint32_t dtype) {
  return for_dtype<NormKernel>(ShortFloats(), dtype,
                               [&]<class T>() { return centred ? norm<T, true> : norm<T, false>; });
}

GroupNormKernel find_group_norm(uint32_t dtype) {
  return for_dtype<GroupNormKernel>(ShortFloats(), dtype, []<class T>() { return group_norm<T>; });
}
#endif

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_norm);
HWY_EXPORT(find_group_norm);
NormKernel norm_kernel(bool centred, uint32_t dtype) { return HWY_DYNAMIC_DISPATCH(find_norm)(centred, dtype); }
GroupNormKernel group_norm_kernel(uint32_t dtype) { return HWY_DYNAMIC_DISPATCH(find_group_norm)(dtype); }
}  // namespace backplane::onednn
#endif
