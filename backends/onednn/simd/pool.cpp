// SPDX-License-Identifier: Apache-2.0
// The inner loops of max_pool and avg_pool.
#include <cmath>

#include "simd/pool.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/pool.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

struct Max {  // NaN propagates
  template <class V>
  static HWY_INLINE V combine(V a, V b) {
    return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
  }
  static float combine(float a, float b) { return a > b || a != a ? a : b; }
};
struct Sum {
  template <class V>
  static HWY_INLINE V combine(V a, V b) {
    return hn::Add(a, b);
  }
  static float combine(float a, float b) { return a + b; }
};

template <class T, class Op>
void combine_lines(float* combined, const void* const* lines, int64_t line_count, bool more, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto line = [&](int64_t l) { return static_cast<const T*>(lines[l]); };
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    auto result = load(d, line(0) + i);
    for (int64_t l = 1; l < line_count; ++l) result = Op::combine(result, load(d, line(l) + i));
    if (more) result = Op::combine(hn::LoadU(d, combined + i), result);
    hn::StoreU(result, d, combined + i);
  }
  for (; i < count; ++i) {
    auto result = static_cast<float>(line(0)[i]);
    for (int64_t l = 1; l < line_count; ++l) result = Op::combine(result, static_cast<float>(line(l)[i]));
    combined[i] = more ? Op::combine(combined[i], result) : result;
  }
}

template <class Op>
void combine_taps(float* out, const float* line, int64_t stride, int64_t kernel, int64_t dilation, int64_t count) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto combine_all = [&](const auto& tap) HWY_ATTR {
    for (; i < count; i += lanes) {
      auto result = tap(line + i * stride);
      for (int64_t k = 1; k < kernel; ++k) result = Op::combine(result, tap(line + i * stride + k * dilation));
      hn::StoreU(result, d, out + i);
    }
  };
  if (stride == 1) combine_all([&](const float* from) HWY_ATTR { return hn::LoadU(d, from); });
  if (stride == 2) {
    combine_all([&](const float* from) HWY_ATTR {
      hn::Vec<decltype(d)> even, odd;
      hn::LoadInterleaved2(d, from, even, odd);
      return even;
    });
  }
#endif
  for (; i < count; ++i) {
    out[i] = line[i * stride];
    for (int64_t k = 1; k < kernel; ++k) out[i] = Op::combine(out[i], line[i * stride + k * dilation]);
  }
}

[[maybe_unused]] void divide(float* out, const float* columns, float lines, int64_t count) {
  const hn::ScalableTag<float> d;
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(d))) {
    const auto number = hn::Max(hn::Mul(hn::LoadU(d, columns + i), hn::Set(d, lines)), hn::Set(d, 1.0f));
    hn::StoreU(hn::Div(hn::LoadU(d, out + i), number), d, out + i);
  }
}

template <class Op>
PoolKernels kernels_of(uint32_t dtype) {
  return for_dtype<PoolKernels>(ShortFloats(), dtype, []<class T>() {
    return PoolKernels{combine_lines<T, Op>, combine_taps<Op>, divide};
  });
}
PoolKernels find_pool(bool average, uint32_t dtype) {
  return average ? kernels_of<Sum>(dtype) : kernels_of<Max>(dtype);
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_pool);
PoolKernels pool_kernels(bool average, uint32_t dtype) { return HWY_DYNAMIC_DISPATCH(find_pool)(average, dtype); }
}  // namespace backplane::onednn
#endif
