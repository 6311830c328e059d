// SPDX-License-Identifier: Apache-2.0
// Operators that work on a packed row as a whole: softmax, log_softmax, layer_norm, rms_norm, group_norm. f32 and the halves.
#pragma once

#include <cstdint>

namespace backplane::onednn {

// y[i] = e^(x[i] - max) / sum, or its logarithm. x may be y.
using SoftmaxRow = void (*)(const void* x, void* y, int64_t count);

// y = (x - mean) * rstd * gamma + beta; without mean for rms_norm. gamma and beta may be null. x may be y.
struct Moments {
  double mean, rstd;
};
using NormRow = Moments (*)(const void* x, const void* gamma, const void* beta, void* y, int64_t count, double epsilon);

// The same of `channels` rows of `plane` elements together; gamma and beta have an element for each channel.
using GroupRow = Moments (*)(const void* x, const void* gamma, const void* beta, void* y, int64_t channels,
                             int64_t plane, double epsilon);

// Steps of a softmax that is spread over blocks of a row of f32.
struct SoftmaxSteps {
  float (*greatest)(const float* x, int64_t count);                 // -inf of nothing; NaN stays
  double (*exponentials)(float* x, int64_t count, float greatest);  // x = e^(x - greatest); their sum
  void (*scale)(float* x, int64_t count, float factor);
};

// One file, compiled once a vector target; null where there are no vectors, or not for the dtype.
SoftmaxRow softmax_row(bool logarithm, uint32_t dtype);
NormRow norm_row(bool centred, uint32_t dtype);
GroupRow group_row(uint32_t dtype);
SoftmaxSteps softmax_steps();

}  // namespace backplane::onednn
