// SPDX-License-Identifier: Apache-2.0
// Functions that norm_bwd.comp and norm_bwd_registers.comp share. These files define
// tile_sum before they include this file.
const uint kRms = 1u;  // BP_NORM_RMS
const bool kCentred = OP != kRms;
const bool kOwnStatistics = (VARIANT & 1u) != 0u;
#include "moments.glsl"

struct Statistics {
  float mean, rstd;
};

// Statistics are f32 for every T.
float statistic(uint operand, uint i) { return uintBitsToFloat(load32(at(operand, i))); }
Statistics statistics_at(uint i) { return Statistics(kCentred ? statistic(4u, i) : 0.0, statistic(5u, i)); }

// Computes the statistics, and stores them for later kernels.
Statistics statistics_of(Moments moments) {
  const float rstd = rsqrt_f32(divide_f32(moments.squares, params.numbers[2]) + params.numbers[0]);
  if (has_row && tile_thread == 0u) {
    if (kCentred) store32(bases[4], floatBitsToUint(moments.mean));
    store32(bases[5], floatBitsToUint(rstd));
  }
  return Statistics(moments.mean, rstd);
}

struct Slope {
  float rstd, mean_g, mean_gs;
};

// Returns the terms of the gradient that all elements of a row share. `sums` are the row's sums of
// g and of g * s.
Slope slope_of(Statistics statistics, vec2 sums) {
  const float count = params.numbers[2];
  return Slope(statistics.rstd, kCentred ? divide_f32(sums.x, count) : 0.0, divide_f32(sums.y, count));
}
