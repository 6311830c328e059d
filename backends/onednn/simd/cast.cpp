// SPDX-License-Identifier: Apache-2.0
// The `cast` operator between f32, f16 and bf16, and between each of these and i32, u8 or bool.
#include <cmath>

#include "simd/cast.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/cast.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

// ---- Loads convert to f32, and are exact for every dtype except i32. Stores convert from f32 by
// the rules of cast.

template <class D, class T>
HWY_INLINE hn::Vec<D> read(D d, const T* from) {
  return load(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> read(D d, const int32_t* from) {
  const hn::RebindToSigned<D> di;
  return hn::ConvertTo(d, hn::LoadU(di, from));
}
template <class D>
HWY_INLINE hn::Vec<D> read(D d, const uint8_t* from) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint8_t, D> narrow;
  return hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(narrow, from)));
}
template <class D>
HWY_INLINE hn::Vec<D> read(D d, const b8* from) {
  const hn::Rebind<uint8_t, D> narrow;
  const auto bytes = hn::LoadU(narrow, &from->byte);
  const hn::RebindToUnsigned<D> du;
  const auto is_false = hn::Eq(hn::PromoteTo(du, bytes), hn::Zero(du));
  return hn::IfThenElse(hn::RebindMask(d, is_false), hn::Zero(d), hn::Set(d, 1.0f));
}

template <class D, class T>
HWY_INLINE void write(D d, hn::Vec<D> value, T* to) {
  store(d, value, to);
}
// Truncates towards zero and saturates. NaN gives 0.
template <class D>
HWY_INLINE auto truncated(D d, hn::Vec<D> value) {
  const hn::RebindToSigned<D> di;
  const auto number = hn::IfThenElse(hn::IsNaN(value), hn::Zero(d), value);
  const auto result = hn::ConvertTo(di, hn::Max(number, hn::Set(d, -2147483648.0f)));
  const auto too_great = hn::RebindMask(di, hn::Ge(number, hn::Set(d, 2147483648.0f)));
  return hn::IfThenElse(too_great, hn::Set(di, 2147483647), result);
}
template <class D>
HWY_INLINE void write(D d, hn::Vec<D> value, int32_t* to) {
  const hn::RebindToSigned<D> di;
  hn::StoreU(truncated(d, value), di, to);
}
template <class D>
HWY_INLINE void write(D d, hn::Vec<D> value, uint8_t* to) {
  const hn::RebindToSigned<D> di;
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<uint8_t, D> narrow;
  const auto byte = hn::Min(hn::Max(truncated(d, value), hn::Zero(di)), hn::Set(di, 255));
  hn::StoreU(hn::TruncateTo(narrow, hn::BitCast(du, byte)), narrow, to);
}
template <class D>
HWY_INLINE void write(D d, hn::Vec<D> value, b8* to) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<uint8_t, D> narrow;
  const auto is_zero = hn::RebindMask(du, hn::Eq(value, hn::Zero(d)));
  const auto bits = hn::IfThenElse(is_zero, hn::Zero(du), hn::Set(du, 1));
  hn::StoreU(hn::TruncateTo(narrow, bits), narrow, &to->byte);
}

struct Convert {
  template <class D, class To, class From>
  HWY_INLINE void operator()(D d, To* to, const From* from) const {
    write(d, read(d, from), to);
  }
};

template <class From, class To>
void cast(const void* const* in, void* out, int64_t count) {
  map_vectors(hn::ScalableTag<float>(), Convert(), count, static_cast<To*>(out), static_cast<const From*>(in[0]));
}

// Whether this file has a kernel for this pair of types. There is no kernel from i32 to f16 or
// bf16, because it would round twice: to f32, and then to the 16-bit dtype.
template <class From, class To>
[[maybe_unused]] constexpr bool kServed = !std::same_as<From, To> && (kit::Floating<From> || std::same_as<To, float> ||
                                                                      (kit::Half<To> && !std::same_as<From, int32_t>));

VectorKernel find_cast(uint32_t from, uint32_t to) {
  constexpr kit::Types<float, f16, bf16, int32_t, uint8_t, b8> kTypes;
  return for_dtype<VectorKernel>(kTypes, from, [&]<class From>() {
    return for_dtype<VectorKernel>(kTypes, to, []<class To>() -> VectorKernel {
      if constexpr (kServed<From, To>) return cast<From, To>;
      return nullptr;
    });
  });
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_cast);
VectorKernel cast_kernel(uint32_t from, uint32_t to) { return HWY_DYNAMIC_DISPATCH(find_cast)(from, to); }
}  // namespace backplane::onednn
#endif
