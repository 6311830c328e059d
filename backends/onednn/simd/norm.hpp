// SPDX-License-Identifier: Apache-2.0
// Vectorised kernels of the norms and their backward pass, for f32, f16 and bf16. Each lookup
// returns the kernels compiled for this processor, or null if there are none for the dtype.
#pragma once

#include <cstdint>

namespace backplane::onednn {

struct Moments {
  double mean, rstd;  // rstd = 1 / sqrt(variance + epsilon)
};

// y = (x - mean) * rstd * gamma + beta along a row. Unless `centred` (rms_norm), the mean is 0.
// gamma and beta may be null; x may be y.
using NormKernel = Moments (*)(const void* x, const void* gamma, const void* beta, void* y, int64_t count,
                               double epsilon);
NormKernel norm_kernel(bool centred, uint32_t dtype);

// The same for one group of `channels` rows with `plane` elements each. gamma and beta have one
// element per channel.
using GroupNormKernel = Moments (*)(const void* x, const void* gamma, const void* beta, void* y, int64_t channels,
                                    int64_t plane, double epsilon);
GroupNormKernel group_norm_kernel(uint32_t dtype);

struct NormBwdKernels {
  // The moments of a row of x; the mean is 0 for rms_norm.
  Moments (*moments)(const void* x, int64_t count, double epsilon);
  // With g = dy gamma and s = (x - mean) rstd: dx = rstd (g - mean of g - s mean of (g s)).
  // rms_norm omits the mean of g. gamma may be null; dx may be dy or x.
  void (*dx)(const void* dy, const void* x, const void* gamma, void* dx, int64_t count, Moments moments);
  // For columns [begin, end) of `rows` rows with `count` elements each: dgamma = sum of dy s, dbeta
  // = sum of dy. Either output may be null.
  void (*parameters)(const void* dy, const void* x, const Moments* moments, int64_t rows, int64_t count, int64_t begin,
                     int64_t end, void* dgamma, void* dbeta);
};
NormBwdKernels norm_bwd_kernels(bool centred, uint32_t dtype);

}  // namespace backplane::onednn
