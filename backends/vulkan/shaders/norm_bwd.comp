// SPDX-License-Identifier: Apache-2.0
// norm_bwd. OP is BP_NORM_*, and MODE is BACKPLANE_NORM_BWD_*.
// Let s = (x - mean) * rstd and g = dy * gamma.
// Then dx = rstd * (g - mean(g) - s * mean(g * s)). rms_norm omits mean(g).
// dgamma is the sum of dy * s, and dbeta is the sum of dy. Both sums run over the dimensions along
// which parameters are broadcast.
//
// Operands: dx or dgamma, x, dy, gamma, mean, rstd, dbeta.
//
// VARIANT is a set of bits. Bit 0 means that the caller passes no statistics. A dispatch in mode
// STATISTICS, or a dispatch that reads whole rows, then computes the statistics and stores them as
// f32. Bit 1 applies to vec4 rows and means that gamma is present.
//
// A split stores the sums of g and of g * s. In mode STATISTICS, it stores the same values as a
// split of norm.comp. params.numbers[0] is epsilon, and params.numbers[2] is the length of a row.
#version 460
#extension GL_GOOGLE_include_directive : require
#define OPERANDS 7
#include "reduction.glsl"
#include "dtype.glsl"
#include "math.glsl"

TILE_REDUCTION(tile_sum, float, sums, added)
#include "norm_bwd.glsl"

// Returns g and s of element i, whose value is x. In mode PARAMETERS, g is dy.
vec2 terms(uint i, float x, Statistics statistics) {
  precise float s = (x - statistics.mean) * statistics.rstd;
  precise float g = load_value(2u, i);
  if (MODE == BACKPLANE_NORM_BWD_GRADIENT && present(3u)) g *= load_value(3u, i);
  return vec2(g, s);
}

void put(uint i, vec2 each, Slope slope) {
  precise float dx = slope.rstd * (each.x - slope.mean_g - each.y * slope.mean_gs);
  store_bits(at(0u, i), bits_of(dx));
}

void keep_statistics() {
  float x[REGISTERS];
  Moments moments;
  if (params.phase == PHASE_COMBINE) moments = combined_moments(); else moments = moments_of_split(x);
  if (params.phase != PHASE_PARTIALS) {
    statistics_of(moments);
  } else if (has_row && tile_thread == 0u) {
    store_partials(moments);
  }
}

void each_row() {
  vec2 registers[REGISTERS];
  float x[REGISTERS];
  vec2 sums = vec2(0.0);  // sums of g and of g * s
  const bool in_registers = fits_registers() && params.phase == PHASE_WHOLE,
             sees_whole = MODE == BACKPLANE_NORM_BWD_GRADIENT && kOwnStatistics && params.phase == PHASE_WHOLE;
  Statistics statistics = Statistics(0.0, 0.0);
  if (sees_whole) {
    statistics = statistics_of(moments_of_split(x));
  } else if (MODE == BACKPLANE_NORM_BWD_GRADIENT) {
    statistics = statistics_at(0u);
  }
  if (params.phase == PHASE_COMBINE) {
    if (has_row) FOR_EACH_PARTIAL(p) sums += vec2(partial_value(p, 0u), partial_value(p, 1u));
  } else if (in_registers) {
    FOR_EACH_REGISTER(u, i) {
      registers[u] = vec2(0.0);
      if (i < end)
        registers[u] = terms(i, sees_whole ? x[u] : load_value(1u, i),
                             MODE == BACKPLANE_NORM_BWD_PARAMETERS ? statistics_at(i) : statistics);
      sums += vec2(registers[u].x, registers[u].x * registers[u].y);
    }
  } else {
    FOR_EACH_ELEMENT(i) {
      const vec2 each =
          terms(i, load_value(1u, i), MODE == BACKPLANE_NORM_BWD_PARAMETERS ? statistics_at(i) : statistics);
      sums += vec2(each.x, each.x * each.y);
    }
  }
  sums = vec2(tile_sum(sums.x), tile_sum(sums.y));
  if (params.phase == PHASE_PARTIALS) {
    if (has_row && tile_thread == 0u) {
      store_partial(0u, sums.x);
      store_partial(1u, sums.y);
    }
    return;
  }
  if (MODE == BACKPLANE_NORM_BWD_PARAMETERS) {
    if (has_row && tile_thread == 0u) {
      if (present(0u)) store_bits(bases[0], bits_of(sums.y));
      if (present(6u)) store_bits(bases[6], bits_of(sums.x));
    }
    return;
  }
  if (begin == end) return;  // there are no elements, or the tile has no row
  const Slope slope = slope_of(statistics, sums);
  if (in_registers) {
    FOR_EACH_REGISTER(u, i) if (i < end) put(i, registers[u], slope);
  } else {
    FOR_EACH_ELEMENT(i) put(i, terms(i, load_value(1u, i), statistics), slope);
  }
}

struct Vec4Terms {
  vec4 g, s;
};
Vec4Terms terms_vec4(uint i, Statistics statistics) {
  Vec4Terms four;
  precise vec4 s = (vec4_of(1u, i) - statistics.mean) * statistics.rstd;
  four.s = s;
  four.g = vec4_of(2u, i);
  if ((VARIANT & 2u) != 0u) four.g *= vec4_of(3u, i);
  return four;
}

void run_vec4() {
  Statistics statistics;
  if (kOwnStatistics) statistics = statistics_of(moments_vec4()); else statistics = statistics_at(0u);
  vec2 sums = vec2(0.0);
  FOR_EACH_VEC4(i) {
    const Vec4Terms four = terms_vec4(i, statistics);
    const vec4 product = four.g * four.s;
    sums += vec2((four.g.x + four.g.y) + (four.g.z + four.g.w), (product.x + product.y) + (product.z + product.w));
  }
  const Slope slope = slope_of(statistics, vec2(tile_sum(sums.x), tile_sum(sums.y)));
  FOR_EACH_VEC4(i) {
    const Vec4Terms four = terms_vec4(i, statistics);
    precise vec4 dx = slope.rstd * (four.g - slope.mean_g - four.s * slope.mean_gs);
    store_vec4(vec4_at(0u, i, BYTES), BITS4(bits_of(dx.x), bits_of(dx.y), bits_of(dx.z), bits_of(dx.w)));
  }
}

void main() {
  FOR_EACH_ROW {
    if (VEC4_TILE != 0u) {
      run_vec4();
    } else if (MODE == BACKPLANE_NORM_BWD_STATISTICS) {
      keep_statistics();
    } else {
      each_row();
    }
  }
}
