// SPDX-License-Identifier: Apache-2.0
// Micro-kernels of the GEMM in ops/gemm.cpp. Inputs of every dtype except f64 are widened to f32.
// Sums of products of 8-bit integers are exact in f32 up to a depth of kExactDepth.
#pragma once

#include <cstdint>

namespace backplane::onednn {

inline constexpr int64_t kExactDepth = 512;

struct GemmTile {
  int64_t rows, cols;  // extents of a tile; 0 on targets without vectors
  // acc[r * stride + c] += sum over k of a[k * rows + r] * b[k * cols + c]
  void (*run)(const float* a, const float* b, int64_t depth, float* acc, int64_t stride);
};

// Functions that read an input of one dtype. A line is a row of `a` or a column of `b`. Strides are
// in elements.
struct GemmInput {
  // Packs panels of `width` lines. The layout is out[panel][k][width], and lines after the last
  // line are zero.
  void (*pack)(const void* from, int64_t line_stride, int64_t depth_stride, int64_t lines, int64_t depth, int64_t width,
               float* out);
  // Computes acc[m * acc_stride + c] += (a * b)[m, c]. `a` has few rows of contiguous f32. `b` is
  // not packed. by_rows requires contiguous rows of `b`, and by_cols requires contiguous columns.
  using Skinny = void (*)(const float* a, int64_t a_stride, int64_t rows, const void* b, int64_t b_stride,
                          int64_t depth, int64_t cols, float* acc, int64_t acc_stride);
  Skinny by_rows, by_cols;
};

// These functions return kernels that are compiled for this processor. The members of GemmInput are null for
// unsupported dtypes.
GemmTile gemm_tile();
GemmInput gemm_input(uint32_t dtype);

}  // namespace backplane::onednn
