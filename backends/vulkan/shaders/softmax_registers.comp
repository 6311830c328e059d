// SPDX-License-Identifier: Apache-2.0
// softmax.comp of rows that are held: the same operands and constants, and the same of a part.
#version 460
#extension GL_GOOGLE_include_directive : require
#define OPERANDS 3
#include "register_rows.glsl"
#include "math.glsl"
#include "order_keys.glsl"

GROUP_REDUCTION(group_sum, float, sums, added)
GROUP_REDUCTION(group_max, int, greatest_keys, max)

void forward() {
  vec4 held[QUADS];
  int key = kLeast;
  float sum = 0.0;
  FOR_EACH_QUAD(q) {
    held[q] = quad_of(1u, q, -kInfinity);
    FOR_EACH_OF_FOUR(u) key = max(key, order_f32(floatBitsToUint(held[q][u])));
  }
  const bool joins = params.phase == PHASE_JOIN;
  if (joins) {
    key = kLeast;
    if (live) FOR_EACH_PARTIAL(p) key = max(key, int(load32(partial_at(p))));
  }
  key = group_max(key);
  const float greatest = of_key(key);
  FOR_EACH_QUAD(q) {
    held[q] -= greatest;
    vec4 e;
    FOR_EACH_OF_FOUR(u) e[u] = exp_f32(held[q][u]);
    sum += (e.x + e.y) + (e.z + e.w);  // of none behind the end: e^-inf
    if (OP == BP_OP_SOFTMAX) held[q] = e;
  }
  if (joins) {
    sum = 0.0;
    if (live) FOR_EACH_PARTIAL(p) sum += rescaled(partial_number(p, 1u), int(load32(partial_at(p))), greatest);
  }
  sum = group_sum(sum);
  if (params.phase == PHASE_PARTS) {
    if (live && lane == 0u) {
      store32(own_partial(), uint(key));
      put_partial(1u, sum);
    }
    return;
  }
  // Of nothing but -inf, or with inf or NaN: no number.
  const bool none = key == kLeast || key >= kInfinite;
  const float scale = none ? kNaN : 1.0 / sum, logarithm = none ? kNaN : log_f32(sum);
  FOR_EACH_QUAD(q) put_quad(0u, q, OP == BP_OP_SOFTMAX ? held[q] * scale : held[q] - logarithm);
}

void backward() {
  vec4 dy[QUADS], y[QUADS];
  float total = 0.0;
  FOR_EACH_QUAD(q) {
    dy[q] = quad_of(1u, q, 0.0);
    y[q] = quad_of(2u, q, 0.0);
    const vec4 terms = VARIANT == 1 ? dy[q] : dy[q] * y[q];
    total += (terms.x + terms.y) + (terms.z + terms.w);
  }
  if (params.phase == PHASE_JOIN) {
    total = 0.0;
    if (live) FOR_EACH_PARTIAL(p) total += partial_number(p, 0u);
  }
  total = group_sum(total);
  if (params.phase == PHASE_PARTS) {
    if (live && lane == 0u) put_partial(0u, total);
    return;
  }
  FOR_EACH_QUAD(q) {
    vec4 dx = y[q] * (dy[q] - total);
    if (VARIANT == 1) FOR_EACH_OF_FOUR(u) dx[u] = dy[q][u] - exp_f32(y[q][u]) * total;
    put_quad(0u, q, dx);
  }
}

void main() {
  FOR_EACH_ROW {
    if (OP == BP_OP_SOFTMAX_BWD) backward(); else forward();
  }
}
