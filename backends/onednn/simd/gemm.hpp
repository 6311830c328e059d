// SPDX-License-Identifier: Apache-2.0
// Micro-kernels of the plugin's own GEMM. Inputs of any dtype below f64 are widened to f32, in
// which sums of products of 8-bit integers are exact up to a depth of kExactDepth.
#pragma once

#include <cstdint>

namespace backplane::onednn {

inline constexpr int64_t kExactDepth = 512;

struct GemmTile {
  int64_t rows, cols;  // extents of a tile; 0 on targets without vectors
  // acc[r * stride + c] += sum over k of a[k * rows + r] * b[k * cols + c]
  void (*run)(const float* a, const float* b, int64_t depth, float* acc, int64_t stride);
};

// Functions that read one input, by its dtype. A line is a row of a or a column of b; strides are
// in elements.
struct GemmInput {
  // Packs panels of `width` lines: out[panel][k][width], zeros beyond the last line.
  void (*pack)(const void* from, int64_t line_stride, int64_t depth_stride, int64_t lines, int64_t depth, int64_t width,
               float* out);
  // acc[m * acc_stride + c] += a * b for few rows of contiguous f32 and an unpacked b, whose rows
  // or columns are contiguous.
  using Skinny = void (*)(const float* a, int64_t a_stride, int64_t rows, const void* b, int64_t b_stride,
                          int64_t depth, int64_t cols, float* acc, int64_t acc_stride);
  Skinny by_rows, by_cols;
};

// The functions compiled for this processor; those of GemmInput are null for other dtypes.
GemmTile gemm_tile();
GemmInput gemm_input(uint32_t dtype);

}  // namespace backplane::onednn
