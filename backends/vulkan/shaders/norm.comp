// SPDX-License-Identifier: Apache-2.0
// layer_norm, rms_norm, group_norm and batch_norm. OP is the operator's id. y = (x - mean) * rstd *
// gamma + beta. The mean is computed first, and then the variance about the mean. A split stores
// the mean, the sum of squared distances from the mean, and its length.
//
// Operands 0 to 5: y, x, gamma, beta, mean and rstd. The last two are outputs. Operands 6 to 9
// belong to batch_norm: the running mean and variance as inputs, then as outputs.
//
// VARIANT 1 of batch_norm (training) updates the running mean and variance, and VARIANT 0
// normalises with them. The vec4 kernels of layer_norm and rms_norm use gamma with VARIANT 1, and
// gamma and beta with VARIANT 2.
//
// params.numbers: epsilon, momentum, number of elements of a row.
#version 460
#extension GL_GOOGLE_include_directive : require
#define OPERANDS 10
#include "reduction.glsl"
#include "dtype.glsl"
#include "math.glsl"

TILE_REDUCTION(tile_sum, float, sums, added)
#include "norm.glsl"

void put(uint i, float x, float mean, float rstd) {
  precise float y = (x - mean) * rstd;
  if (present(2u)) y *= load_value(2u, i);
  if (present(3u)) y += load_value(3u, i);
  store_bits(at(0u, i), bits_of(y));
}

void put_vec4(float mean, float rstd) {
  FOR_EACH_VEC4(i) {
    precise vec4 y = (vec4_of(1u, i) - mean) * rstd;
    if (VARIANT >= 1u) y *= vec4_of(2u, i);
    if (VARIANT == 2u) y += vec4_of(3u, i);
    store_vec4(vec4_at(0u, i, BYTES), BITS4(bits_of(y.x), bits_of(y.y), bits_of(y.z), bits_of(y.w)));
  }
}

void run_vec4() {
  const Moments moments = moments_vec4();
  const float rstd = rsqrt_f32(divide_f32(moments.squares, params.numbers[2]) + params.numbers[0]);
  if (has_row && tile_thread == 0u) {
    keep_statistic(4u, moments.mean);
    keep_statistic(5u, rstd);
  }
  put_vec4(moments.mean, rstd);
}

void main() {
  FOR_EACH_ROW {
    if (VEC4_TILE != 0u) {
      run_vec4();
      continue;
    }
    float registers[REGISTERS];
    Moments moments;
    const bool sees_all = OP != BP_OP_BATCH_NORM || VARIANT == 1 || present(4u);
    if (params.phase == PHASE_COMBINE) {
      moments = combined_moments();
    } else if (sees_all) {
      moments = moments_of_split(registers);
    }
    if (params.phase == PHASE_PARTIALS) {
      if (has_row && tile_thread == 0u) store_partials(moments);
      continue;
    }
    const Scale scale = scale_of(moments);
    if (fits_registers() && params.phase == PHASE_WHOLE && sees_all) {
      FOR_EACH_REGISTER(u, i) if (i < end) put(i, registers[u], scale.mean, scale.rstd);
    } else {
      FOR_EACH_ELEMENT(i) put(i, load_value(1u, i), scale.mean, scale.rstd);
    }
  }
}
