// SPDX-License-Identifier: Apache-2.0
// norm.comp of rows that are held: the same operands, numbers and constants, and the same of a part.
#version 460
#extension GL_GOOGLE_include_directive : require
#define OPERANDS 10
#include "register_rows.glsl"
#include "math.glsl"

GROUP_REDUCTION(team_sum, float, sums, added)
#include "norm.glsl"

void main() {
  FOR_EACH_ROW {
    vec4 held[QUADS];
    FOR_EACH_QUAD(q) held[q] = quad_of(1u, q, 0.0);
    Moments moments;
    if (params.phase == PHASE_JOIN) moments = joined_moments(); else moments = moments_of(held);
    if (params.phase == PHASE_PARTS) {
      if (lane == 0u) put_partials(moments);
      continue;
    }
    const Scale scale = scale_of(moments);
    FOR_EACH_QUAD(q) {
      precise vec4 y = (held[q] - scale.mean) * scale.rstd;
      if (present(2u)) y *= quad_of(2u, q, 1.0);
      if (present(3u)) y += quad_of(3u, q, 0.0);
      put_quad(0u, q, y);
    }
  }
}
