// SPDX-License-Identifier: Apache-2.0
// The inner loops of rope.
#include <cmath>
#include <numbers>

#include "simd/rope.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/rope.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

[[maybe_unused]] void angles(const RopeTable& table, int32_t position) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto whole = hn::Set(di, position);
  const auto number = hn::Set(d, static_cast<float>(position));
  const auto unit = hn::Set(d, 0x1p-31f * std::numbers::pi_v<float>);
  for (int64_t i = 0; i < table.half; i += lanes) {
    const auto steps = hn::LoadU(di, reinterpret_cast<const int32_t*>(table.steps + i));
    const auto wrapped = hn::ConvertTo(d, hn::Mul(whole, steps));
    const auto angle = hn::Add(hn::Mul(wrapped, unit), hn::Mul(number, hn::LoadU(d, table.rests + i)));
    hn::StoreU(cos_of(d, angle), d, table.cosines + i);
    hn::StoreU(sin_of(d, angle), d, table.sines + i);
  }
}

[[maybe_unused]] void rotate(const RopeTable& table, bool pairs, const float* x, float* y) {
  const hn::ScalableTag<float> d;
  [[maybe_unused]] const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t half = table.half;
  const int64_t step = pairs ? 2 : 1, across = pairs ? 1 : half;
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; i + lanes <= half; i += lanes) {
    hn::Vec<decltype(d)> a, b;
    if (pairs) {
      hn::LoadInterleaved2(d, x + 2 * i, a, b);
    } else {
      a = hn::LoadU(d, x + i);
      b = hn::LoadU(d, x + half + i);
    }
    const auto cosine = hn::LoadU(d, table.cosines + i), sine = hn::LoadU(d, table.sines + i);
    const auto left = hn::Sub(hn::Mul(a, cosine), hn::Mul(b, sine));
    const auto right = hn::Add(hn::Mul(b, cosine), hn::Mul(a, sine));
    if (pairs) {
      hn::StoreInterleaved2(left, right, d, y + 2 * i);
    } else {
      hn::StoreU(left, d, y + i);
      hn::StoreU(right, d, y + half + i);
    }
  }
#endif
  for (; i < half; ++i) {
    const float a = x[step * i], b = x[step * i + across], cosine = table.cosines[i], sine = table.sines[i];
    y[step * i] = a * cosine - b * sine;
    y[step * i + across] = b * cosine + a * sine;
  }
}

RopeKernels find_rope() {
  if constexpr (kHasVectors) return {angles, rotate};
  return {};
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_rope);
RopeKernels rope_kernels() { return HWY_DYNAMIC_DISPATCH(find_rope)(); }
}  // namespace backplane::onednn
#endif
