// SPDX-License-Identifier: Apache-2.0
// The operators argmax and argmin, along contiguous rows and across rows.
#include <algorithm>
#include <cmath>
#include <limits>

#include "simd/reduce_arg.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/reduce_arg.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/accumulate-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

// The orders of values for argmax and argmin. kLast is the start value of a search. It precedes no value.
struct Greatest {
  static HWY_INLINE V better(V a, V b) { return hn::Max(a, b); }
  static HWY_INLINE auto precedes(V a, V b) { return hn::Gt(a, b); }
  static HWY_INLINE float reduce(D d, V a) { return hn::GetLane(hn::MaxOfLanes(d, a)); }
  static bool precedes(float a, float b) { return a > b; }
  [[maybe_unused]] static constexpr float kLast = -std::numeric_limits<float>::infinity();
};
struct Least {
  static HWY_INLINE V better(V a, V b) { return hn::Min(a, b); }
  static HWY_INLINE auto precedes(V a, V b) { return hn::Lt(a, b); }
  static HWY_INLINE float reduce(D d, V a) { return hn::GetLane(hn::MinOfLanes(d, a)); }
  static bool precedes(float a, float b) { return a < b; }
  [[maybe_unused]] static constexpr float kLast = std::numeric_limits<float>::infinity();
};

// Returns the index of the first element that is `value`, or of the first NaN if `value` is NaN.
// Returns `count` if there is none.
template <class T>
int64_t first_of(D d, const T* x, int64_t count, float value) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V wanted = hn::Set(d, value);
  const bool nan = value != value;
  for (int64_t i = 0; i < count; i += lanes) {
    const bool whole = i + lanes <= count;
    // Lanes past the end must not match `value`. They contain 0 if `value` is NaN, and NaN otherwise.
    const V at = whole ? load(d, x + i) : load_part(d, x + i, count - i, nan ? 0.0f : std::nanf(""));
    const intptr_t lane = hn::FindFirstTrue(d, nan ? hn::IsNaN(at) : hn::Eq(at, wanted));
    if (lane >= 0) return i + static_cast<int64_t>(lane);
  }
  return count;
}

// Finds the extremum of each block, which fits into the first-level cache. Searches for the index of the
// extremum only if it precedes the extrema of all earlier blocks.
template <class T, class Order>
int32_t row(const void* from, int64_t count) {
  constexpr int64_t kBlock = 2048;
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* x = static_cast<const T*>(from);
  float best = Order::kLast;
  int64_t found = 0;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, count);
    V a = hn::Set(d, Order::kLast), b = a;
    auto a_nan = hn::IsNaN(a), b_nan = a_nan;
    int64_t i = begin;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      const V first = load(d, x + i), second = load(d, x + i + lanes);
      a = Order::better(a, first);
      b = Order::better(b, second);
      a_nan = hn::Or(a_nan, hn::IsNaN(first));
      b_nan = hn::Or(b_nan, hn::IsNaN(second));
    }
    for (; i < end; i += lanes) {
      const V rest = i + lanes <= end ? load(d, x + i) : load_part(d, x + i, end - i, Order::kLast);
      a = Order::better(a, rest);
      a_nan = hn::Or(a_nan, hn::IsNaN(rest));
    }
    if (!hn::AllFalse(d, hn::Or(a_nan, b_nan)))
      return static_cast<int32_t>(begin + first_of(d, x + begin, end - begin, std::nanf("")));
    const float here = Order::reduce(d, Order::better(a, b));
    if (!Order::precedes(here, best)) continue;
    best = here;
    found = begin + first_of(d, x + begin, end - begin, here);
  }
  return static_cast<int32_t>(found);
}

// Stores the best value so far and its row for each column. Each pass over the columns processes up to kDepth
// rows, so it loads and stores the best values once for these rows.
template <class T, class Order>
void columns(const void* from, int64_t stride, int64_t length, int64_t count, int32_t* found) {
  constexpr int64_t kDepth = 8;
  const D d;
  const hn::RebindToSigned<D> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* base = static_cast<const std::byte*>(from);
  const auto row_at = [&](int64_t r) { return reinterpret_cast<const T*>(base + r * stride); };
  HWY_ALIGN float best[ArgKernels::kMaxColumns + kMaxLanes];
  HWY_ALIGN int32_t index[ArgKernels::kMaxColumns + kMaxLanes];
  for (int64_t i = 0; i < count; i += lanes) {
    hn::StoreU(load_at(d, row_at(0), i, count), d, best + i);
    hn::StoreU(hn::Zero(di), di, index + i);
  }
  for (int64_t begin = 1; begin < length; begin += kDepth) {
    const int64_t end = std::min(begin + kDepth, length);
    for (int64_t i = 0; i < count; i += lanes) {
      V top = hn::LoadU(d, best + i);
      auto at = hn::LoadU(di, index + i);
      for (int64_t r = begin; r < end; ++r) {
        const V x = load_at(d, row_at(r), i, count);
        const auto wins = hn::Or(Order::precedes(x, top), hn::And(hn::IsNaN(x), hn::Not(hn::IsNaN(top))));
        top = hn::IfThenElse(wins, x, top);
        at = hn::IfThenElse(hn::RebindMask(di, wins), hn::Set(di, static_cast<int32_t>(r)), at);
      }
      hn::StoreU(top, d, best + i);
      hn::StoreU(at, di, index + i);
    }
  }
  std::copy_n(index, count, found);
}

template <class Order>
ArgKernels kernels_of(uint32_t dtype) {
  return for_dtype<ArgKernels>(ShortFloats(), dtype, []<class T>() {
    return ArgKernels{row<T, Order>, columns<T, Order>};
  });
}

ArgKernels find_arg(uint32_t op, uint32_t dtype) {
  return op == BP_OP_ARGMAX ? kernels_of<Greatest>(dtype) : kernels_of<Least>(dtype);
}

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_arg);
ArgKernels arg_kernels(uint32_t op, uint32_t dtype) { return HWY_DYNAMIC_DISPATCH(find_arg)(op, dtype); }
}  // namespace backplane::onednn
#endif
