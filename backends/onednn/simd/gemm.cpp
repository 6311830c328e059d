// SPDX-License-Identifier: Apache-2.0
// Micro-kernels of the GEMM: a kernel with a tile of accumulators in registers, packing by 4 x 4
// transposes, and skinny kernels for few rows of `a`, which read `b` only once.
#include <cmath>

#include <algorithm>

#include "simd/gemm.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/gemm.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using D4 = hn::CappedTag<float, 4>;
using V4 = hn::Vec<D4>;

// Rows per tile. Each row of a tile needs two accumulator vectors. The registers also contain two vectors of
// `b` and one vector of `a`.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
constexpr int kRows = 12;
#elif HWY_ARCH_X86
constexpr int kRows = 6;
#else
constexpr int kRows = 8;
#endif

void tile(const float* a, const float* b, int64_t depth, float* acc, int64_t stride) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  V sum[kRows][2];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    sum[r][0] = hn::LoadU(d, acc + r * stride);
    sum[r][1] = hn::LoadU(d, acc + r * stride + lanes);
  }
  for (int64_t k = 0; k < depth; ++k, a += kRows, b += 2 * lanes) {
    const V left = hn::Load(d, b), right = hn::Load(d, b + lanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const V x = hn::Set(d, a[r]);
      sum[r][0] = hn::MulAdd(x, left, sum[r][0]);
      sum[r][1] = hn::MulAdd(x, right, sum[r][1]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    hn::StoreU(sum[r][0], d, acc + r * stride);
    hn::StoreU(sum[r][1], d, acc + r * stride + lanes);
  }
}

// Loads one vector and widens it to f32. 8-bit integers are first widened to 32 bits.
template <class Tag, class T>
HWY_INLINE hn::Vec<Tag> widened(Tag d, const T* from) {
  if constexpr (sizeof(T) == 1) {
    const hn::RebindToSigned<Tag> di;
    return hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(hn::Rebind<T, Tag>(), from)));
  } else {
    return load(d, from);
  }
}

template <class T>
HWY_INLINE void pack_4x4(D4 d, const T* from, int64_t line_stride, int64_t width, float* to) {
  const V4 l0 = widened(d, from), l1 = widened(d, from + line_stride), l2 = widened(d, from + 2 * line_stride),
           l3 = widened(d, from + 3 * line_stride);
  store_transposed(d, l0, l1, l2, l3, width, to);
}

// Packs one panel of `lines` lines, at most `width`. Zeros fill the lines from `lines` to `width`.
template <class T>
void pack_panel(const T* from, int64_t line_stride, int64_t depth_stride, int64_t lines, int64_t depth, int64_t width,
                float* to) {
  const D4 d;
  if (depth_stride == 1 && width == 1) {
    const D wide;
    const auto lanes = static_cast<int64_t>(hn::Lanes(wide));
    int64_t k = 0;
    for (; k + lanes <= depth; k += lanes) hn::StoreU(widened(wide, from + k), wide, to + k);
    for (; k < depth; ++k) to[k] = static_cast<float>(from[k]);
    return;
  }
  if (depth_stride == 1 && hn::Lanes(d) == 4) {
    for (int64_t l = 0; l < width; l += 4) {
      if (l + 4 > lines || l + 4 > width) {
        for (int64_t k = 0; k < depth; ++k) {
          for (int64_t i = l; i < std::min(l + 4, width); ++i) {
            to[k * width + i] = i < lines ? static_cast<float>(from[i * line_stride + k]) : 0.0f;
          }
        }
        continue;
      }
      int64_t k = 0;
      for (; k + 4 <= depth; k += 4) pack_4x4(d, from + l * line_stride + k, line_stride, width, to + k * width + l);
      for (; k < depth; ++k) {
        for (int64_t i = l; i < l + 4; ++i) to[k * width + i] = static_cast<float>(from[i * line_stride + k]);
      }
    }
    return;
  }
  for (int64_t k = 0; k < depth; ++k, from += depth_stride, to += width) {
    int64_t i = 0;
    if (line_stride == 1) {
      for (; i + 4 <= lines && hn::Lanes(d) == 4; i += 4) hn::StoreU(widened(d, from + i), d, to + i);
    }
    for (; i < lines; ++i) to[i] = static_cast<float>(from[i * line_stride]);
    for (; i < width; ++i) to[i] = 0;
  }
}

template <class T>
void pack(const void* data, int64_t line_stride, int64_t depth_stride, int64_t lines, int64_t depth, int64_t width,
          float* out) {
  const auto* from = static_cast<const T*>(data);
  for (int64_t l = 0; l < lines; l += width, out += width * depth) {
    pack_panel(from + l * line_stride, line_stride, depth_stride, std::min(width, lines - l), depth, width, out);
  }
}

// Multiplies kDepth rows of `b` by all rows of `a`, for whole vectors of columns, beginning with column `c`.
// Returns the first column that does not fill a vector.
template <int kDepth, class Tag, class T>
HWY_INLINE int64_t add_columns(Tag d, const float* a, int64_t a_stride, int64_t rows, const T* b, int64_t b_stride,
                               int64_t c, int64_t cols, float* acc, int64_t acc_stride) {
  using Vector = hn::Vec<Tag>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; c + lanes <= cols; c += lanes) {
    Vector right[kDepth];
#pragma GCC unroll 8
    for (int k = 0; k < kDepth; ++k) right[k] = widened(d, b + k * b_stride + c);
    for (int64_t m = 0; m < rows; ++m) {
      Vector even = hn::LoadU(d, acc + m * acc_stride + c), odd = hn::Zero(d);
#pragma GCC unroll 8
      for (int k = 0; k < kDepth; ++k) {
        Vector& sum = k % 2 == 0 ? even : odd;
        sum = hn::MulAdd(hn::Set(d, a[m * a_stride + k]), right[k], sum);
      }
      hn::StoreU(hn::Add(even, odd), d, acc + m * acc_stride + c);
    }
  }
  return c;
}

// Multiplies kDepth rows of `b` by all rows of `a`, in one pass over the accumulators. The hardware prefetcher
// can follow the kDepth streams of these rows.
template <class T, int kDepth>
void add_rows(const float* a, int64_t a_stride, int64_t rows, const T* b, int64_t b_stride, int64_t cols, float* acc,
              int64_t acc_stride) {
  int64_t c = add_columns<kDepth>(D(), a, a_stride, rows, b, b_stride, 0, cols, acc, acc_stride);
  c = add_columns<kDepth>(D4(), a, a_stride, rows, b, b_stride, c, cols, acc, acc_stride);
  for (; c < cols; ++c) {
    for (int64_t m = 0; m < rows; ++m) {
      float& sum = acc[m * acc_stride + c];
      for (int k = 0; k < kDepth; ++k) sum += a[m * a_stride + k] * static_cast<float>(b[k * b_stride + c]);
    }
  }
}

// Multiplies one row of `a` by `b`, with the accumulators in registers. Reads `b` from beginning to
// end.
template <class T, int kVectors>
void add_narrow(const float* a, const T* b, int64_t b_stride, int64_t depth, float* acc) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  V sum[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) sum[v] = hn::LoadU(d, acc + v * lanes);
  for (int64_t k = 0; k < depth; ++k, b += b_stride) {
    const V left = hn::Set(d, a[k]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sum[v] = hn::MulAdd(left, widened(d, b + v * lanes), sum[v]);
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[v], d, acc + v * lanes);
}

template <class T>
void by_rows(const float* a, int64_t a_stride, int64_t rows, const void* b, int64_t b_stride, int64_t depth,
             int64_t cols, float* acc, int64_t acc_stride) {
  const auto* at = static_cast<const T*>(b);
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  if (rows == 1 && cols % (4 * lanes) == 0 && cols <= 16 * lanes) {
    int64_t c = 0;
    for (; c + 8 * lanes <= cols; c += 8 * lanes) add_narrow<T, 8>(a, at + c, b_stride, depth, acc + c);
    for (; c < cols; c += 4 * lanes) add_narrow<T, 4>(a, at + c, b_stride, depth, acc + c);
    return;
  }
  int64_t k = 0;
  for (; k + 8 <= depth; k += 8)
    add_rows<T, 8>(a + k, a_stride, rows, at + k * b_stride, b_stride, cols, acc, acc_stride);
  for (; k < depth; ++k) add_rows<T, 1>(a + k, a_stride, rows, at + k * b_stride, b_stride, cols, acc, acc_stride);
}

// Multiplies kRowCount rows of `a` by four columns of `b`, and adds the products to `acc`.
template <class T, int kRowCount>
void add_dots(const float* a, int64_t a_stride, const T* b, int64_t b_stride, int64_t depth, float* acc,
              int64_t acc_stride) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kRowCount][4];
#pragma GCC unroll 4
  for (int m = 0; m < kRowCount; ++m) {
    sum[m][0] = sum[m][1] = sum[m][2] = sum[m][3] = hn::Zero(d);
  }
  int64_t k = 0;
  for (; k + lanes <= depth; k += lanes) {
    V right[4];
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) right[c] = widened(d, b + c * b_stride + k);
#pragma GCC unroll 4
    for (int m = 0; m < kRowCount; ++m) {
      const V left = hn::LoadU(d, a + m * a_stride + k);
#pragma GCC unroll 4
      for (int c = 0; c < 4; ++c) sum[m][c] = hn::MulAdd(left, right[c], sum[m][c]);
    }
  }
#pragma GCC unroll 4
  for (int m = 0; m < kRowCount; ++m) {
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      float total = hn::GetLane(hn::SumOfLanes(d, sum[m][c]));
      for (int64_t i = k; i < depth; ++i) total += a[m * a_stride + i] * static_cast<float>(b[c * b_stride + i]);
      acc[m * acc_stride + c] += total;
    }
  }
}

// Returns the product of one row and one column. Calls for consecutive columns read `b` from beginning to end, which is
// up to 1.9 times as fast as reading four columns at once (docs/measurements/2026-11-27-idle.md).
template <class T>
float dot(const float* a, const T* b, int64_t depth) {
  constexpr int kVectors = 4;
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kVectors];
#pragma GCC unroll 4
  for (V& part : sum) part = hn::Zero(d);
  int64_t k = 0;
  for (; k + kVectors * lanes <= depth; k += kVectors * lanes) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = hn::MulAdd(hn::LoadU(d, a + k + v * lanes), widened(d, b + k + v * lanes), sum[v]);
    }
  }
  for (; k + lanes <= depth; k += lanes) sum[0] = hn::MulAdd(hn::LoadU(d, a + k), widened(d, b + k), sum[0]);
  const V all = hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]));
  float total = hn::GetLane(hn::SumOfLanes(d, all));
  for (; k < depth; ++k) total += a[k] * static_cast<float>(b[k]);
  return total;
}

template <class T>
void by_cols(const float* a, int64_t a_stride, int64_t rows, const void* b, int64_t b_stride, int64_t depth,
             int64_t cols, float* acc, int64_t acc_stride) {
  constexpr decltype(&add_dots<T, 1>) kDots[] = {add_dots<T, 1>, add_dots<T, 2>, add_dots<T, 3>, add_dots<T, 4>};
  const auto* at = static_cast<const T*>(b);
  int64_t c = 0;
  for (; rows > 1 && c + 4 <= cols; c += 4) {
    const T* four = at + c * b_stride;
    for (int64_t m = 0; m < rows; m += 4) {
      kDots[std::min<int64_t>(4, rows - m) - 1](a + m * a_stride, a_stride, four, b_stride, depth,
                                                acc + m * acc_stride + c, acc_stride);
    }
  }
  for (; c < cols; ++c) {
    for (int64_t m = 0; m < rows; ++m) acc[m * acc_stride + c] += dot(a + m * a_stride, at + c * b_stride, depth);
  }
}

GemmTile find_tile() { return {kRows, 2 * static_cast<int64_t>(hn::Lanes(D())), tile}; }

GemmInput find_input(uint32_t dtype) {
  return for_dtype<GemmInput>(kit::Types<float, f16, bf16, int8_t, uint8_t>(), dtype, []<class T>() {
    return GemmInput{pack<T>, by_rows<T>, by_cols<T>};
  });
}
#else
GemmTile find_tile() { return {}; }
GemmInput find_input(uint32_t) { return {}; }
#endif

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_tile);
HWY_EXPORT(find_input);
GemmTile gemm_tile() { return HWY_DYNAMIC_DISPATCH(find_tile)(); }
GemmInput gemm_input(uint32_t dtype) { return HWY_DYNAMIC_DISPATCH(find_input)(dtype); }
}  // namespace backplane::onednn
#endif
