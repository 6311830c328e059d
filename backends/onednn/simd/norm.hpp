// SPDX-License-Identifier: Apache-2.0
// Vectorised kernels of the norms and their backward pass, for f32, f16 and bf16. The functions in
// this file return kernels that are compiled for this processor, or null if there are none for the
// dtype.
#pragma once

#include <cstdint>

namespace backplane::onednn {

struct Moments {
  double mean, rstd;  // rstd = 1 / sqrt(variance + epsilon)
};

// Computes y = (x - mean) * rstd * gamma + beta along a row. If `centred` is false, as for
// rms_norm, the mean is 0. gamma and beta may be null. x and y may be the same memory.
using NormKernel = Moments (*)(const void* x, const void* gamma, const void* beta, void* y, int64_t count,
                               double epsilon);
NormKernel norm_kernel(bool centred, uint32_t dtype);

// Normalises one group of `channels` rows with `plane` elements each. gamma and beta have one
// element per channel.
using GroupNormKernel = Moments (*)(const void* x, const void* gamma, const void* beta, void* y, int64_t channels,
                                    int64_t plane, double epsilon);
GroupNormKernel group_norm_kernel(uint32_t dtype);

struct NormBwdKernels {
  // Returns the moments of a row of x. The mean is 0 for rms_norm.
  Moments (*moments)(const void* x, int64_t count, double epsilon);
  // Computes dx = rstd * (g - mean(g) - s * mean(g * s)), where g = dy * gamma and s = (x - mean) *
  // rstd. For rms_norm, the term mean(g) is omitted. gamma may be null. dx may be the same memory
  // as dy or x.
  void (*dx)(const void* dy, const void* x, const void* gamma, void* dx, int64_t count, Moments moments);
  // Computes dgamma = sum(dy * s) and dbeta = sum(dy), where s = (x - mean) * rstd. Processes
  // columns [begin, end) of `rows` rows, which have `count` elements each. Either output may be
  // null.
  void (*parameters)(const void* dy, const void* x, const Moments* moments, int64_t rows, int64_t count, int64_t begin,
                     int64_t end, void* dgamma, void* dbeta);
};
NormBwdKernels norm_bwd_kernels(bool centred, uint32_t dtype);

}  // namespace backplane::onednn
