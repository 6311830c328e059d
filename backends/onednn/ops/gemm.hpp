// SPDX-License-Identifier: Apache-2.0
// A GEMM by the plugin's own kernels, for any size and any strides, and for every dtype of matmul except f64.
// Any-size plans use this GEMM.
#pragma once

#include <backplane/kit/call.hpp>

#include "simd/matmul_gemm.hpp"
#include "simd/vector_kernel.hpp"

namespace backplane::onednn {

// Number of multiplications in oneDNN that justify a team of threads, about 20 us of work.
inline constexpr int64_t kTeamWork = int64_t{1} << 20;

// Number of f32 elements that stay in a second-level cache of 1 MiB or more.
inline constexpr int64_t kCachedElements = int64_t{1} << 18;

constexpr int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }
constexpr int64_t blocks_of(int64_t value, int64_t size) { return (value + size - 1) / size; }

// The operation out = alpha * product + beta * c.
struct ScaledSum {
  float alpha, beta;
  const kit::View* c;      // has the output's dtype and shape; if null, beta * c is 0
  ScaledSumKernel kernel;  // stores elements of the output's dtype
};

// Computes and stores one row of a ScaledSum. `c` is the address of the row in the input c, or null. The
// elements of this row are `c_step` bytes apart. `out` is contiguous.
void store_scaled_sum(const ScaledSum& sum, const float* product, const std::byte* c, int64_t c_step, std::byte* out,
                      int64_t count);

// Operations on the accumulators that precede the store to the output.
struct Epilogue {
  const kit::View* bias = nullptr;    // contiguous, in the output's dtype; null means no bias
  VectorKernel activation = nullptr;  // maps f32 to the output's dtype; null means no activation
  const ScaledSum* sum = nullptr;     // null means no sum; a call with a sum has no bias and no activation
};

bool gemm_supports(uint32_t dtype);
// Returns whether gemm() computes `rows` rows as dot products with the contiguous columns of `b`, without
// packing `b`. If so, the rows of `a` stay in a second-level cache.
bool gemm_uses_dots(int64_t rows, int64_t depth);
// Computes out = a * b, with the operations of `epilogue`. The views have the same rank, at least 2, with batch
// dimensions first. The amount of scratch memory has a bound that does not depend on the sizes of the views.
void gemm(const kit::View& a, const kit::View& b, const kit::View& out, const Epilogue& epilogue,
          kit::Scratch& scratch);

}  // namespace backplane::onednn
