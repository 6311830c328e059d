// SPDX-License-Identifier: Apache-2.0
// layer_norm, rms_norm, group_norm, batch_norm (OP): y = (x - mean) rstd gamma + beta. The mean is taken first, then the variance
// about it; of a part are kept both, and how many elements it has. Operands y, x, gamma, beta, mean and rstd (out); of batch_norm also running mean and variance
// (in, then out), of which VARIANT 1 (training) makes new ones, and 0 normalises with. By four, layer_norm and rms_norm: VARIANT 1
// with gamma, 2 with beta too. Numbers: epsilon, momentum, elements
// of a row.
#version 460
#extension GL_GOOGLE_include_directive : require
#define OPERANDS 10
#include "reduction.glsl"
#include "dtype.glsl"
#include "math.glsl"

TEAM_REDUCTION(team_sum, float, sums, added)
#include "norm.glsl"

void put(uint i, float x, float mean, float rstd) {
  precise float y = (x - mean) * rstd;
  if (present(2u)) y *= loaded(2u, i);
  if (present(3u)) y += loaded(3u, i);
  store_bits(at(0u, i), bits_of(y));
}

void put_by_four(float mean, float rstd) {
  FOR_EACH_FOUR(i) {
    precise vec4 y = (four_of(1u, i) - mean) * rstd;
    if (VARIANT >= 1u) y *= four_of(2u, i);
    if (VARIANT == 2u) y += four_of(3u, i);
    store_four(four_at(0u, i, BYTES), BITS4(bits_of(y.x), bits_of(y.y), bits_of(y.z), bits_of(y.w)));
  }
}

void by_four() {
  const Moments moments = moments_by_four();
  const float rstd = rsqrt_f32(divide_f32(moments.squares, params.numbers[2]) + params.numbers[0]);
  if (live && lane == 0u) {
    keep_statistic(4u, moments.mean);
    keep_statistic(5u, rstd);
  }
  put_by_four(moments.mean, rstd);
}

void main() {
  FOR_EACH_ROW {
    if (WIDTH != 0u) {
      by_four();
      continue;
    }
    float held[HELD];
    Moments moments;
    const bool sees_all = OP != BP_OP_BATCH_NORM || VARIANT == 1 || present(4u);
    if (params.phase == PHASE_JOIN) {
      moments = joined_moments();
    } else if (sees_all) {
      moments = moments_of_part(held);
    }
    if (params.phase == PHASE_PARTS) {
      if (live && lane == 0u) put_partials(moments);
      continue;
    }
    const Scale scale = scale_of(moments);
    if (holds() && params.phase == PHASE_WHOLE && sees_all) {
      FOR_EACH_HELD(u, i) if (i < end) put(i, held[u], scale.mean, scale.rstd);
    } else {
      FOR_EACH_ELEMENT(i) put(i, loaded(1u, i), scale.mean, scale.rstd);
    }
  }
}
