// SPDX-License-Identifier: Apache-2.0
// Vectorised kernels of softmax, log_softmax and their backward pass, for f32, f16 and bf16. The
// functions in this file return kernels that are compiled for this processor, or null pointers if
// there are none for the dtype.
#pragma once

#include <cstdint>

namespace backplane::onednn {

// Kernels that compute e^(x - max) / sum, or the logarithm of this value. x and y may be the same
// memory. If `streams` is set, a kernel may use non-temporal stores.
struct SoftmaxKernels {
  // Processes a contiguous row of `count` elements.
  void (*row)(const void* x, void* y, int64_t count, bool streams);
  // Processes `columns` adjacent columns. Each column has `length` elements, which are `stride`
  // elements apart.
  void (*columns)(const void* x, void* y, int64_t stride, int64_t length, int64_t columns, bool streams);
  // Returns the sum of e^(x - maximum) along a row, and sets `maximum`. A NaN in x makes the sum NaN.
  double (*total)(const void* x, int64_t count, float& maximum);
  // Sets y to e^(x - maximum) / (sum * divisor) along a row, and returns the sum like total().
  double (*shares)(const void* x, void* y, int64_t count, bool streams, double divisor, float& maximum);
};
SoftmaxKernels softmax_kernels(bool logarithm, uint32_t dtype);

// Computes dx = y * (dy - sum(dy * y)), or dx = dy - e^y * sum(dy) for log_softmax. dx may be the
// same memory as dy or y.
using SoftmaxBwdKernel = void (*)(const void* dy, const void* y, void* dx, int64_t count);
SoftmaxBwdKernel softmax_bwd_kernel(bool logarithm, uint32_t dtype);

// The steps of a softmax over a row of f32 that is processed in blocks. The functions are null on
// targets without vectors.
struct SoftmaxSteps {
  // Returns the maximum, or -inf if there are no elements. NaN propagates.
  float (*maximum)(const float* x, int64_t count);
  // Replaces each x by e^(x - maximum). Returns the sum.
  double (*exponentials)(float* x, int64_t count, float maximum);
  void (*scale)(float* x, int64_t count, float factor);
  // Replaces each x by softcap * tanh(x / softcap).
  void (*limit)(float* x, int64_t count, float softcap);
};
SoftmaxSteps softmax_steps();

}  // namespace backplane::onednn
