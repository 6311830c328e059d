// SPDX-License-Identifier: Apache-2.0
// Functions that loss_cross_entropy.comp and loss_cross_entropy_registers.comp share. These files
// define tile_sum and tile_max before they include this file.
float logit(uint c) { return value_of(load_bits(at(1u, c))); }
float number_at(uint64_t address) { return uintBitsToFloat(load32(address)); }
float weight_of(uint c) {
  if (!present(3u)) return 1.0;
  return value_of(
      load_bits(bases[3] + uint64_t(params.operands[3].strides[BACKPLANE_REDUCTION_RANK - 1] * int64_t(c))));
}
uint class_count() { return uint(params.numbers[2]) * 65536u + uint(params.numbers[3]); }
// Returns the weight of a target. The weight is 0 if the target is ignored. If operand 3 (weight) is present, the
// result is also 0 for a target that is not a class.
float target_weight(int target, uint classes) {
  if (target == int(VARIANT)) return 0.0;
  if (target >= 0 && uint(target) < classes) return weight_of(uint(target));
  return present(3u) ? 0.0 : 1.0;
}

// key: the ordering key of the maximum m. sum: the sum of e^(x - m). weighted: the sum of weight * (x - m). weights:
// the sum of weights. Only label smoothing uses the last two.
struct Row {
  int key;
  float sum, weighted, weights;
};

void store_partials(Row found) {
  store32(own_partial(), uint(found.key));
  store_partial(1u, found.sum);
  store_partial(2u, found.weighted);
  store_partial(3u, found.weights);
}

int partial_key(uint p) { return int(load32(partial_at(p))); }

// Combines the values of a row's splits.
Row combined_row(bool smoothed) {
  Row found = Row(kMinKey, 0.0, 0.0, 0.0);
  if (has_row) FOR_EACH_PARTIAL(p) found.key = max(found.key, partial_key(p));
  found.key = tile_max(found.key);
  const float greatest = value_of_key(found.key);
  if (has_row) FOR_EACH_PARTIAL(p) {
    const int key = partial_key(p);
    const float distance = value_of_key(key) - greatest, weights = partial_value(p, 3u);
    if (key != kMinKey) found.sum += partial_value(p, 1u) * exp_f32(distance);
    if (weights != 0.0) found.weighted += (key == kMinKey ? 0.0 : partial_value(p, 2u)) + weights * distance;
    found.weights += weights;
  }
  found.sum = tile_sum(found.sum);
  if (smoothed) {
    found.weighted = tile_sum(found.weighted);
    found.weights = tile_sum(found.weights);
  }
  return found;
}

// The values that all gradients of a row share.
struct Slope {
  int target;  // -1 if the target is not a class
  bool ignored;
  float greatest, scale, whole, target_share, even, divisor;
};

// Stores the row's loss, and returns the terms of its gradient. `even` is the smoothing share of
// each class.
Slope slope_of(Row found, float even) {
  const float kept = params.numbers[1];
  const uint classes = class_count();
  const int target = int(load32(bases[2]));
  const bool none = found.key == kMinKey || found.key >= kInfinityKey, inside = target >= 0 && uint(target) < classes;
  const float weight = target_weight(target, classes), logarithm = none ? kNaN : log_f32(found.sum);
  Slope slope;
  slope.target = inside ? target : -1;
  slope.ignored = target == int(VARIANT);
  slope.greatest = value_of_key(found.key);
  slope.scale = none ? kNaN : 1.0 / found.sum;
  slope.whole = weight * kept + found.weights * even;
  slope.target_share = weight * kept;
  slope.even = even;
  slope.divisor = present(5u) ? number_at(bases[5]) : 1.0;
  if (tile_thread == 0u && split == 0u && params.first_split == 0u) {
    precise float loss = 0.0;
    if (inside && weight != 0.0) loss = (logarithm - (logit(uint(target)) - slope.greatest)) * weight;
    if (even != 0.0) {
      const float spread = (logarithm * found.weights - found.weighted) * even;
      loss = loss * kept + spread;
    }
    if (none) loss = kNaN;
    if (slope.ignored) loss = 0.0;
    if (OP == 1) store32(bases[4], floatBitsToUint(loss)); else store_bits(bases[4], bits_of(loss));
  }
  return slope;
}

// Returns the gradient of the row's element `c`, counted from the dispatch's first element. `e` is
// e^(x - maximum).
float gradient_of(Slope slope, uint c, float e) {
  precise float gradient = e * slope.scale * slope.whole;
  if (params.first_element + c == uint(slope.target)) gradient -= slope.target_share;
  if (slope.even != 0.0) gradient -= weight_of(params.first_element + c) * slope.even;
  return slope.ignored ? 0.0 : divide_f32(gradient, slope.divisor);
}
