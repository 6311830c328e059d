// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and softmax_bwd of rows in registers, with the operands, constants and
// partial results of softmax.comp.
#version 460
#extension GL_GOOGLE_include_directive : require
#define OPERANDS 3
#include "register_rows.glsl"
#include "math.glsl"
#include "order_keys.glsl"

GROUP_REDUCTION(group_sum, float, sums, added)
GROUP_REDUCTION(group_max, int, greatest_keys, max)

void forward() {
  vec4 registers[VEC4S];
  int key = kMinKey;
  float sum = 0.0;
  FOR_EACH_OWN_VEC4(q) {
    registers[q] = load_own_vec4(1u, q, -kInfinity);
    FOR_EACH_COMPONENT(u) key = max(key, order_f32(floatBitsToUint(registers[q][u])));
  }
  const bool combines = params.phase == PHASE_COMBINE;
  if (combines) {
    key = kMinKey;
    if (has_row) FOR_EACH_PARTIAL(p) key = max(key, int(load32(partial_at(p))));
  }
  key = group_max(key);
  const float greatest = value_of_key(key);
  FOR_EACH_OWN_VEC4(q) {
    registers[q] -= greatest;
    vec4 e;
    FOR_EACH_COMPONENT(u) e[u] = exp_f32(registers[q][u]);
    sum += (e.x + e.y) + (e.z + e.w);  // adds 0 past the end, where the input is -inf
    if (OP == BP_OP_SOFTMAX) registers[q] = e;
  }
  if (combines) {
    sum = 0.0;
    if (has_row) FOR_EACH_PARTIAL(p) sum += rescaled(partial_value(p, 1u), int(load32(partial_at(p))), greatest);
  }
  sum = group_sum(sum);
  if (params.phase == PHASE_PARTIALS) {
    if (has_row && tile_thread == 0u) {
      store32(own_partial(), uint(key));
      store_partial(1u, sum);
    }
    return;
  }
  // The result is NaN if the row contains inf or NaN, or only -inf.
  const bool none = key == kMinKey || key >= kInfinityKey;
  const float scale = none ? kNaN : 1.0 / sum, logarithm = none ? kNaN : log_f32(sum);
  FOR_EACH_OWN_VEC4(q) store_own_vec4(0u, q, OP == BP_OP_SOFTMAX ? registers[q] * scale : registers[q] - logarithm);
}

void backward() {
  vec4 dy[VEC4S], y[VEC4S];
  float total = 0.0;
  FOR_EACH_OWN_VEC4(q) {
    dy[q] = load_own_vec4(1u, q, 0.0);
    y[q] = load_own_vec4(2u, q, 0.0);
    const vec4 terms = VARIANT == 1 ? dy[q] : dy[q] * y[q];
    total += (terms.x + terms.y) + (terms.z + terms.w);
  }
  if (params.phase == PHASE_COMBINE) {
    total = 0.0;
    if (has_row) FOR_EACH_PARTIAL(p) total += partial_value(p, 0u);
  }
  total = group_sum(total);
  if (params.phase == PHASE_PARTIALS) {
    if (has_row && tile_thread == 0u) store_partial(0u, total);
    return;
  }
  FOR_EACH_OWN_VEC4(q) {
    vec4 dx = y[q] * (dy[q] - total);
    if (VARIANT == 1) FOR_EACH_COMPONENT(u) dx[u] = dy[q][u] - exp_f32(y[q][u]) * total;
    store_own_vec4(0u, q, dx);
  }
}

void main() {
  FOR_EACH_ROW {
    if (OP == BP_OP_SOFTMAX_BWD) backward(); else forward();
  }
}
