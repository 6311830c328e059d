// SPDX-License-Identifier: Apache-2.0
// Gradients of softmax, log_softmax and the norms of packed rows. f32 and the halves.
#pragma once

#include "simd/norm.hpp"

namespace backplane::onednn {

// dx = y (dy - sum of dy y), or dy - e^y sum of dy. dx may be dy or y.
using SoftmaxBwdRow = void (*)(const void* dy, const void* y, void* dx, int64_t count);

struct NormBwd {
  // Of a row of x; without mean for rms_norm.
  Moments (*moments)(const void* x, int64_t count, double epsilon);
  // With g = dy gamma and s = (x - mean) rstd: dx = rstd (g - mean of g - s mean of g s), the mean of g for layer_norm only.
  // gamma may be null, dx may be dy or x.
  void (*row)(const void* dy, const void* x, const void* gamma, void* dx, int64_t count, Moments moments);
  // Of columns begin..end of `rows` rows of `count`: dgamma = sum of dy s, dbeta = sum of dy; either may be null.
  void (*columns)(const void* dy, const void* x, const Moments* moments, int64_t rows, int64_t count, int64_t begin,
                  int64_t end, void* dgamma, void* dbeta);
};

// One file, compiled once a vector target; null where there are no vectors, or not for the dtype.
SoftmaxBwdRow softmax_bwd_row(bool logarithm, uint32_t dtype);
NormBwd norm_bwd(bool centred, uint32_t dtype);

}  // namespace backplane::onednn
