// SPDX-License-Identifier: Apache-2.0
#include "simd/conv.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/conv.cpp"
#include <hwy/foreach_target.h>
// Highway requires foreach_target.h before highway.h.
#include <hwy/highway.h>

#include "simd/accumulate-inl.h"

HWY_BEFORE_NAMESPACE();
namespace backplane::onednn::HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR

// Number of images that the kernel processes at once. Each image has up to two accumulator vectors.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
constexpr int kImages = 8;
#else
constexpr int kImages = 4;
#endif

// The taps [first, last) of one dimension that lie within the image. `at` is the position of tap 0 in the
// image, which is negative if the tap is in the padding.
struct Taps {
  int64_t first, last, at;
};
Taps taps_of(const DirectConvShape& shape, int d, int64_t position) {
  const int64_t at = position * shape.stride[d] - shape.pad[d], step = shape.dilation[d];
  const int64_t first = at >= 0 ? 0 : (-at + step - 1) / step;
  const int64_t last = at >= shape.image[d] ? 0 : (shape.image[d] - at + step - 1) / step;
  return {std::min(first, shape.kernel[d]), std::min(last, shape.kernel[d]), at};
}

// Computes kVectors vectors of output channels, from channel `o` on, at one position of kCount images.
template <int kCount, int kVectors>
HWY_INLINE void position(const DirectConvShape& shape, const float* x, const float* weights, const float* bias,
                         bool relu, float* y, const Taps& rows, const Taps& columns, int64_t o) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t channels = shape.channels, padded = shape.padded_outputs();
  const int64_t x_image = shape.image[0] * shape.image[1] * channels;
  const int64_t y_image = shape.result[0] * shape.result[1] * shape.outputs;
  V sum[kCount][kVectors];
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    const V start = bias == nullptr ? hn::Zero(d) : load_at(d, bias, o + v * lanes, shape.outputs);
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) sum[i][v] = start;
  }
  // Without dilation, the channels of all taps of a kernel row are contiguous in the image.
  const bool joined = shape.dilation[1] == 1;
  const int64_t width = columns.last - columns.first, spans = joined ? 1 : width;
  const int64_t span = joined ? width * channels : channels, step = shape.dilation[1] * channels;
  for (int64_t r = rows.first; r < rows.last; ++r) {
    const float* line =
        x + ((rows.at + r * shape.dilation[0]) * shape.image[1] + columns.at) * channels + columns.first * step;
    const float* w = weights + (r * shape.kernel[1] + columns.first) * channels * padded + o;
    for (int64_t s = 0; s < spans; ++s, line += step) {
      const float* from = line;
      for (int64_t k = 0; k < span; ++k, ++from, w += padded) {
        V factor[kVectors];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) factor[v] = hn::LoadU(d, w + v * lanes);
#pragma GCC unroll 8
        for (int i = 0; i < kCount; ++i) {
          const V value = hn::Set(d, from[i * x_image]);
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::MulAdd(value, factor[v], sum[i][v]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      V result = sum[i][v];
      if (relu) result = hn::IfThenZeroElse(hn::Lt(result, hn::Zero(d)), result);  // a NaN remains NaN
      store_at(d, result, y + i * y_image, o + v * lanes, shape.outputs);
    }
  }
}

template <int kCount>
void group(const DirectConvShape& shape, const float* x, const float* weights, const float* bias, bool relu, float* y) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  for (int64_t r = 0; r < shape.result[0]; ++r) {
    const Taps rows = taps_of(shape, 0, r);
    for (int64_t c = 0; c < shape.result[1]; ++c, y += shape.outputs) {
      const Taps columns = taps_of(shape, 1, c);
      int64_t o = 0;
      for (; o + lanes < shape.outputs; o += 2 * lanes)
        position<kCount, 2>(shape, x, weights, bias, relu, y, rows, columns, o);
      if (o < shape.outputs) position<kCount, 1>(shape, x, weights, bias, relu, y, rows, columns, o);
    }
  }
}

void convolve(const DirectConvShape& shape, const float* x, const float* weights, const float* bias, bool relu,
              float* y, int64_t images) {
  const int64_t x_image = shape.image[0] * shape.image[1] * shape.channels;
  const int64_t y_image = shape.result[0] * shape.result[1] * shape.outputs;
  int64_t n = 0;
  for (; n + kImages <= images; n += kImages)
    group<kImages>(shape, x + n * x_image, weights, bias, relu, y + n * y_image);
  for (; n < images; ++n) group<1>(shape, x + n * x_image, weights, bias, relu, y + n * y_image);
}

DirectConvKernel find_direct_conv() { return convolve; }
#else
DirectConvKernel find_direct_conv() { return nullptr; }
#endif

}  // namespace
}  // namespace backplane::onednn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace backplane::onednn {
HWY_EXPORT(find_direct_conv);
DirectConvKernel direct_conv_kernel() { return HWY_DYNAMIC_DISPATCH(find_direct_conv)(); }
}  // namespace backplane::onednn
#endif
