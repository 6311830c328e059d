// SPDX-License-Identifier: Apache-2.0
// The loss of cross_entropy and its gradient. MODE is BACKPLANE_CROSS_ENTROPY_*. The sum of losses
// accumulates over dispatches. With OP 1, losses are stored as f32, because a later kernel sums
// them. VARIANT is ignore_index.
//
// Operands. Each mode uses some of them:
// 0: dlogits, or the sum
// 1: logits, or losses
// 2: target
// 3: weight, whose last stride is between classes
// 4: loss, or the accumulated sum of losses
// 5: the divisor of the result
//
// params.numbers in mode ROWS: the smoothing share of each class; the share that remains for the target; the number of
// classes divided by 65,536; the remainder of that division. Mode WEIGHTS uses only the last two. In mode LOSSES,
// numbers[0] is 1 for the first dispatch, else 0, and numbers[1] is 1 for the last dispatch, else 0.
//
// A split stores four values: the ordering key (order_keys.glsl) of its maximum m, the sum of e^(x - m), the sum of
// weight * (x - m), and the sum of weights. Only label smoothing uses the last two.
#version 460
#extension GL_GOOGLE_include_directive : require
#define OPERANDS 6
#include "reduction.glsl"
#include "dtype.glsl"
#include "math.glsl"
#include "order_keys.glsl"

TILE_REDUCTION(tile_sum, float, sums, added)
TILE_REDUCTION(tile_max, int, greatest_keys, max)

#include "loss_cross_entropy.glsl"

Row row_of(bool smoothed) {
  if (params.phase == PHASE_COMBINE) return combined_row(smoothed);
  Row found = Row(kMinKey, 0.0, 0.0, 0.0);
  FOR_EACH_ELEMENT(c) found.key = max(found.key, order_f32(f32_bits(load_bits(at(1u, c)))));
  found.key = tile_max(found.key);
  const float greatest = value_of_key(found.key);
  FOR_EACH_ELEMENT(c) {
    const float distance = logit(c) - greatest;
    found.sum += exp_f32(distance);
    const float weight = smoothed ? weight_of(params.first_element + c) : 0.0;
    if (weight != 0.0) found.weighted += weight * distance;
    found.weights += weight;
  }
  found.sum = tile_sum(found.sum);
  if (smoothed) {
    found.weighted = tile_sum(found.weighted);
    found.weights = tile_sum(found.weights);
  }
  return found;
}

// The vec4 functions process rows without weights and without smoothing. These functions compute maximum and sum in one
// pass, as softmax.comp does.
vec4 logits_of(uint i) {
  const BITS4 bits = load_vec4(vec4_at(1u, i, BYTES));
  return vec4(value_of(bits.x), value_of(bits.y), value_of(bits.z), value_of(bits.w));
}
Row row_vec4() {
  Row found = Row(kMinKey, 0.0, 0.0, 0.0);
  FOR_EACH_VEC4(i) {
    const vec4 x = logits_of(i);
    int next = found.key;
    [[unroll]] for (uint u = 0u; u < VEC4_SIZE; ++u) next = max(next, order_f32(floatBitsToUint(x[u])));
    const float greatest = value_of_key(next);
    found.sum = rescaled(found.sum, found.key, greatest);
    [[unroll]] for (uint u = 0u; u < VEC4_SIZE; ++u) found.sum += exp_f32(x[u] - greatest);
    found.key = next;
  }
  const int all = tile_max(found.key);
  found.sum = tile_sum(rescaled(found.sum, found.key, value_of_key(all)));
  found.key = all;
  return found;
}

void each_row() {
  const float even = VEC4_TILE != 0u ? 0.0 : params.numbers[0];
  Row found;
  if (VEC4_TILE != 0u) found = row_vec4(); else found = row_of(even != 0.0);
  if (VEC4_TILE == 0u && params.phase == PHASE_PARTIALS) {
    if (has_row && tile_thread == 0u) store_partials(found);
    return;
  }
  if (!has_row) return;
  const Slope slope = slope_of(found, even);
  if (!present(0u)) return;
  if (VEC4_TILE != 0u) {
    FOR_EACH_VEC4(c) {
      const vec4 x = logits_of(c);
      BITS4 bits;
      [[unroll]] for (uint u = 0u; u < VEC4_SIZE; ++u)
        bits[u] = bits_of(gradient_of(slope, c + u, exp_f32(x[u] - slope.greatest)));
      store_vec4(vec4_at(0u, c, BYTES), bits);
    }
    return;
  }
  FOR_EACH_ELEMENT(c) store_bits(at(0u, c), bits_of(gradient_of(slope, c, exp_f32(logit(c) - slope.greatest))));
}

// Sums the weights of all targets, or sums all losses. The summands form a single row.
void total() {
  float sum = 0.0;
  if (params.phase == PHASE_COMBINE) {
    if (has_row) FOR_EACH_PARTIAL(p) sum += partial_value(p, 0u);
  } else {
    FOR_EACH_ELEMENT(i)
      sum += MODE == BACKPLANE_CROSS_ENTROPY_WEIGHTS ? target_weight(int(load32(at(2u, i))), class_count())
                                                     : number_at(at(1u, i));
  }
  sum = tile_sum(sum);
  if (!has_row || tile_thread != 0u) return;
  if (params.phase == PHASE_PARTIALS) {
    store_partial(0u, sum);
  } else if (MODE == BACKPLANE_CROSS_ENTROPY_WEIGHTS) {
    store32(bases[0], floatBitsToUint(sum));
  } else {
    if (params.numbers[0] == 0.0) sum += number_at(bases[4]);
    store32(bases[4], floatBitsToUint(sum));
    if (params.numbers[1] != 0.0)
      store_bits(bases[0], bits_of(present(5u) ? divide_f32(sum, number_at(bases[5])) : sum));
  }
}

void main() {
  FOR_EACH_ROW {
    if (MODE == BACKPLANE_CROSS_ENTROPY_ROWS) each_row(); else total();
  }
}
