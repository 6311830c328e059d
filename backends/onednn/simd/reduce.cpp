// SPDX-License-Identifier: Apache-2.0
// The operators reduce_sum, reduce_max and reduce_min, along contiguous rows and across rows.
#include <cmath>
#include <limits>

#include "simd/reduce.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/reduce.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

// Functors that combine two values, in f32 and in f64. NaN propagates.
struct Sum {
  template <class V>
  static HWY_INLINE V combine(V a, V b) {
    return hn::Add(a, b);
  }
  static double combine(double a, double b) { return a + b; }
  static float combine(float a, float b) { return a + b; }
  [[maybe_unused]] static constexpr float kStart = 0;
};
struct Max {
  template <class V>
  static HWY_INLINE V combine(V a, V b) {
    return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
  }
  static double combine(double a, double b) { return a > b || a != a ? a : b; }
  static float combine(float a, float b) { return a > b || a != a ? a : b; }
  [[maybe_unused]] static constexpr float kStart = -std::numeric_limits<float>::infinity();
};
struct Min {
  template <class V>
  static HWY_INLINE V combine(V a, V b) {
    return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b);
  }
  static double combine(double a, double b) { return a < b || a != a ? a : b; }
  static float combine(float a, float b) { return a < b || a != a ? a : b; }
  [[maybe_unused]] static constexpr float kStart = std::numeric_limits<float>::infinity();
};

// Reduces blocks in f32, and the results of blocks in f64. A block has up to eight steps of four independent
// vectors, which is short enough for sums in f32.
template <class T, class R>
double row(double total, const void* from, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* x = static_cast<const T*>(from);
  HWY_ALIGN float part[HWY_MAX_BYTES / sizeof(float)];
  int64_t i = 0;
  while (i + 4 * lanes <= count) {
    auto a = load(d, x + i), b = load(d, x + i + lanes), c = load(d, x + i + 2 * lanes), e = load(d, x + i + 3 * lanes);
    i += 4 * lanes;
    for (int depth = 1; depth < 8 && i + 4 * lanes <= count; ++depth, i += 4 * lanes) {
      a = R::combine(a, load(d, x + i));
      b = R::combine(b, load(d, x + i + lanes));
      c = R::combine(c, load(d, x + i + 2 * lanes));
      e = R::combine(e, load(d, x + i + 3 * lanes));
    }
    hn::Store(R::combine(R::combine(a, b), R::combine(c, e)), d, part);
    for (int64_t width = lanes / 2; width >= 1; width /= 2) {
      for (int64_t l = 0; l < width; ++l) part[l] = R::combine(part[l], part[l + width]);
    }
    total = R::combine(total, static_cast<double>(part[0]));
  }
  for (; i < count; ++i) total = R::combine(total, static_cast<double>(static_cast<float>(x[i])));
  return total;
}

template <class T, class R>
void columns(double* totals, const void* from, int64_t stride, int64_t rows, int64_t count) {
  const hn::ScalableTag<float> d;
  const hn::ScalableTag<double> wide;
  const hn::Rebind<float, decltype(wide)> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d)), wide_lanes = static_cast<int64_t>(hn::Lanes(wide));
  const auto* base = static_cast<const std::byte*>(from);
  constexpr int64_t kDepth = 8;
  HWY_ALIGN float part[HWY_MAX_BYTES / sizeof(float)];
  for (int64_t r = 0; r < rows; r += kDepth) {
    const int64_t depth = rows - r < kDepth ? rows - r : kDepth;
    const auto* x = base + r * stride;
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      auto sum = load(d, reinterpret_cast<const T*>(x) + i);
      for (int64_t k = 1; k < depth; ++k)
        sum = R::combine(sum, load(d, reinterpret_cast<const T*>(x + k * stride) + i));
      hn::Store(sum, d, part);
      for (int64_t l = 0; l < lanes; l += wide_lanes) {
        const auto more = hn::PromoteTo(wide, hn::LoadU(half, part + l));
        hn::StoreU(R::combine(hn::LoadU(wide, totals + i + l), more), wide, totals + i + l);
      }
    }
    for (; i < count; ++i) {
      for (int64_t k = 0; k < depth; ++k) {
        const float value = reinterpret_cast<const T*>(x + k * stride)[i];
        totals[i] = R::combine(totals[i], static_cast<double>(value));
      }
    }
  }
}

template <class R>
void combine_totals(double* totals, const double* others, int64_t count) {
  for (int64_t i = 0; i < count; ++i) totals[i] = R::combine(totals[i], others[i]);
}

template <class R>
ReduceKernels kernels_of(uint32_t dtype) {
  return for_dtype<ReduceKernels>(ShortFloats(), dtype, []<class T>() {
    return ReduceKernels{row<T, R>, columns<T, R>, combine_totals<R>, static_cast<double>(R::kStart)};
  });
}

ReduceKernels find_reduce(uint32_t op, uint32_t dtype) {
  switch (op) {
    case BP_OP_REDUCE_SUM:
      return kernels_of<Sum>(dtype);
    case BP_OP_REDUCE_MAX:
      return kernels_of<Max>(dtype);
    case BP_OP_REDUCE_MIN:
      return kernels_of<Min>(dtype);
    default:
      return {};
  }
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_reduce);
ReduceKernels reduce_kernels(uint32_t op, uint32_t dtype) { return HWY_DYNAMIC_DISPATCH(find_reduce)(op, dtype); }
}  // namespace backplane::onednn
#endif
