// SPDX-License-Identifier: Apache-2.0
// cross_entropy. MODE 0: the loss of each row and its gradient; 1: the sum of the targets' weights; 2: the sum of losses, which
// goes on from dispatch to dispatch. OP 1: losses are kept as f32, to be summed. Operands, each mode having some: dlogits, or the sum; logits, or
// losses; target; weight, whose stride from class to class is its last; loss; what the result is divided by. Numbers: label
// smoothing, of each class; what is left to the target; the number of classes, by 65,536 and its rest; of mode 2: 1 in the first dispatch, 1 in the last. Kept of a part: the maximum's key, the
// sum of e^(x - maximum), of weight (x - maximum), and of weights, both for smoothing alone. VARIANT: ignore_index.
#version 460
#extension GL_GOOGLE_include_directive : require
#define OPERANDS 6
#include "rows.glsl"
#include "dtype.glsl"
#include "math.glsl"

TEAM_REDUCTION(team_sum, float, sums, added)
TEAM_REDUCTION(team_max, int, greatest_keys, max)

const int kLeast = int(0x807FFFFFu), kInfinite = 0x7F800000;  // ordering keys of -inf and inf
float of_key(int key) { return uintBitsToFloat(uint(key) ^ (uint(key >> 31) >> 1)); }

float logit(uint c) { return value_of(load_bits(at(1u, c))); }
float number_at(uint64_t address) { return uintBitsToFloat(load32(address)); }
float weight_of(uint c) {
  if (!present(3u)) return 1.0;
  return value_of(load_bits(bases[3] + uint64_t(params.operands[3].strides[BACKPLANE_ROW_RANK - 1] * int64_t(c))));
}
uint class_count() { return uint(params.numbers[2]) * 65536u + uint(params.numbers[3]); }
// Of a target: 0 if it is ignored; one outside of the classes has the weight 0, if there are weights.
float target_weight(int target, uint classes) {
  if (target == int(VARIANT)) return 0.0;
  if (target >= 0 && uint(target) < classes) return weight_of(uint(target));
  return present(3u) ? 0.0 : 1.0;
}

struct Row {
  int key;
  float sum, weighted, weights;
};

Row row_of(bool smoothed) {
  Row found = Row(kLeast, 0.0, 0.0, 0.0);
  const bool joins = params.phase == PHASE_JOIN;
  if (joins) {
    if (live) FOR_EACH_PARTIAL(p) found.key = max(found.key, int(load32(partial_at(p))));
  } else {
    FOR_EACH_ELEMENT(c) found.key = max(found.key, order_f32(f32_bits(load_bits(at(1u, c)))));
  }
  found.key = team_max(found.key);
  const float greatest = of_key(found.key);
  if (joins) {
    if (live) FOR_EACH_PARTIAL(p) {
      const int key = int(load32(partial_at(p)));
      const float distance = of_key(key) - greatest, weights = partial_number(p, 3u);
      if (key != kLeast) found.sum += partial_number(p, 1u) * exp_f32(distance);
      if (weights != 0.0) found.weighted += (key == kLeast ? 0.0 : partial_number(p, 2u)) + weights * distance;
      found.weights += weights;
    }
  } else {
    FOR_EACH_ELEMENT(c) {
      const float distance = logit(c) - greatest;
      found.sum += exp_f32(distance);
      const float weight = smoothed ? weight_of(params.first_element + c) : 0.0;
      if (weight != 0.0) found.weighted += weight * distance;
      found.weights += weight;
    }
  }
  found.sum = team_sum(found.sum);
  if (smoothed) {
    found.weighted = team_sum(found.weighted);
    found.weights = team_sum(found.weights);
  }
  return found;
}

// Without weights and smoothing; the maximum and the sum in one go, as of softmax.
vec4 logits_of(uint i) {
  const BITS4 bits = load_four(four_at(1u, i, BYTES));
  return vec4(value_of(bits.x), value_of(bits.y), value_of(bits.z), value_of(bits.w));
}
float rescaled(float sum, int key, float greatest) {
  return key == kLeast ? 0.0 : sum * exp_f32(of_key(key) - greatest);
}
Row row_by_four() {
  Row found = Row(kLeast, 0.0, 0.0, 0.0);
  FOR_EACH_FOUR(i) {
    const vec4 x = logits_of(i);
    int next = found.key;
    [[unroll]] for (uint u = 0u; u < FOUR; ++u) next = max(next, order_f32(floatBitsToUint(x[u])));
    const float greatest = of_key(next);
    found.sum = rescaled(found.sum, found.key, greatest);
    [[unroll]] for (uint u = 0u; u < FOUR; ++u) found.sum += exp_f32(x[u] - greatest);
    found.key = next;
  }
  const int all = team_max(found.key);
  found.sum = team_sum(rescaled(found.sum, found.key, of_key(all)));
  found.key = all;
  return found;
}

void each_row() {
  const float even = WIDTH != 0u ? 0.0 : params.numbers[0], kept = params.numbers[1];
  Row found;
  if (WIDTH != 0u) found = row_by_four(); else found = row_of(even != 0.0);
  if (WIDTH == 0u && params.phase == PHASE_PARTS) {
    if (live && lane == 0u) {
      store32(own_partial(), uint(found.key));
      put_partial(1u, found.sum);
      put_partial(2u, found.weighted);
      put_partial(3u, found.weights);
    }
    return;
  }
  if (!live) return;
  const uint classes = class_count();
  const int target = int(load32(bases[2]));
  const bool ignored = target == int(VARIANT), none = found.key == kLeast || found.key >= kInfinite;
  const bool inside = target >= 0 && uint(target) < classes;
  const float greatest = of_key(found.key), logarithm = none ? kNaN : log_f32(found.sum);
  const float scale = none ? kNaN : 1.0 / found.sum, weight = target_weight(target, classes);
  if (lane == 0u && part == 0u && params.first_part == 0u) {
    precise float loss = 0.0;
    if (inside && weight != 0.0) loss = (logarithm - (logit(uint(target)) - greatest)) * weight;
    if (even != 0.0) {
      const float spread = (logarithm * found.weights - found.weighted) * even;
      loss = loss * kept + spread;
    }
    if (none) loss = kNaN;
    if (ignored) loss = 0.0;
    if (OP == 1) store32(bases[4], floatBitsToUint(loss)); else store_bits(bases[4], bits_of(loss));
  }
  if (!present(0u)) return;
  const float divisor = present(5u) ? number_at(bases[5]) : 1.0;
  const float whole = weight * kept + found.weights * even;
  if (WIDTH != 0u) {
    FOR_EACH_FOUR(c) {
      const vec4 x = logits_of(c);
      BITS4 bits;
      [[unroll]] for (uint u = 0u; u < FOUR; ++u) {
        precise float gradient = exp_f32(x[u] - greatest) * scale * whole;
        if (c + u == uint(target) && inside) gradient -= weight * kept;
        bits[u] = bits_of(ignored ? 0.0 : divide_f32(gradient, divisor));
      }
      store_four(four_at(0u, c, BYTES), bits);
    }
    return;
  }
  FOR_EACH_ELEMENT(c) {
    precise float gradient = exp_f32(logit(c) - greatest) * scale * whole;
    if (params.first_element + c == uint(target) && inside) gradient -= weight * kept;
    if (even != 0.0) gradient -= weight_of(params.first_element + c) * even;
    store_bits(at(0u, c), bits_of(ignored ? 0.0 : divide_f32(gradient, divisor)));
  }
}

// The elements of the one row are the targets, or losses.
void total() {
  float sum = 0.0;
  if (params.phase == PHASE_JOIN) {
    if (live) FOR_EACH_PARTIAL(p) sum += partial_number(p, 0u);
  } else {
    FOR_EACH_ELEMENT(i) sum += MODE == 1 ? target_weight(int(load32(at(2u, i))), class_count()) : number_at(at(1u, i));
  }
  sum = team_sum(sum);
  if (!live || lane != 0u) return;
  if (params.phase == PHASE_PARTS) {
    put_partial(0u, sum);
  } else if (MODE == 1) {
    store32(bases[0], floatBitsToUint(sum));
  } else {
    if (params.numbers[0] == 0.0) sum += number_at(bases[4]);
    store32(bases[4], floatBitsToUint(sum));
    if (params.numbers[1] != 0.0) store_bits(bases[0], bits_of(present(5u) ? divide_f32(sum, number_at(bases[5])) : sum));
  }
}

void main() {
  FOR_EACH_ROW {
    if (MODE == 0) each_row(); else total();
  }
}
