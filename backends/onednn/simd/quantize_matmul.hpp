// SPDX-License-Identifier: Apache-2.0
// Products with quantized weights: a row of weights becomes f32 in the first-level cache, and meets the rows of a there.
#pragma once

#include <cstdint>

namespace backplane::onednn {

struct QuantizedSteps {
  // to[i] = the weight's value i, of 4 or 8 bits: i8, or two u4 to a byte, the first in the low half.
  void (*widen8)(const void* from, float* to, int64_t count);
  void (*widen4)(const void* from, float* to, int64_t count);
  // x[i] = (x[i] - zero) * scale
  void (*scale)(float* x, int64_t count, float zero, float scale);
  // out[r * out_stride + c] = sum over k of a[r * depth + k] * w[c * depth + k], of one to four rows and `kDots` columns.
  void (*dots)(const float* a, int64_t rows, const float* w, int64_t depth, float* out, int64_t out_stride);
};
inline constexpr int64_t kDots = 4;

// One file, compiled once a vector target; null where there are no vectors.
QuantizedSteps quantized_steps();

}  // namespace backplane::onednn
