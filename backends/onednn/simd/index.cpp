// SPDX-License-Identifier: Apache-2.0
#include "simd/index.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/index.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
AddRowsKernel find_add_rows(uint32_t) { return nullptr; }
#else
// Adds kVectors vectors of each listed row, beginning with element `column`, to the same elements of `to`.
template <int kVectors, class T>
HWY_INLINE void add_columns(const RowList& rows, T* to, int64_t column) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto wide = [&](const T* from) HWY_ATTR { return hn::PromoteTo(d, load(narrow, from)); };
  hn::Vec<decltype(d)> sums[kVectors];
  for (int v = 0; v < kVectors; ++v) sums[v] = wide(to + column + v * lanes);
  for (int32_t r = rows.first; r >= 0; r = rows.next[r]) {
    const T* const from = reinterpret_cast<const T*>(rows.source + r * rows.stride) + column;
    for (int v = 0; v < kVectors; ++v) sums[v] = hn::Add(sums[v], wide(from + v * lanes));
  }
  for (int v = 0; v < kVectors; ++v) store(narrow, hn::DemoteTo(narrow, sums[v]), to + column + v * lanes);
}

template <class T>
void add_rows(const RowList& rows, void* memory, int64_t count) {
  constexpr int kVectors = 8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<double>()));
  auto* to = static_cast<T*>(memory);
  int64_t column = 0;
  for (; column + kVectors * lanes <= count; column += kVectors * lanes) add_columns<kVectors>(rows, to, column);
  for (; column + lanes <= count; column += lanes) add_columns<1>(rows, to, column);
  for (; column < count; ++column) {
    auto sum = static_cast<double>(static_cast<float>(to[column]));
    for (int32_t r = rows.first; r >= 0; r = rows.next[r])
      sum += static_cast<double>(static_cast<float>(reinterpret_cast<const T*>(rows.source + r * rows.stride)[column]));
    if constexpr (kit::Half<T>) {
      to[column] = T::from(sum);
    } else {
      to[column] = static_cast<T>(sum);
    }
  }
}

AddRowsKernel find_add_rows(uint32_t dtype) {
  return for_dtype<AddRowsKernel>(ShortFloats(), dtype, []<class T>() { return add_rows<T>; });
}
#endif

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_add_rows);
AddRowsKernel add_rows_kernel(uint32_t dtype) { return HWY_DYNAMIC_DISPATCH(find_add_rows)(dtype); }
}  // namespace backplane::onednn
#endif
