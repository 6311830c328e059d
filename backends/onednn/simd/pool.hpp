// SPDX-License-Identifier: Apache-2.0
// Vectorised steps of max_pool and avg_pool. Pooling is separable. The first step combines, element by element,
// the image lines that contribute to a line of the output. The second step combines the taps of each window
// along the resulting line. Combining means taking the maximum or the sum.
#pragma once

#include <cstdint>

namespace backplane::onednn {

struct PoolKernels {
  // Combines element i of all `line_count` lines into combined[i]. If `more` is set, the old
  // combined[i] is also included. `line_count` is at least 1.
  void (*lines)(float* combined, const void* const* lines, int64_t line_count, bool more, int64_t count);
  // Combines `kernel` taps of `line` into out[i]. The first tap is at i * stride, and taps are `dilation`
  // elements apart. For strides up to kPoolStrides, the function rounds `count` up to a multiple of kPoolStep.
  // `out` must have room for these outputs, and `line` must contain all their taps.
  void (*taps)(float* out, const float* line, int64_t stride, int64_t kernel, int64_t dilation, int64_t count);
  // out[i] /= max(columns[i] * lines, 1). `out` and `columns` must have `count` elements
  // rounded up to a multiple of kPoolStep.
  void (*divide)(float* out, const float* columns, float lines, int64_t count);
};
// Number of floats in the widest vector, which has 64 bytes.
inline constexpr int64_t kPoolStep = 16;
inline constexpr int64_t kPoolStrides = 2;  // maximum stride for which there are vector loops

// Returns the functions for the CPU of the process. They are null if the build target has no SIMD
// instructions. `dtype` is f32, f16 or bf16.
PoolKernels pool_kernels(bool average, uint32_t dtype);

}  // namespace backplane::onednn
