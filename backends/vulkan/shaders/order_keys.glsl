// SPDX-License-Identifier: Apache-2.0
// Maxima as ordering keys (order_f32): they order like the numbers, NaN above all.
const int kLeast = int(0x807FFFFFu), kInfinite = 0x7F800000;  // of -inf and inf
float of_key(int key) { return uintBitsToFloat(uint(key) ^ (uint(key >> 31) >> 1)); }

// What is summed relative to one maximum, told relative to a greater one.
float rescaled(float sum, int key, float greatest) {
  return key == kLeast ? 0.0 : sum * exp_f32(of_key(key) - greatest);
}
