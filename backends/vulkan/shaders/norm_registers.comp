// SPDX-License-Identifier: Apache-2.0
// The norms of rows in registers, with the operands, numbers, constants and partial results of
// norm.comp.
#version 460
#extension GL_GOOGLE_include_directive : require
#define OPERANDS 10
#include "register_rows.glsl"
#include "math.glsl"

GROUP_REDUCTION(tile_sum, float, sums, added)
#include "norm.glsl"

void main() {
  FOR_EACH_ROW {
    vec4 registers[VEC4S];
    FOR_EACH_OWN_VEC4(q) registers[q] = load_own_vec4(1u, q, 0.0);
    Moments moments;
    if (params.phase == PHASE_COMBINE) moments = combined_moments(); else moments = moments_of(registers);
    if (params.phase == PHASE_PARTIALS) {
      if (tile_thread == 0u) store_partials(moments);
      continue;
    }
    const Scale scale = scale_of(moments);
    FOR_EACH_OWN_VEC4(q) {
      precise vec4 y = (registers[q] - scale.mean) * scale.rstd;
      if (present(2u)) y *= load_own_vec4(2u, q, 1.0);
      if (present(3u)) y += load_own_vec4(3u, q, 0.0);
      store_own_vec4(0u, q, y);
    }
  }
}
