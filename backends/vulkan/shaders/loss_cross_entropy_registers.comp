// SPDX-License-Identifier: Apache-2.0
// cross_entropy of rows in registers, with the operands, numbers, constants and partial results of
// loss_cross_entropy.comp.
#version 460
#extension GL_GOOGLE_include_directive : require
#define OPERANDS 6
#include "register_rows.glsl"
#include "math.glsl"
#include "order_keys.glsl"

GROUP_REDUCTION(tile_sum, float, sums, added)
GROUP_REDUCTION(tile_max, int, greatest_keys, max)
#include "loss_cross_entropy.glsl"

// Replaces each x in `registers` with e^(x - maximum). In PHASE_COMBINE, the maximum covers the
// whole row.
Row row_of(inout vec4 registers[VEC4S], bool smoothed) {
  Row found = Row(kMinKey, 0.0, 0.0, 0.0);
  const bool combines = params.phase == PHASE_COMBINE;
  if (combines) {
    found = combined_row(smoothed);
  } else {
    FOR_EACH_OWN_VEC4(q) FOR_EACH_COMPONENT(u) found.key = max(found.key, order_f32(floatBitsToUint(registers[q][u])));
    found.key = tile_max(found.key);
  }
  const float greatest = value_of_key(found.key);
  FOR_EACH_OWN_VEC4(q) {
    const vec4 distance = registers[q] - greatest;
    // Elements past the end become 0, because they are loaded as -inf.
    FOR_EACH_COMPONENT(u) registers[q][u] = exp_f32(distance[u]);
    if (combines) continue;
    found.sum += (registers[q].x + registers[q].y) + (registers[q].z + registers[q].w);
    if (!smoothed) continue;
    const bvec4 inside = vec4_inside(q);
    FOR_EACH_COMPONENT(u) if (inside[u]) {
      const float weight = weight_of(params.first_element + vec4_first(q) + u * vec4_step());
      if (weight != 0.0) found.weighted += weight * distance[u];
      found.weights += weight;
    }
  }
  if (combines) return found;
  found.sum = tile_sum(found.sum);
  if (smoothed) {
    found.weighted = tile_sum(found.weighted);
    found.weights = tile_sum(found.weights);
  }
  return found;
}

void main() {
  FOR_EACH_ROW {
    vec4 registers[VEC4S];
    // PHASE_COMBINE reads the row again only if there is a gradient.
    const bool reads = params.phase != PHASE_COMBINE || present(0u);
    FOR_EACH_OWN_VEC4(q) registers[q] = reads ? load_own_vec4(1u, q, -kInfinity) : vec4(0.0);
    const float even = params.numbers[0];
    const Row found = row_of(registers, even != 0.0);
    if (params.phase == PHASE_PARTIALS) {
      if (tile_thread == 0u) store_partials(found);
      continue;
    }
    const Slope slope = slope_of(found, even);
    if (!present(0u)) continue;
    FOR_EACH_OWN_VEC4(q) {
      vec4 gradient;
      const bvec4 inside = vec4_inside(q);
      FOR_EACH_COMPONENT(u) {
        const uint c = vec4_first(q) + u * vec4_step();
        gradient[u] = inside[u] ? gradient_of(slope, c, registers[q][u]) : 0.0;
      }
      store_own_vec4(0u, q, gradient);
    }
  }
}
