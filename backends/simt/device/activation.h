// SPDX-License-Identifier: Apache-2.0
// The activations of fused operators.
#pragma once
#include "math.h"

// Values of BP_ACTIVATION_* in ops.h.
#define ACTIVATION_RELU 1
#define ACTIVATION_GELU_ERF 2
#define ACTIVATION_GELU_TANH 3
#define ACTIVATION_SILU 4
#define ACTIVATION_SIGMOID 5

SIMT_FN float activated(float x, u32 activation) {
  switch (activation) {
    case ACTIVATION_RELU:
      return is_nan_bits(bits_of_float(x)) || x > 0.0f ? x : 0.0f;
    case ACTIVATION_GELU_ERF:
      return gelu_erf_f32(x);
    case ACTIVATION_GELU_TANH:
      return gelu_tanh_f32(x);
    case ACTIVATION_SILU:
      return silu_f32(x);
    case ACTIVATION_SIGMOID:
      return sigmoid_f32(x);
    default:
      return x;
  }
}
