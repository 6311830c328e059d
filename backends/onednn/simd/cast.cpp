// SPDX-License-Identifier: Apache-2.0
// Rows of cast, for the pairs that models use: among the floats below f64, and of them from and to i32, u8 and bool.
#include <cmath>

#include "ops/vector_loop.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/cast.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

// ---- From memory to f32, exactly but for i32, which rounds; and from f32 to memory by the rules of cast.

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
// Truncates and saturates; NaN gives 0.
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

template <class From, class To>
void cast(const void* const* in, void* out, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* x = static_cast<const From*>(in[0]);
  auto* y = static_cast<To*>(out);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) write(d, read(d, x + i), y + i);
  if (i == count) return;
  constexpr size_t kMost = HWY_MAX_BYTES / sizeof(float);
  From from[kMost] = {};
  To to[kMost];
  std::memcpy(from, x + i, static_cast<size_t>(count - i) * sizeof(From));
  write(d, read(d, from), to);
  std::memcpy(y + i, to, static_cast<size_t>(count - i) * sizeof(To));
}

template <class From>
Row row_from(uint32_t to) {
  constexpr bool kFloat = kit::Floating<From>;
  switch (to) {
    case BP_F32:
      return cast<From, float>;
    case BP_F16:  // of i32 it would round twice
      if constexpr (!std::same_as<From, int32_t>) return cast<From, f16>;
      return nullptr;
    case BP_BF16:
      if constexpr (!std::same_as<From, int32_t>) return cast<From, bf16>;
      return nullptr;
    case BP_I32:
      if constexpr (kFloat) return cast<From, int32_t>;
      return nullptr;
    case BP_U8:
      if constexpr (kFloat) return cast<From, uint8_t>;
      return nullptr;
    case BP_BOOL:
      if constexpr (kFloat) return cast<From, b8>;
      return nullptr;
    default:
      return nullptr;
  }
}

Row find_cast(uint32_t from, uint32_t to) {
  if constexpr (kHasVectors) {
    if (from == to) return nullptr;
    switch (from) {
      case BP_F32:
        return row_from<float>(to);
      case BP_F16:
        return row_from<f16>(to);
      case BP_BF16:
        return row_from<bf16>(to);
      case BP_I32:
        return row_from<int32_t>(to);
      case BP_U8:
        return row_from<uint8_t>(to);
      case BP_BOOL:
        return row_from<b8>(to);
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
HWY_EXPORT(find_cast);
Row cast_row(uint32_t from, uint32_t to) { return HWY_DYNAMIC_DISPATCH(find_cast)(from, to); }
}  // namespace backplane::onednn
#endif
