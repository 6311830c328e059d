// SPDX-License-Identifier: Apache-2.0
// The inner loops of quantized_matmul.
#include "simd/quantize_matmul.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/quantize_matmul.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/accumulate-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

[[maybe_unused]] void widen8(const void* from, float* to, int64_t count) {
  const D d;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<int8_t, D> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* bytes = static_cast<const int8_t*>(from);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(narrow, bytes + i))), d, to + i);
  }
  for (; i < count; ++i) to[i] = static_cast<float>(bytes[i]);
}

[[maybe_unused]] void widen4(const void* from, float* to, int64_t count) {
  const D d;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint8_t, D> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* bytes = static_cast<const uint8_t*>(from);
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const auto pairs = hn::PromoteTo(di, hn::LoadU(narrow, bytes + i / 2));
    const V low = hn::ConvertTo(d, hn::And(pairs, hn::Set(di, 15))), high = hn::ConvertTo(d, hn::ShiftRight<4>(pairs));
    hn::StoreInterleaved2(low, high, d, to + i);
  }
  for (; i < count; ++i) to[i] = static_cast<float>(i % 2 == 0 ? bytes[i / 2] & 15 : bytes[i / 2] >> 4);
}

[[maybe_unused]] void scale(float* x, int64_t count, float zero, float factor) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V from = hn::Set(d, zero), times = hn::Set(d, factor);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::Mul(hn::Sub(hn::LoadU(d, x + i), from), times), d, x + i);
  }
  for (; i < count; ++i) x[i] = (x[i] - zero) * factor;
}

// Computes kRows x kDots sums in registers. Each iteration processes one vector along k.
template <int kRows>
HWY_INLINE void dots_of(const float* a, const float* w, int64_t depth, float* out, int64_t stride) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sums[kRows][kDots];
  for (auto& row : sums) {
    for (V& sum : row) sum = hn::Zero(d);
  }
  for (int64_t k = 0; k < depth; k += lanes) {
    V of_w[kDots];
    for (int64_t c = 0; c < kDots; ++c) of_w[c] = load_at(d, w + c * depth, k, depth);
    for (int r = 0; r < kRows; ++r) {
      const V of_a = load_at(d, a + r * depth, k, depth);
      for (int64_t c = 0; c < kDots; ++c) sums[r][c] = hn::MulAdd(of_a, of_w[c], sums[r][c]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kDots; ++c) out[r * stride + c] = hn::GetLane(hn::SumOfLanes(d, sums[r][c]));
  }
}

[[maybe_unused]] void dots(const float* a, int64_t rows, const float* w, int64_t depth, float* out, int64_t stride) {
  constexpr decltype(&dots_of<1>) kByRows[] = {dots_of<1>, dots_of<2>, dots_of<3>, dots_of<4>};
  kByRows[rows - 1](a, w, depth, out, stride);
}

QuantizedGemmSteps find_steps() {
  if constexpr (kHasVectors) return {widen8, widen4, scale, dots};
  return {};
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_steps);
QuantizedGemmSteps quantized_gemm_steps() { return HWY_DYNAMIC_DISPATCH(find_steps)(); }
}  // namespace backplane::onednn
#endif
