// SPDX-License-Identifier: Apache-2.0
// The operators quantize and dequantize with 8 bits, on contiguous elements.
#include <cmath>
#include <concepts>
#include <limits>

#include "simd/quantize.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/quantize.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

// Loads integers and converts them to f32, which represents each of them exactly.
template <class D, class Q>
HWY_INLINE hn::Vec<D> load_steps(D d, const Q* from) {
  const hn::Rebind<Q, D> narrow;
  const hn::RebindToSigned<D> whole;
  return hn::ConvertTo(d, hn::PromoteTo(whole, hn::LoadU(narrow, from)));
}

// Computes rint(x / scale) + zero, limited to the range of Q. NaN gives 0.
template <class Q>
struct Quantize {
  template <class D, class X, class S>
  HWY_INLINE void operator()(D d, Q* out, const X* x, const S* scale) const {
    finish(d, out, hn::Round(hn::Div(load(d, x), load(d, scale))));
  }
  template <class D, class X, class S>
  HWY_INLINE void operator()(D d, Q* out, const X* x, const S* scale, const Q* zero) const {
    finish(d, out, hn::Add(hn::Round(hn::Div(load(d, x), load(d, scale))), load_steps(d, zero)));
  }

 private:
  template <class D, class V>
  HWY_INLINE void finish(D d, Q* out, V steps) const {
    constexpr auto kLow = static_cast<float>(std::numeric_limits<Q>::min()),
                   kHigh = static_cast<float>(std::numeric_limits<Q>::max());
    const V number = hn::IfThenElse(hn::IsNaN(steps), hn::Zero(d), steps);
    const V limited = hn::Max(hn::Min(number, hn::Set(d, kHigh)), hn::Set(d, kLow));
    const hn::RebindToSigned<D> whole;
    const hn::RebindToUnsigned<D> bits;
    const hn::Rebind<uint8_t, D> narrow;
    hn::StoreU(hn::TruncateTo(narrow, hn::BitCast(bits, hn::ConvertTo(whole, limited))), narrow,
               reinterpret_cast<uint8_t*>(out));
  }
};

// Computes (q - zero) * scale. f32 represents the difference exactly.
struct Dequantize {
  template <class D, class X, class Q, class S>
  HWY_INLINE void operator()(D d, X* out, const Q* q, const S* scale) const {
    store(d, hn::Mul(load_steps(d, q), load(d, scale)), out);
  }
  template <class D, class X, class Q, class S>
  HWY_INLINE void operator()(D d, X* out, const Q* q, const S* scale, const Q* zero) const {
    store(d, hn::Mul(hn::Sub(load_steps(d, q), load_steps(d, zero)), load(d, scale)), out);
  }
};

template <class X, class S, class Q, bool kZero>
void quantize(const void* const* in, void* out, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto* x = static_cast<const X*>(in[0]);
  const auto* scale = static_cast<const S*>(in[1]);
  if constexpr (kZero) {
    map_vectors(d, Quantize<Q>(), count, static_cast<Q*>(out), x, scale, static_cast<const Q*>(in[2]));
  } else {
    map_vectors(d, Quantize<Q>(), count, static_cast<Q*>(out), x, scale);
  }
}

template <class X, class S, class Q, bool kZero>
void dequantize(const void* const* in, void* out, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto* q = static_cast<const Q*>(in[0]);
  const auto* scale = static_cast<const S*>(in[1]);
  if constexpr (kZero) {
    map_vectors(d, Dequantize(), count, static_cast<X*>(out), q, scale, static_cast<const Q*>(in[2]));
  } else {
    map_vectors(d, Dequantize(), count, static_cast<X*>(out), q, scale);
  }
}

// Calls get with the types of the data, the scale and the integers. The scale's dtype is that of the
// data or f32.
template <class Get>
VectorKernel for_quantized(uint32_t data, uint32_t scale, uint32_t steps, const Get& get) {
  return for_dtype<VectorKernel>(ShortFloats(), data, [&]<class X>() {
    return for_dtype<VectorKernel>(ShortFloats(), scale, [&]<class S>() {
      return for_dtype<VectorKernel>(kit::Types<int8_t, uint8_t>(), steps, [&]<class Q>() -> VectorKernel {
        if constexpr (std::same_as<S, X> || std::same_as<S, float>) return get.template operator()<X, S, Q>();
        return nullptr;
      });
    });
  });
}

VectorKernel find_quantize(uint32_t data, uint32_t scale, uint32_t steps, bool has_zero) {
  return for_quantized(data, scale, steps, [&]<class X, class S, class Q>() {
    return has_zero ? quantize<X, S, Q, true> : quantize<X, S, Q, false>;
  });
}
VectorKernel find_dequantize(uint32_t data, uint32_t scale, uint32_t steps, bool has_zero) {
  return for_quantized(data, scale, steps, [&]<class X, class S, class Q>() {
    return has_zero ? dequantize<X, S, Q, true> : dequantize<X, S, Q, false>;
  });
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_quantize);
HWY_EXPORT(find_dequantize);
VectorKernel quantize_kernel(uint32_t data, uint32_t scale, uint32_t steps, bool has_zero) {
  return HWY_DYNAMIC_DISPATCH(find_quantize)(data, scale, steps, has_zero);
}
VectorKernel dequantize_kernel(uint32_t data, uint32_t scale, uint32_t steps, bool has_zero) {
  return HWY_DYNAMIC_DISPATCH(find_dequantize)(data, scale, steps, has_zero);
}
}  // namespace backplane::onednn
#endif
