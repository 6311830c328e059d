// SPDX-License-Identifier: Apache-2.0
// Vectorised steps of max_pool and avg_pool. Pooling is separable: a step combines the lines of an
// image that a line of the output covers, another combines taps along the result. Combining takes
// the maximum or the sum.
#pragma once

#include <cstdint>

namespace backplane::onednn {

struct PoolKernels {
  // combined[i] = the combination of lines[0..line_count)[i], at least one, and of combined[i]
  // itself if `more`.
  void (*lines)(float* combined, const void* const* lines, int64_t line_count, bool more, int64_t count);
  // out[i] = the combination of `kernel` taps of `line`, the first at i * stride, then `dilation`
  // apart. For strides up to kPoolStrides, `line` and `out` must extend to `count` rounded up to
  // kPoolStep.
  void (*taps)(float* out, const float* line, int64_t stride, int64_t kernel, int64_t dilation, int64_t count);
  // out[i] /= max(columns[i] * lines, 1). `out` and `columns` must extend to `count` rounded up to
  // kPoolStep.
  void (*divide)(float* out, const float* columns, float lines, int64_t count);
};
inline constexpr int64_t kPoolStep = 16;    // floats in the widest vector, of 64 bytes
inline constexpr int64_t kPoolStrides = 2;  // strides with vector loops

// The functions compiled for this processor; null on targets without vectors. `dtype` is f32, f16
// or bf16.
PoolKernels pool_kernels(bool average, uint32_t dtype);

}  // namespace backplane::onednn
