// SPDX-License-Identifier: Apache-2.0
// Products of matrices of any size, any strides and any dtype below f64, by kernels of the plugin's own: what serves a size that has not recurred.
#pragma once

#include <backplane/kit/call.hpp>

#include "ops/vector_loop.hpp"

namespace backplane::onednn {

// Kernels of one vector target. Factors are widened to f32, in which 8-bit integers up to kExactDepth deep are exact.
struct GemmKernels {
  int64_t rows, cols;  // of a tile; rows is 0 where there are no vectors
  // sums[r * stride + c] += sum over k of a[k * rows + r] * b[k * cols + c]
  void (*tile)(const float* a, const float* b, int64_t depth, float* sums, int64_t stride);
};

// How the kernels read factors of one dtype. A line is a row of a or a column of b; strides are in elements.
struct GemmFactor {
  // Panels of `width` lines, out[panel][k][width], zeros beyond the last line.
  void (*pack)(const void* from, int64_t line_stride, int64_t depth_stride, int64_t lines, int64_t depth, int64_t width,
               float* out);
  // sums[m * sums_stride + c] += a * b for few rows of packed f32, b's rows packed, or b's columns.
  using Skinny = void (*)(const float* a, int64_t a_stride, int64_t rows, const void* b, int64_t b_stride,
                          int64_t depth, int64_t cols, float* sums, int64_t sums_stride);
  Skinny by_rows, by_cols;
};

inline constexpr int64_t kExactDepth = 512;
// Multiplications of oneDNN that are worth a team: a tenth of a millisecond.
inline constexpr int64_t kTeamWork = int64_t{1} << 24;

// One file, compiled once a vector target.
GemmKernels gemm_kernels();
GemmFactor gemm_factor(uint32_t dtype);

// What a linear layer ends with; of no bias and no activation both are null.
struct Finish {
  const kit::View* bias = nullptr;  // packed, of the output's dtype
  Row activation = nullptr;         // of f32 to the output's dtype
};

bool gemm_serves(uint32_t dtype);
// out = a * b for views of one rank of at least 2, batch dimensions first. Memory comes from `scratch`: bounded, and kept.
void multiply(const kit::View& a, const kit::View& b, const kit::View& out, const Finish& finish,
              kit::Scratch& scratch);

}  // namespace backplane::onednn
