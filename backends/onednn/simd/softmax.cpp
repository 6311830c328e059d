// SPDX-License-Identifier: Apache-2.0
// The operators softmax and log_softmax along a contiguous row, and along contiguous columns.
#include <hwy/cache_control.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>

#include "simd/softmax.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/softmax.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/accumulate-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR
SoftmaxSteps find_softmax_steps() { return {}; }
SoftmaxKernels find_softmax(bool, uint32_t) { return {}; }
#else
constexpr float kLowest = -std::numeric_limits<float>::infinity();

// A step for each_vector. It computes the maximum of each lane. NaN propagates.
struct Maximum {
  V maximum;
  HWY_INLINE void operator()(D, V x, int64_t) {
    maximum = hn::IfThenElse(hn::Or(hn::Gt(maximum, x), hn::IsNaN(maximum)), maximum, x);
  }
};

template <class T>
float maximum_of(D d, const T* x, int64_t count) {
  Maximum step{hn::Set(d, kLowest)};
  each_vector(d, x, count, kLowest, step);
  HWY_ALIGN float lanes[kMaxLanes];
  hn::Store(step.maximum, d, lanes);
  float maximum = lanes[0];
  for (size_t i = 1; i < hn::Lanes(d); ++i) maximum = maximum > lanes[i] || maximum != maximum ? maximum : lanes[i];
  return maximum;
}

// Maps the bits of 16-bit floats to 16-bit integers in the same order. Applied to such integers, the function
// returns the bits. Positive NaNs are the greatest integers, and negative NaNs the least.
template <class DI, class VI>
HWY_INLINE VI ordered(DI di, VI bits) {
  return hn::Xor(bits, hn::And(hn::ShiftRight<15>(bits), hn::Set(di, 0x7FFF)));
}
template <class T>
float greatest_half(const T* x, int64_t count) {
  const hn::ScalableTag<int16_t> di;
  using VI = hn::Vec<decltype(di)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(di));
  const auto* const words = reinterpret_cast<const int16_t*>(x);
  VI a = hn::Set(di, std::numeric_limits<int16_t>::min()), b = a;
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    a = hn::Max(a, ordered(di, hn::LoadU(di, words + i)));
    b = hn::Max(b, ordered(di, hn::LoadU(di, words + i + lanes)));
  }
  for (; i + lanes <= count; i += lanes) a = hn::Max(a, ordered(di, hn::LoadU(di, words + i)));
  if (i < count) a = hn::Max(a, ordered(di, hn::BitCast(di, load_words_part(D(), x + i, count - i, T::from(kLowest)))));
  const int16_t greatest = hn::GetLane(ordered(di, hn::MaxOfLanes(di, hn::Max(a, b))));
  return static_cast<float>(std::bit_cast<T>(greatest));
}

// Returns the maximum of the elements. If there is a NaN, the result may be any element, because a NaN makes
// the sum of the exponentials NaN in any case.
template <class T>
float greatest_of(D d, const T* x, int64_t count) {
  if constexpr (kit::Half<T>) return greatest_half(x, count);
  const auto lanes = static_cast<int64_t>(2 * hn::Lanes(d));
  V a = hn::Set(d, kLowest), b = a, c = a, e = a;
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const Pair<V> left = load_pair(d, x + i), right = load_pair(d, x + i + lanes);
    a = hn::Max(a, left.first);
    b = hn::Max(b, left.second);
    c = hn::Max(c, right.first);
    e = hn::Max(e, right.second);
  }
  for (; i < count; i += lanes) {
    const Pair<V> rest = i + lanes <= count ? load_pair(d, x + i) : load_pair_part(d, x + i, count - i, kLowest);
    a = hn::Max(a, rest.first);
    b = hn::Max(b, rest.second);
  }
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(a, b), hn::Max(c, e))));
}

// The values that Exponentials stores in `kept` for the last pass over a row.
enum class Kept : uint8_t { nothing, exponentials, differences };

// A step for each_pair. It sums e^(x - maximum). It stores the exponentials, or the differences x - maximum, in
// `kept`: the first vector of each pair, then the second. It also prefetches the same elements of `next`, so
// that reading the next row overlaps with arithmetic.
template <class T, Kept kKept>
struct Exponentials {
  float* kept;
  V maximum;
  Total total;
  const T* next;
  HWY_INLINE void operator()(D d, Pair<V> x, int64_t i) {
    constexpr int kNoWrite = 0, kSecondLevel = 2;
    constexpr auto kLine = static_cast<int64_t>(64 / sizeof(T));
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t k = 0; k < 2 * lanes; k += kLine) __builtin_prefetch(next + i + k, kNoWrite, kSecondLevel);
    const Pair<V> difference{hn::Sub(x.first, maximum), hn::Sub(x.second, maximum)};
    const V first = exp_for_sum<T>(d, difference.first), second = exp_for_sum<T>(d, difference.second);
    total.add(d, hn::Add(first, second));
    if constexpr (kKept == Kept::exponentials) store_pair(d, {first, second}, kept + i);
    if constexpr (kKept == Kept::differences) store_pair(d, difference, kept + i);
  }
};

// Functors that Write and write_row apply to each vector.
struct Scaled {
  V factor;
  HWY_INLINE V operator()(D, V e, int64_t) const { return hn::Mul(e, factor); }
};
struct Limited {
  V softcap;
  HWY_INLINE V operator()(D d, V x, int64_t) const { return hn::Mul(tanh_of(d, hn::Div(x, softcap)), softcap); }
};
template <class T>
struct ScaledExponential {
  V maximum, factor;
  HWY_INLINE V operator()(D d, V x, int64_t) const { return hn::Mul(exp_for_sum<T>(d, hn::Sub(x, maximum)), factor); }
};
struct LogSoftmax {
  V maximum, log_sum;
  HWY_INLINE V operator()(D, V x, int64_t) const { return hn::Sub(hn::Sub(x, maximum), log_sum); }
};
struct LessLogSum {
  V log_sum;
  HWY_INLINE V operator()(D, V difference, int64_t) const { return hn::Sub(difference, log_sum); }
};

template <class T>
double total(const void* from, int64_t count, float& maximum) {
  const D d;
  const auto* x = static_cast<const T*>(from);
  maximum = greatest_of(d, x, count);
  Exponentials<T, Kept::nothing> exponentials{nullptr, hn::Set(d, maximum), Total(d), x + count};
  each_pair(d, x, count, kLowest, exponentials);
  return exponentials.total.get(d);
}
// Sets each pair of y to value(get(i)), where i is the index of the pair's first element. If `streams` is
// set and the row consists of whole groups of 2 cache lines, the function uses non-temporal stores.
template <class T, class Get, class F>
void write_row(D d, T* y, int64_t count, bool streams, const Get& get, F value) {
  constexpr int64_t kLines = 128;
  const auto lanes = static_cast<int64_t>(2 * hn::Lanes(d));
  const bool whole_lines =
      reinterpret_cast<intptr_t>(y) % kLines == 0 && count * static_cast<int64_t>(sizeof(T)) % kLines == 0;
  const auto pair = [&](int64_t i) HWY_ATTR {
    const Pair<V> x = get(i);
    return Pair<V>{value(d, x.first, i), value(d, x.second, i)};
  };
  if (streams && whole_lines) {
    for (int64_t i = 0; i < count; i += lanes) store_pair<true>(d, pair(i), y + i);
  } else {
    for (int64_t i = 0; i < count; i += lanes) store_pair_at(d, pair(i), y, i, count);
  }
}

// Maximum number of f32 values of a row that are stored for the last pass. They fit into the second-level
// cache.
constexpr int64_t kKept = 16384;

// Sets y to e^(x - maximum) / (sum * divisor), returns the sum, and sets `maximum`. The exponentials of a row
// of up to kKept elements are stored in `kept`, which stays in the second-level cache. For longer rows, the
// last pass computes the exponentials again.
template <class T>
double shares(const void* from, void* to, int64_t count, bool streams, double divisor, float& maximum) {
  const D d;
  const auto* x = static_cast<const T*>(from);
  auto* y = static_cast<T*>(to);
  if (count <= kKept) {
    HWY_ALIGN float kept[kKept + 2 * kMaxLanes];  // has padding for a partial last pair
    maximum = greatest_of(d, x, count);
    Exponentials<T, Kept::exponentials> exponentials{kept, hn::Set(d, maximum), Total(d), x + count};
    each_pair(d, x, count, kLowest, exponentials);
    const double sum = exponentials.total.get(d);
    const auto factor = static_cast<float>(1 / (sum * divisor));
    write_row(
        d, y, count, streams, [&](int64_t i) HWY_ATTR { return load_pair(d, kept + i); }, Scaled{hn::Set(d, factor)});
    return sum;
  }
  const double sum = total<T>(x, count, maximum);
  const auto factor = static_cast<float>(1 / (sum * divisor));
  write_row(
      d, y, count, streams, [&](int64_t i) HWY_ATTR { return load_pair_at(d, x, i, count); },
      ScaledExponential<T>{hn::Set(d, maximum), hn::Set(d, factor)});
  return sum;
}

template <class T, bool kLogarithm>
void softmax(const void* from, void* to, int64_t count, bool streams) {
  float greatest = 0;
  if constexpr (kLogarithm) {
    const D d;
    const auto* x = static_cast<const T*>(from);
    if constexpr (kit::Half<T>) {  // stores x - maximum in f32, so that the last pass converts no elements
      if (count <= kKept) {
        HWY_ALIGN float kept[kKept + 2 * kMaxLanes];  // has padding for a partial last pair
        greatest = greatest_of(d, x, count);
        Exponentials<T, Kept::differences> exponentials{kept, hn::Set(d, greatest), Total(d), x + count};
        each_pair(d, x, count, kLowest, exponentials);
        const auto log_sum = static_cast<float>(std::log(exponentials.total.get(d)));
        return write_row(
            d, static_cast<T*>(to), count, streams, [&](int64_t i) HWY_ATTR { return load_pair(d, kept + i); },
            LessLogSum{hn::Set(d, log_sum)});
      }
    }
    const auto log_sum = static_cast<float>(std::log(total<T>(x, count, greatest)));
    write_row(
        d, static_cast<T*>(to), count, streams, [&](int64_t i) HWY_ATTR { return load_pair_at(d, x, i, count); },
        LogSoftmax{hn::Set(d, greatest), hn::Set(d, log_sum)});
  } else {
    shares<T>(from, to, count, streams, 1, greatest);
  }
}

// Loads and stores kVectors vectors of a row of `count` columns. Lanes past the last column are loaded as 0,
// and are not stored. If kStream is set, stores of f32 are non-temporal, and rows are aligned to cache lines.
template <class T, int kVectors, bool kStream>
struct Columns {
  int64_t count;  // the number of columns
  HWY_INLINE V at(D d, const T* row, int v) const {
    const auto begin = v * static_cast<int64_t>(hn::Lanes(d));
    return kVectors > 1 ? load(d, row + begin) : load_at(d, row, begin, count);
  }
  HWY_INLINE void set(D d, V value, T* row, int v) const {
    const auto begin = v * static_cast<int64_t>(hn::Lanes(d));
    if constexpr (kStream && std::same_as<T, float>) {
      hn::Stream(value, d, row + begin);
    } else {
      kVectors > 1 ? store(d, value, row + begin) : store_at(d, value, row, begin, count);
    }
  }
};

// Computes softmax along `length` rows, separately for each of up to kVectors vectors of columns. The first
// pass updates the maximum and the sum of the exponentials block by block. A block has sqrt(length) rows, so
// the error of the sum grows with sqrt(length). The second pass computes the exponentials again. It cannot read
// stored exponentials from the caches: rows at a distance of 2 KiB or more share few sets of the caches, so
// they would be evicted before their use. The first pass prefetches the next block of rows, because the
// hardware prefetcher does not predict them.
template <class T, bool kLogarithm, int kVectors, bool kStream>
void column_group(const T* x, T* y, int64_t stride, int64_t length, Columns<T, kVectors, kStream> columns) {
  const D d;
  const auto group_bytes = static_cast<int64_t>(kVectors * hn::Lanes(d) * sizeof(T));
  // The first maximum is the lowest finite number. If it were -inf, the difference of two maxima could be NaN.
  V maximum[kVectors], sum[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    maximum[v] = hn::Set(d, std::numeric_limits<float>::lowest());
    sum[v] = hn::Zero(d);
  }
  const auto depth = std::max<int64_t>(static_cast<int64_t>(std::sqrt(static_cast<double>(length))), 1);
  for (int64_t begin = 0; begin < length; begin += depth) {
    const int64_t end = std::min(begin + depth, length);
    V before[kVectors], block[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      before[v] = maximum[v];
      block[v] = hn::Zero(d);
    }
    for (int64_t r = begin; r < end; ++r) {
      for (int v = 0; v < kVectors; ++v) maximum[v] = hn::Max(maximum[v], columns.at(d, x + r * stride, v));
    }
    for (int64_t r = begin; r < end; ++r) {
      const auto* const ahead = reinterpret_cast<const char*>(x + std::min(r + depth, length - 1) * stride);
      for (int64_t byte = 0; byte < group_bytes; byte += 64) hwy::Prefetch(ahead + byte);
      for (int v = 0; v < kVectors; ++v)
        block[v] = hn::Add(block[v], exp_for_sum<T>(d, hn::Sub(columns.at(d, x + r * stride, v), maximum[v])));
    }
    for (int v = 0; v < kVectors; ++v)
      sum[v] = hn::MulAdd(sum[v], exp_for_sum<T>(d, hn::Sub(before[v], maximum[v])), block[v]);
  }
  for (int v = 0; v < kVectors; ++v) sum[v] = kLogarithm ? log_of(d, sum[v]) : hn::Div(hn::Set(d, 1.0f), sum[v]);
  for (int64_t r = 0; r < length; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      const V shifted = hn::Sub(columns.at(d, x + r * stride, v), maximum[v]);
      columns.set(d, kLogarithm ? hn::Sub(shifted, sum[v]) : hn::Mul(exp_for_sum<T>(d, shifted), sum[v]),
                  y + r * stride, v);
    }
  }
}

template <class T, bool kLogarithm, bool kStream>
void column_groups(const T* x, T* y, int64_t stride, int64_t length, int64_t count) {
  constexpr int kVectors = 4;
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t i = 0;
  for (; i + kVectors * lanes <= count; i += kVectors * lanes)
    column_group<T, kLogarithm>(x + i, y + i, stride, length, Columns<T, kVectors, kStream>{kVectors * lanes});
  for (; i < count; i += lanes)
    column_group<T, kLogarithm>(x + i, y + i, stride, length, Columns<T, 1, false>{std::min(lanes, count - i)});
}

template <class T, bool kLogarithm>
void softmax_columns(const void* from, void* to, int64_t stride, int64_t length, int64_t count, bool streams) {
  const auto* x = static_cast<const T*>(from);
  auto* y = static_cast<T*>(to);
  constexpr int64_t kLine = 64;
  const bool whole_lines =
      reinterpret_cast<intptr_t>(to) % kLine == 0 && stride * static_cast<int64_t>(sizeof(T)) % kLine == 0;
  // Only stores of f32 vectors are non-temporal (Columns::set).
  if constexpr (std::same_as<T, float>) {
    if (streams && whole_lines) return column_groups<T, kLogarithm, true>(x, y, stride, length, count);
  }
  column_groups<T, kLogarithm, false>(x, y, stride, length, count);
}

// A step for each_vector. It replaces x by e^(x - maximum), and sums the exponentials.
struct Replace {
  float* x;
  int64_t count;
  V maximum;
  Total total;
  HWY_INLINE void operator()(D d, V at, int64_t i) {
    const V e = exp_of(d, hn::Sub(at, maximum));
    total.add(d, e);
    store_at(d, e, x, i, count);
  }
};

float maximum_step(const float* x, int64_t count) { return maximum_of(D(), x, count); }
double exponentials_step(float* x, int64_t count, float maximum) {
  const D d;
  Replace replace{x, count, hn::Set(d, maximum), Total(d)};
  each_vector(d, static_cast<const float*>(x), count, kLowest, replace);
  return replace.total.get(d);
}
void scale_step(float* x, int64_t count, float factor) {
  const D d;
  Write<float, Scaled> write{x, count, {hn::Set(d, factor)}};
  each_vector(d, static_cast<const float*>(x), count, 0.0f, write);
}
void limit_step(float* x, int64_t count, float softcap) {
  const D d;
  Write<float, Limited> write{x, count, {hn::Set(d, softcap)}};
  each_vector(d, static_cast<const float*>(x), count, 0.0f, write);
}
SoftmaxSteps find_softmax_steps() { return {maximum_step, exponentials_step, scale_step, limit_step}; }

SoftmaxKernels find_softmax(bool logarithm, uint32_t dtype) {
  return for_dtype<SoftmaxKernels>(ShortFloats(), dtype, [&]<class T>() {
    return logarithm ? SoftmaxKernels{softmax<T, true>, softmax_columns<T, true>, total<T>, shares<T>}
                     : SoftmaxKernels{softmax<T, false>, softmax_columns<T, false>, total<T>, shares<T>};
  });
}
#endif

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_softmax);
HWY_EXPORT(find_softmax_steps);
SoftmaxKernels softmax_kernels(bool logarithm, uint32_t dtype) {
  return HWY_DYNAMIC_DISPATCH(find_softmax)(logarithm, dtype);
}
SoftmaxSteps softmax_steps() { return HWY_DYNAMIC_DISPATCH(find_softmax_steps)(); }
}  // namespace backplane::onednn
#endif
