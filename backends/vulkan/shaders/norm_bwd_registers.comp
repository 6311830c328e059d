// SPDX-License-Identifier: Apache-2.0
// norm_bwd for rows that fit in registers, with the operands, parameters, constants and partial
// results of norm_bwd.comp.
#version 460
#extension GL_GOOGLE_include_directive : require
#define OPERANDS 7
#include "register_rows.glsl"
#include "math.glsl"

GROUP_REDUCTION(tile_sum, float, sums, added)
GROUP_REDUCTION(tile_sums, vec2, pairs, added)
#include "norm_bwd.glsl"

void main() {
  FOR_EACH_ROW {
    vec4 s[VEC4S], g[VEC4S];
    FOR_EACH_OWN_VEC4(q) s[q] = load_own_vec4(1u, q, 0.0);
    Statistics statistics;
    if (kOwnStatistics && params.phase == PHASE_WHOLE)
      statistics = statistics_of(moments_of(s));
    else
      statistics = statistics_at(0u);
    vec2 sums = vec2(0.0);  // sums of g and of g * s
    FOR_EACH_OWN_VEC4(q) {
      precise vec4 straight = (s[q] - statistics.mean) * statistics.rstd;
      s[q] = straight;
      g[q] = load_own_vec4(2u, q, 0.0);
      if (present(3u)) g[q] *= load_own_vec4(3u, q, 0.0);
      const vec4 product = mix(vec4(0.0), g[q] * s[q], vec4_inside(q));  // past the end, s may be infinite
      sums += vec2((g[q].x + g[q].y) + (g[q].z + g[q].w), (product.x + product.y) + (product.z + product.w));
    }
    if (params.phase == PHASE_COMBINE) {
      sums = vec2(0.0);
      FOR_EACH_PARTIAL(p) sums += vec2(partial_value(p, 0u), partial_value(p, 1u));
    }
    sums = tile_sums(sums);
    if (params.phase == PHASE_PARTIALS) {
      if (tile_thread == 0u) {
        store_partial(0u, sums.x);
        store_partial(1u, sums.y);
      }
      continue;
    }
    const Slope slope = slope_of(statistics, sums);
    FOR_EACH_OWN_VEC4(q) {
      precise vec4 dx = slope.rstd * (g[q] - slope.mean_g - s[q] * slope.mean_gs);
      store_own_vec4(0u, q, dx);
    }
  }
}
