// SPDX-License-Identifier: Apache-2.0
// norm_bwd.comp, MODE 0, of rows that are held: the same operands, numbers and constants, and the same of a part.
#version 460
#extension GL_GOOGLE_include_directive : require
#define OPERANDS 7
#include "register_rows.glsl"
#include "math.glsl"

GROUP_REDUCTION(team_sum, float, sums, added)
GROUP_REDUCTION(team_sums, vec2, pairs, added)
#include "norm_bwd.glsl"

void main() {
  FOR_EACH_ROW {
    vec4 s[QUADS], g[QUADS];
    FOR_EACH_QUAD(q) s[q] = quad_of(1u, q, 0.0);
    Statistics statistics;
    if (kOwn && params.phase == PHASE_WHOLE) statistics = statistics_of(moments_of(s)); else statistics = statistics_at(0u);
    vec2 sums = vec2(0.0);  // of g, and of g s
    FOR_EACH_QUAD(q) {
      precise vec4 straight = (s[q] - statistics.mean) * statistics.rstd;
      s[q] = straight;
      g[q] = quad_of(2u, q, 0.0);
      if (present(3u)) g[q] *= quad_of(3u, q, 0.0);
      const vec4 along = mix(vec4(0.0), g[q] * s[q], quad_inside(q));  // what is no element may be infinite
      sums += vec2((g[q].x + g[q].y) + (g[q].z + g[q].w), (along.x + along.y) + (along.z + along.w));
    }
    if (params.phase == PHASE_JOIN) {
      sums = vec2(0.0);
      FOR_EACH_PARTIAL(p) sums += vec2(partial_number(p, 0u), partial_number(p, 1u));
    }
    sums = team_sums(sums);
    if (params.phase == PHASE_PARTS) {
      if (lane == 0u) {
        put_partial(0u, sums.x);
        put_partial(1u, sums.y);
      }
      continue;
    }
    const Slope slope = slope_of(statistics, sums);
    FOR_EACH_QUAD(q) {
      precise vec4 dx = slope.rstd * (g[q] - slope.mean_g - s[q] * slope.mean_along);
      put_quad(0u, q, dx);
    }
  }
}
