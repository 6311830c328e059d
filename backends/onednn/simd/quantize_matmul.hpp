// SPDX-License-Identifier: Apache-2.0
// Vectorised steps of quantized_matmul. A row of weights is widened to f32 in the first-level
// cache, and then multiplied by rows of `a`.
#pragma once

#include <cstdint>

namespace backplane::onednn {

struct QuantizedGemmSteps {
  // Both functions store weight i in to[i]. widen8 reads i8 weights. widen4 reads u4 weights, two per
  // byte. The low half of a byte is the weight with the lower index.
  void (*widen8)(const void* from, float* to, int64_t count);
  void (*widen4)(const void* from, float* to, int64_t count);
  // Computes x[i] = (x[i] - zero) * scale.
  void (*scale)(float* x, int64_t count, float zero, float scale);
  // Computes out[r * out_stride + c] = sum over k of a[r * depth + k] * w[c * depth + k], for 1 to
  // 4 rows and `kDots` columns.
  void (*dots)(const float* a, int64_t rows, const float* w, int64_t depth, float* out, int64_t out_stride);
};
inline constexpr int64_t kDots = 4;

// Returns the functions that are compiled for this processor. They are null on targets without
// vectors.
QuantizedGemmSteps quantized_gemm_steps();

}  // namespace backplane::onednn
