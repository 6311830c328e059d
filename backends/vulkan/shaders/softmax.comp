// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax: operands out, x. softmax_bwd: operands out, dy, y; VARIANT 1: of log_softmax. OP is the operator's id. Of a
// part are kept the maximum's ordering key and the sum of e^(x - maximum); backward, the sum of dy y, or of dy.
#version 460
#extension GL_GOOGLE_include_directive : require
#define OPERANDS 3
#include "reduction.glsl"
#include "dtype.glsl"
#include "math.glsl"
#include "order_keys.glsl"

TEAM_REDUCTION(team_sum, float, sums, added)
TEAM_REDUCTION(team_max, int, greatest_keys, max)

float x_at(uint i) { return value_of(load_bits(at(1u, i))); }

void put(uint i, float distance, float e, float scale, float logarithm, bool none) {
  float y = OP == BP_OP_SOFTMAX ? e * scale : distance - logarithm;
  store_bits(at(0u, i), bits_of(none ? kNaN : y));
}

void forward() {
  float held[HELD];
  int key = kLeast;
  float sum = 0.0, greatest;
  if (params.phase == PHASE_JOIN) {
    if (live) FOR_EACH_PARTIAL(p) key = max(key, int(load32(partial_at(p))));
    key = team_max(key);
    greatest = of_key(key);
    if (live) FOR_EACH_PARTIAL(p) sum += rescaled(partial_number(p, 1u), int(load32(partial_at(p))), greatest);
  } else if (holds()) {
    FOR_EACH_HELD(u, i) {
      held[u] = i < end ? x_at(i) : -kInfinity;
      key = max(key, order_f32(floatBitsToUint(held[u])));
    }
    key = team_max(key);
    greatest = of_key(key);
    FOR_EACH_HELD(u, i) {
      held[u] -= greatest;
      const float e = exp_f32(held[u]);
      if (OP == BP_OP_SOFTMAX) held[u] = e;
      if (i < end) sum += e;
    }
  } else {
    FOR_EACH_ELEMENT(i) key = max(key, order_f32(f32_bits(load_bits(at(1u, i)))));
    key = team_max(key);
    greatest = of_key(key);
    FOR_EACH_ELEMENT(i) sum += exp_f32(x_at(i) - greatest);
  }
  sum = team_sum(sum);
  if (params.phase == PHASE_PARTS) {
    if (live && lane == 0u) {
      store32(own_partial(), uint(key));
      put_partial(1u, sum);
    }
    return;
  }
  // Of nothing but -inf, or with inf or NaN: no number.
  const bool none = key == kLeast || key >= kInfinite;
  const float scale = 1.0 / sum, logarithm = log_f32(sum);
  if (holds() && params.phase == PHASE_WHOLE) {
    FOR_EACH_HELD(u, i) if (i < end) put(i, held[u], held[u], scale, logarithm, none);
  } else {
    FOR_EACH_ELEMENT(i) {
      const float distance = x_at(i) - greatest;
      put(i, distance, OP == BP_OP_SOFTMAX ? exp_f32(distance) : 0.0, scale, logarithm, none);
    }
  }
}

vec4 four_of(uint operand, uint i) {
  const BITS4 bits = load_four(four_at(operand, i, BYTES));
  return vec4(value_of(bits.x), value_of(bits.y), value_of(bits.z), value_of(bits.w));
}
void put_four(uint i, vec4 y) {
  store_four(four_at(0u, i, BYTES), BITS4(bits_of(y.x), bits_of(y.y), bits_of(y.z), bits_of(y.w)));
}

// The maximum and the sum in one go (Milakov and Gimelshein 2018): the sum follows the maximum of what was seen.
void forward_by_four() {
  int key = kLeast;
  float sum = 0.0;
  FOR_EACH_FOUR(i) {
    const vec4 x = four_of(1u, i);
    int next = key;
    [[unroll]] for (uint u = 0u; u < FOUR; ++u) next = max(next, order_f32(floatBitsToUint(x[u])));
    const float greatest = of_key(next);
    sum = rescaled(sum, key, greatest);
    [[unroll]] for (uint u = 0u; u < FOUR; ++u) sum += exp_f32(x[u] - greatest);
    key = next;
  }
  const int all = team_max(key);
  const float greatest = of_key(all);
  sum = team_sum(rescaled(sum, key, greatest));
  const bool none = all == kLeast || all >= kInfinite;
  const float scale = none ? kNaN : 1.0 / sum, logarithm = none ? kNaN : log_f32(sum);
  FOR_EACH_FOUR(i) {
    const vec4 distance = four_of(1u, i) - greatest;
    vec4 y = distance - logarithm;
    if (OP == BP_OP_SOFTMAX) {
      [[unroll]] for (uint u = 0u; u < FOUR; ++u) y[u] = exp_f32(distance[u]) * scale;
    }
    put_four(i, none ? vec4(kNaN) : y);
  }
}

float y_at(uint i) { return value_of(load_bits(at(2u, i))); }

void put_gradient(uint i, float dy, float y, float total) {
  const float dx = VARIANT == 1 ? dy - exp_f32(y) * total : y * (dy - total);
  store_bits(at(0u, i), bits_of(dx));
}

void backward() {
  float dy[HELD], y[HELD];
  float total = 0.0;
  if (params.phase == PHASE_JOIN) {
    if (live) FOR_EACH_PARTIAL(p) total += partial_number(p, 0u);
  } else if (holds()) {
    FOR_EACH_HELD(u, i) {
      dy[u] = i < end ? x_at(i) : 0.0;
      y[u] = i < end ? y_at(i) : 0.0;
      total += VARIANT == 1 ? dy[u] : dy[u] * y[u];
    }
  } else {
    FOR_EACH_ELEMENT(i) total += VARIANT == 1 ? x_at(i) : x_at(i) * y_at(i);
  }
  total = team_sum(total);
  if (params.phase == PHASE_PARTS) {
    if (live && lane == 0u) put_partial(0u, total);
  } else if (holds() && params.phase == PHASE_WHOLE) {
    FOR_EACH_HELD(u, i) if (i < end) put_gradient(i, dy[u], y[u], total);
  } else {
    FOR_EACH_ELEMENT(i) put_gradient(i, x_at(i), y_at(i), total);
  }
}

void backward_by_four() {
  float total = 0.0;
  FOR_EACH_FOUR(i) {
    const vec4 dy = four_of(1u, i);
    const vec4 terms = VARIANT == 1 ? dy : dy * four_of(2u, i);
    total += (terms.x + terms.y) + (terms.z + terms.w);
  }
  total = team_sum(total);
  FOR_EACH_FOUR(i) {
    const vec4 dy = four_of(1u, i), y = four_of(2u, i);
    vec4 dx = y * (dy - total);
    if (VARIANT == 1) {
      [[unroll]] for (uint u = 0u; u < FOUR; ++u) dx[u] = dy[u] - exp_f32(y[u]) * total;
    }
    put_four(i, dx);
  }
}

void main() {
  FOR_EACH_ROW {
    if (WIDTH != 0u) {
      if (OP == BP_OP_SOFTMAX_BWD) backward_by_four(); else forward_by_four();
      continue;
    }
    if (OP == BP_OP_SOFTMAX_BWD) backward(); else forward();
  }
}
