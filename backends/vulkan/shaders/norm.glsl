// SPDX-License-Identifier: Apache-2.0
// Functions that norm.comp and norm_registers.comp share. These files define tile_sum before
// they include this file.
const bool kCentred = OP != BP_OP_RMS_NORM;
#include "moments.glsl"

void keep(uint operand, float value) {
  if (present(operand)) store_bits(bases[operand], bits_of(value));
}
// Statistics are f32 for every T.
void keep_statistic(uint operand, float value) {
  if (present(operand)) store32(bases[operand], floatBitsToUint(value));
}

struct Scale {
  float mean, rstd;
};

// Returns the mean and rstd that normalise a row, and stores the statistics whose operands are
// present.
Scale scale_of(Moments moments) {
  const float epsilon = params.numbers[0], share = params.numbers[1], count = params.numbers[2];
  float mean = moments.mean, variance = count == 0.0 ? kNaN : divide_f32(moments.squares, count);
  if (count == 0.0 && kCentred) mean = kNaN;
  const bool writes = has_row && tile_thread == 0u && split == 0u && params.first_split == 0u;
  if (writes) keep_statistic(4u, mean);
  if (OP == BP_OP_BATCH_NORM && has_row) {
    const float old_mean = present(6u) ? load_value(6u, 0u) : 0.0,
                old_variance = present(7u) ? load_value(7u, 0u) : 0.0;
    if (writes) {
      keep(8u, VARIANT == 1 ? old_mean * (1.0 - share) + mean * share : old_mean);
      keep(9u, VARIANT == 1 ? old_variance * (1.0 - share) + variance * share : old_variance);
    }
    if (VARIANT == 0) {
      mean = old_mean;
      variance = old_variance;
    }
  }
  const float rstd = rsqrt_f32(variance + epsilon);
  if (writes) keep_statistic(5u, rstd);
  return Scale(mean, rstd);
}
