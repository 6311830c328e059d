// SPDX-License-Identifier: Apache-2.0
// loss_cross_entropy.comp, MODE 0, of rows that are held: the same operands, numbers and constants, and the same of a part.
#version 460
#extension GL_GOOGLE_include_directive : require
#define OPERANDS 6
#include "register_rows.glsl"
#include "math.glsl"
#include "order_keys.glsl"

GROUP_REDUCTION(team_sum, float, sums, added)
GROUP_REDUCTION(team_max, int, greatest_keys, max)
#include "loss_cross_entropy.glsl"

// Leaves e^(x - maximum) in place of x, also where the maximum is of all parts.
Row row_of(inout vec4 held[QUADS], bool smoothed) {
  Row found = Row(kLeast, 0.0, 0.0, 0.0);
  const bool joins = params.phase == PHASE_JOIN;
  if (joins) {
    found = joined_row(smoothed);
  } else {
    FOR_EACH_QUAD(q) FOR_EACH_OF_FOUR(u) found.key = max(found.key, order_f32(floatBitsToUint(held[q][u])));
    found.key = team_max(found.key);
  }
  const float greatest = of_key(found.key);
  FOR_EACH_QUAD(q) {
    const vec4 distance = held[q] - greatest;
    FOR_EACH_OF_FOUR(u) held[q][u] = exp_f32(distance[u]);  // of none behind the end: e^-inf
    if (joins) continue;
    found.sum += (held[q].x + held[q].y) + (held[q].z + held[q].w);
    if (!smoothed) continue;
    const bvec4 inside = quad_inside(q);
    FOR_EACH_OF_FOUR(u) if (inside[u]) {
      const float weight = weight_of(params.first_element + quad_first(q) + u * quad_step());
      if (weight != 0.0) found.weighted += weight * distance[u];
      found.weights += weight;
    }
  }
  if (joins) return found;
  found.sum = team_sum(found.sum);
  if (smoothed) {
    found.weighted = team_sum(found.weighted);
    found.weights = team_sum(found.weights);
  }
  return found;
}

void main() {
  FOR_EACH_ROW {
    vec4 held[QUADS];
    // Where parts are joined and no gradient is wanted, nothing is read again.
    const bool reads = params.phase != PHASE_JOIN || present(0u);
    FOR_EACH_QUAD(q) held[q] = reads ? quad_of(1u, q, -kInfinity) : vec4(0.0);
    const float even = params.numbers[0];
    const Row found = row_of(held, even != 0.0);
    if (params.phase == PHASE_PARTS) {
      if (lane == 0u) put_partials(found);
      continue;
    }
    const Slope slope = slope_of(found, even);
    if (!present(0u)) continue;
    FOR_EACH_QUAD(q) {
      vec4 gradient;
      const bvec4 inside = quad_inside(q);
      FOR_EACH_OF_FOUR(u) {
        const uint c = quad_first(q) + u * quad_step();
        gradient[u] = inside[u] ? gradient_of(slope, c, held[q][u]) : 0.0;
      }
      put_quad(0u, q, gradient);
    }
  }
}
