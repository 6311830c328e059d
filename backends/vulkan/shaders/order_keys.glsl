// SPDX-License-Identifier: Apache-2.0
// Maxima as ordering keys (order_f32), which order like the numbers, with NaN above all.
const int kMinKey = int(0x807FFFFFu), kInfinityKey = 0x7F800000;  // of -inf and inf
float value_of_key(int key) { return uintBitsToFloat(uint(key) ^ (uint(key >> 31) >> 1)); }

// Rescales a sum relative to one maximum to a greater one.
float rescaled(float sum, int key, float greatest) {
  return key == kMinKey ? 0.0 : sum * exp_f32(value_of_key(key) - greatest);
}
