// SPDX-License-Identifier: Apache-2.0
// The operator cumsum along contiguous rows, and across them.
#include <algorithm>
#include <cmath>

#include "simd/scan.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/scan.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

// Scans groups of 4 elements in f32, and adds the sums of groups in f64. The error is a few units in the last
// place of the sum of the magnitudes, whatever the number of elements.
template <class T, bool kExclusive, bool kReverse>
void scan_row(const T* x, T* y, int64_t count) {
  constexpr int64_t kLanes = 4;
  const hn::CappedTag<float, kLanes> d;
  double carry = 0;
  int64_t n = 0;
  // HWY_SCALAR has no operations across lanes.
#if HWY_TARGET != HWY_SCALAR
  if (hn::Lanes(d) == kLanes) {
    for (; n + kLanes <= count; n += kLanes) {
      const int64_t i = kReverse ? count - n - kLanes : n;
      auto v = load(d, x + i);
      if constexpr (kReverse) v = hn::Reverse(d, v);
      v = hn::Add(v, hn::ShiftLeftLanes<1>(d, v));
      v = hn::Add(v, hn::ShiftLeftLanes<2>(d, v));
      const auto before = hn::Set(d, static_cast<float>(carry));
      carry += static_cast<double>(hn::GetLane(hn::Reverse(d, v)));
      if constexpr (kExclusive) v = hn::ShiftLeftLanes<1>(d, v);
      v = hn::Add(v, before);
      if constexpr (kReverse) v = hn::Reverse(d, v);
      store(d, v, y + i);
    }
  }
#endif
  for (; n < count; ++n) {
    const int64_t i = kReverse ? count - 1 - n : n;
    const double before = carry;
    carry += static_cast<double>(static_cast<float>(x[i]));
    y[i] = kit::narrow<T>(static_cast<float>(kExclusive ? before : carry));
  }
}

template <class T>
void row(const void* x, void* y, int64_t count, bool exclusive, bool reverse) {
  const auto* from = static_cast<const T*>(x);
  auto* to = static_cast<T*>(y);
  if (reverse) return exclusive ? scan_row<T, true, true>(from, to, count) : scan_row<T, false, true>(from, to, count);
  exclusive ? scan_row<T, true, false>(from, to, count) : scan_row<T, false, false>(from, to, count);
}

// Keeps the running sums of all columns in f64, in an array that stays in the first-level cache.
template <class T, bool kExclusive>
void scan_columns(const std::byte* x, int64_t x_stride, std::byte* y, int64_t y_stride, int64_t length,
                  int64_t columns) {
  const hn::ScalableTag<double> wide;
  const hn::Rebind<float, decltype(wide)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(wide));
  HWY_ALIGN double sums[ScanKernels::kMaxColumns];
  std::fill_n(sums, columns, 0.0);
  for (int64_t n = 0; n < length; ++n, x += x_stride, y += y_stride) {
    const auto* from = reinterpret_cast<const T*>(x);
    auto* to = reinterpret_cast<T*>(y);
    int64_t k = 0;
    for (; k + lanes <= columns; k += lanes) {
      const auto before = hn::LoadU(wide, sums + k);
      const auto after = hn::Add(before, hn::PromoteTo(wide, load(narrow, from + k)));
      hn::StoreU(after, wide, sums + k);
      store(narrow, hn::DemoteTo(narrow, kExclusive ? before : after), to + k);
    }
    for (; k < columns; ++k) {
      const double before = sums[k];
      sums[k] += static_cast<double>(static_cast<float>(from[k]));
      to[k] = kit::narrow<T>(static_cast<float>(kExclusive ? before : sums[k]));
    }
  }
}

template <class T>
void columns(const void* x, int64_t x_stride, void* y, int64_t y_stride, int64_t length, int64_t count,
             bool exclusive) {
  const auto* from = static_cast<const std::byte*>(x);
  auto* to = static_cast<std::byte*>(y);
  exclusive ? scan_columns<T, true>(from, x_stride, to, y_stride, length, count)
            : scan_columns<T, false>(from, x_stride, to, y_stride, length, count);
}

ScanKernels find_scan(uint32_t dtype) {
  return for_dtype<ScanKernels>(ShortFloats(), dtype, []<class T>() { return ScanKernels{row<T>, columns<T>}; });
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_scan);
ScanKernels scan_kernels(uint32_t dtype) { return HWY_DYNAMIC_DISPATCH(find_scan)(dtype); }
}  // namespace backplane::onednn
#endif
