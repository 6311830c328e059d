// SPDX-License-Identifier: Apache-2.0
// norm_bwd, OP the number of the norm: with s = (x - mean) rstd, and g = dy gamma, dx = rstd (g - mean of g - s mean of g s), without
// the second term for rms_norm. MODE 1: dgamma = sum of dy s, dbeta = sum of dy, over what a parameter repeats over. MODE 2: mean and
// rstd alone. Operands dx or dgamma, x, dy, gamma, mean, rstd, dbeta. VARIANT 1: statistics are not given, but f32 numbers that MODE 2
// leaves, and MODE 0 where it sees rows whole; 2, of rows by four: gamma is there. Kept of a part: both sums; of MODE 2 as of norm.comp.
// Numbers: epsilon, 2: elements of a row.
#version 460
#extension GL_GOOGLE_include_directive : require
#define OPERANDS 7
#include "reduction.glsl"
#include "dtype.glsl"
#include "math.glsl"

TEAM_REDUCTION(team_sum, float, sums, added)
#include "norm_bwd.glsl"

// g, or dy, and s of element i, which is x.
vec2 terms(uint i, float x, Statistics statistics) {
  precise float s = (x - statistics.mean) * statistics.rstd;
  precise float g = loaded(2u, i);
  if (MODE == 0 && present(3u)) g *= loaded(3u, i);
  return vec2(g, s);
}

void put(uint i, vec2 each, Slope slope) {
  precise float dx = slope.rstd * (each.x - slope.mean_g - each.y * slope.mean_along);
  store_bits(at(0u, i), bits_of(dx));
}

void keep_statistics() {
  float x[HELD];
  Moments moments;
  if (params.phase == PHASE_JOIN) moments = joined_moments(); else moments = moments_of_part(x);
  if (params.phase != PHASE_PARTS) {
    statistics_of(moments);
  } else if (live && lane == 0u) {
    put_partials(moments);
  }
}

void each_row() {
  vec2 held[HELD];
  float x[HELD];
  vec2 sums = vec2(0.0);  // of g, and of g s
  const bool in_registers = holds() && params.phase == PHASE_WHOLE, sees_whole = MODE == 0 && kOwn && params.phase == PHASE_WHOLE;
  Statistics statistics = Statistics(0.0, 0.0);
  if (sees_whole) {
    statistics = statistics_of(moments_of_part(x));
  } else if (MODE == 0) {
    statistics = statistics_at(0u);
  }
  if (params.phase == PHASE_JOIN) {
    if (live) FOR_EACH_PARTIAL(p) sums += vec2(partial_number(p, 0u), partial_number(p, 1u));
  } else if (in_registers) {
    FOR_EACH_HELD(u, i) {
      held[u] = vec2(0.0);
      if (i < end) held[u] = terms(i, sees_whole ? x[u] : loaded(1u, i), MODE == 1 ? statistics_at(i) : statistics);
      sums += vec2(held[u].x, held[u].x * held[u].y);
    }
  } else {
    FOR_EACH_ELEMENT(i) {
      const vec2 each = terms(i, loaded(1u, i), MODE == 1 ? statistics_at(i) : statistics);
      sums += vec2(each.x, each.x * each.y);
    }
  }
  sums = vec2(team_sum(sums.x), team_sum(sums.y));
  if (params.phase == PHASE_PARTS) {
    if (live && lane == 0u) {
      put_partial(0u, sums.x);
      put_partial(1u, sums.y);
    }
    return;
  }
  if (MODE == 1) {
    if (live && lane == 0u) {
      if (present(0u)) store_bits(bases[0], bits_of(sums.y));
      if (present(6u)) store_bits(bases[6], bits_of(sums.x));
    }
    return;
  }
  if (begin == end) return;  // without elements, or the team has no row
  const Slope slope = slope_of(statistics, sums);
  if (in_registers) {
    FOR_EACH_HELD(u, i) if (i < end) put(i, held[u], slope);
  } else {
    FOR_EACH_ELEMENT(i) put(i, terms(i, loaded(1u, i), statistics), slope);
  }
}

struct FourTerms {
  vec4 g, s;
};
FourTerms terms_by_four(uint i, Statistics statistics) {
  FourTerms four;
  precise vec4 s = (four_of(1u, i) - statistics.mean) * statistics.rstd;
  four.s = s;
  four.g = four_of(2u, i);
  if ((VARIANT & 2u) != 0u) four.g *= four_of(3u, i);
  return four;
}

void by_four() {
  Statistics statistics;
  if (kOwn) statistics = statistics_of(moments_by_four()); else statistics = statistics_at(0u);
  vec2 sums = vec2(0.0);
  FOR_EACH_FOUR(i) {
    const FourTerms four = terms_by_four(i, statistics);
    const vec4 along = four.g * four.s;
    sums += vec2((four.g.x + four.g.y) + (four.g.z + four.g.w), (along.x + along.y) + (along.z + along.w));
  }
  const Slope slope = slope_of(statistics, vec2(team_sum(sums.x), team_sum(sums.y)));
  FOR_EACH_FOUR(i) {
    const FourTerms four = terms_by_four(i, statistics);
    precise vec4 dx = slope.rstd * (four.g - slope.mean_g - four.s * slope.mean_along);
    store_four(four_at(0u, i, BYTES), BITS4(bits_of(dx.x), bits_of(dx.y), bits_of(dx.z), bits_of(dx.w)));
  }
}

void main() {
  FOR_EACH_ROW {
    if (WIDTH != 0u) {
      by_four();
    } else if (MODE == 2) {
      keep_statistics();
    } else {
      each_row();
    }
  }
}
