// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and softmax_bwd. OP is the operator's id. softmax and log_softmax have the operands out, x.
// softmax_bwd has the operands out, dy, y, and VARIANT 1 means that the kernel computes the gradient of log_softmax.
//
// A split stores the ordering key of its maximum and the sum of e^(x - maximum). A split of
// softmax_bwd stores the sum of dy * y or, for log_softmax, the sum of dy.
#version 460
#extension GL_GOOGLE_include_directive : require
#define OPERANDS 3
#include "reduction.glsl"
#include "dtype.glsl"
#include "math.glsl"
#include "order_keys.glsl"

TILE_REDUCTION(tile_sum, float, sums, added)
TILE_REDUCTION(tile_max, int, greatest_keys, max)

float x_at(uint i) { return value_of(load_bits(at(1u, i))); }

void put(uint i, float distance, float e, float scale, float logarithm, bool none) {
  float y = OP == BP_OP_SOFTMAX ? e * scale : distance - logarithm;
  store_bits(at(0u, i), bits_of(none ? kNaN : y));
}

void forward() {
  float registers[REGISTERS];
  int key = kMinKey;
  float sum = 0.0, greatest;
  if (params.phase == PHASE_COMBINE) {
    if (has_row) FOR_EACH_PARTIAL(p) key = max(key, int(load32(partial_at(p))));
    key = tile_max(key);
    greatest = value_of_key(key);
    if (has_row) FOR_EACH_PARTIAL(p) sum += rescaled(partial_value(p, 1u), int(load32(partial_at(p))), greatest);
  } else if (fits_registers()) {
    FOR_EACH_REGISTER(u, i) {
      registers[u] = i < end ? x_at(i) : -kInfinity;
      key = max(key, order_f32(floatBitsToUint(registers[u])));
    }
    key = tile_max(key);
    greatest = value_of_key(key);
    FOR_EACH_REGISTER(u, i) {
      registers[u] -= greatest;
      const float e = exp_f32(registers[u]);
      if (OP == BP_OP_SOFTMAX) registers[u] = e;
      if (i < end) sum += e;
    }
  } else {
    FOR_EACH_ELEMENT(i) key = max(key, order_f32(f32_bits(load_bits(at(1u, i)))));
    key = tile_max(key);
    greatest = value_of_key(key);
    FOR_EACH_ELEMENT(i) sum += exp_f32(x_at(i) - greatest);
  }
  sum = tile_sum(sum);
  if (params.phase == PHASE_PARTIALS) {
    if (has_row && tile_thread == 0u) {
      store32(own_partial(), uint(key));
      store_partial(1u, sum);
    }
    return;
  }
  // The result is NaN if the row contains inf or NaN, or only -inf.
  const bool none = key == kMinKey || key >= kInfinityKey;
  const float scale = 1.0 / sum, logarithm = log_f32(sum);
  if (fits_registers() && params.phase == PHASE_WHOLE) {
    FOR_EACH_REGISTER(u, i) if (i < end) put(i, registers[u], registers[u], scale, logarithm, none);
  } else {
    FOR_EACH_ELEMENT(i) {
      const float distance = x_at(i) - greatest;
      put(i, distance, OP == BP_OP_SOFTMAX ? exp_f32(distance) : 0.0, scale, logarithm, none);
    }
  }
}

vec4 vec4_of(uint operand, uint i) {
  const BITS4 bits = load_vec4(vec4_at(operand, i, BYTES));
  return vec4(value_of(bits.x), value_of(bits.y), value_of(bits.z), value_of(bits.w));
}
void put_vec4(uint i, vec4 y) {
  store_vec4(vec4_at(0u, i, BYTES), BITS4(bits_of(y.x), bits_of(y.y), bits_of(y.z), bits_of(y.w)));
}

// Computes maximum and sum in one pass (Milakov and Gimelshein 2018). Whenever the maximum grows,
// the sum is rescaled.
void forward_vec4() {
  int key = kMinKey;
  float sum = 0.0;
  FOR_EACH_VEC4(i) {
    const vec4 x = vec4_of(1u, i);
    int next = key;
    [[unroll]] for (uint u = 0u; u < VEC4_SIZE; ++u) next = max(next, order_f32(floatBitsToUint(x[u])));
    const float greatest = value_of_key(next);
    sum = rescaled(sum, key, greatest);
    [[unroll]] for (uint u = 0u; u < VEC4_SIZE; ++u) sum += exp_f32(x[u] - greatest);
    key = next;
  }
  const int all = tile_max(key);
  const float greatest = value_of_key(all);
  sum = tile_sum(rescaled(sum, key, greatest));
  const bool none = all == kMinKey || all >= kInfinityKey;
  const float scale = none ? kNaN : 1.0 / sum, logarithm = none ? kNaN : log_f32(sum);
  FOR_EACH_VEC4(i) {
    const vec4 distance = vec4_of(1u, i) - greatest;
    vec4 y = distance - logarithm;
    if (OP == BP_OP_SOFTMAX) {
      [[unroll]] for (uint u = 0u; u < VEC4_SIZE; ++u) y[u] = exp_f32(distance[u]) * scale;
    }
    put_vec4(i, none ? vec4(kNaN) : y);
  }
}

float y_at(uint i) { return value_of(load_bits(at(2u, i))); }

void put_gradient(uint i, float dy, float y, float total) {
  const float dx = VARIANT == 1 ? dy - exp_f32(y) * total : y * (dy - total);
  store_bits(at(0u, i), bits_of(dx));
}

void backward() {
  float dy[REGISTERS], y[REGISTERS];
  float total = 0.0;
  if (params.phase == PHASE_COMBINE) {
    if (has_row) FOR_EACH_PARTIAL(p) total += partial_value(p, 0u);
  } else if (fits_registers()) {
    FOR_EACH_REGISTER(u, i) {
      dy[u] = i < end ? x_at(i) : 0.0;
      y[u] = i < end ? y_at(i) : 0.0;
      total += VARIANT == 1 ? dy[u] : dy[u] * y[u];
    }
  } else {
    FOR_EACH_ELEMENT(i) total += VARIANT == 1 ? x_at(i) : x_at(i) * y_at(i);
  }
  total = tile_sum(total);
  if (params.phase == PHASE_PARTIALS) {
    if (has_row && tile_thread == 0u) store_partial(0u, total);
  } else if (fits_registers() && params.phase == PHASE_WHOLE) {
    FOR_EACH_REGISTER(u, i) if (i < end) put_gradient(i, dy[u], y[u], total);
  } else {
    FOR_EACH_ELEMENT(i) put_gradient(i, x_at(i), y_at(i), total);
  }
}

void backward_vec4() {
  float total = 0.0;
  FOR_EACH_VEC4(i) {
    const vec4 dy = vec4_of(1u, i);
    const vec4 terms = VARIANT == 1 ? dy : dy * vec4_of(2u, i);
    total += (terms.x + terms.y) + (terms.z + terms.w);
  }
  total = tile_sum(total);
  FOR_EACH_VEC4(i) {
    const vec4 dy = vec4_of(1u, i), y = vec4_of(2u, i);
    vec4 dx = y * (dy - total);
    if (VARIANT == 1) {
      [[unroll]] for (uint u = 0u; u < VEC4_SIZE; ++u) dx[u] = dy[u] - exp_f32(y[u]) * total;
    }
    put_vec4(i, dx);
  }
}

void main() {
  FOR_EACH_ROW {
    if (VEC4_TILE != 0u) {
      if (OP == BP_OP_SOFTMAX_BWD) backward_vec4(); else forward_vec4();
      continue;
    }
    if (OP == BP_OP_SOFTMAX_BWD) backward(); else forward();
  }
}
