// SPDX-License-Identifier: Apache-2.0
// norm_bwd, OP the number of the norm: with s = (x - mean) rstd, and g = dy gamma, dx = rstd (g - mean of g - s mean of g s), without
// the second term for rms_norm. MODE 1: dgamma = sum of dy s, dbeta = sum of dy, over what a parameter repeats over. Operands dx
// or dgamma, x, dy, gamma, mean, rstd, dbeta. Kept of a part: both sums. Numbers: elements of a row.
#version 460
#extension GL_GOOGLE_include_directive : require
#define OPERANDS 7
#include "rows.glsl"
#include "dtype.glsl"
#include "math.glsl"

TEAM_REDUCTION(team_sum, float, sums, added)

const uint kRms = 1u;  // BP_NORM_RMS

float loaded(uint operand, uint i) { return value_of(load_bits(at(operand, i))); }

// g, or dy, and s of element i. Statistics change along a row of MODE 1 only.
vec2 terms(uint i) {
  const uint statistic = MODE == 1 ? i : 0u;
  const float mean = OP == kRms ? 0.0 : loaded(4u, statistic), rstd = loaded(5u, statistic);
  precise float s = (loaded(1u, i) - mean) * rstd;
  precise float g = loaded(2u, i);
  if (MODE == 0 && present(3u)) g *= loaded(3u, i);
  return vec2(g, s);
}

void main() {
  const float count = params.numbers[0];
  FOR_EACH_ROW {
    vec2 held[HELD];
    float sum = 0.0, along = 0.0;  // of g, and of g s
    const bool in_registers = holds() && params.phase == PHASE_WHOLE;
    if (params.phase == PHASE_JOIN) {
      if (live) FOR_EACH_PARTIAL(p) {
        sum += partial_number(p, 0u);
        along += partial_number(p, 1u);
      }
    } else if (in_registers) {
      FOR_EACH_HELD(u, i) {
        held[u] = i < end ? terms(i) : vec2(0.0);
        sum += held[u].x;
        along += held[u].x * held[u].y;
      }
    } else {
      FOR_EACH_ELEMENT(i) {
        const vec2 each = terms(i);
        sum += each.x;
        along += each.x * each.y;
      }
    }
    sum = team_sum(sum);
    along = team_sum(along);
    if (params.phase == PHASE_PARTS) {
      if (live && lane == 0u) {
        put_partial(0u, sum);
        put_partial(1u, along);
      }
      continue;
    }
    if (MODE == 1) {
      if (live && lane == 0u) {
        if (present(0u)) store_bits(bases[0], bits_of(along));
        if (present(6u)) store_bits(bases[6], bits_of(sum));
      }
      continue;
    }
    if (begin == end) continue;  // without elements, or the team has no row
    const float mean_g = OP == kRms ? 0.0 : divide_f32(sum, count), mean_along = divide_f32(along, count);
    const float rstd = loaded(5u, 0u);
    if (in_registers) {
      FOR_EACH_HELD(u, i) if (i < end) {
        precise float dx = rstd * (held[u].x - mean_g - held[u].y * mean_along);
        store_bits(at(0u, i), bits_of(dx));
      }
    } else {
      FOR_EACH_ELEMENT(i) {
        const vec2 each = terms(i);
        precise float dx = rstd * (each.x - mean_g - each.y * mean_along);
        store_bits(at(0u, i), bits_of(dx));
      }
    }
  }
}
