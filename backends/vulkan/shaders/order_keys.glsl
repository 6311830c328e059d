// SPDX-License-Identifier: Apache-2.0
// Ordering keys (order_f32), with which kernels compute maxima. Keys have the order of the
// numbers, and NaN has the maximum key.
const int kMinKey = int(0x807FFFFFu), kInfinityKey = 0x7F800000;  // keys of -inf and inf
float value_of_key(int key) { return uintBitsToFloat(uint(key) ^ (uint(key >> 31) >> 1)); }

// Rescales a sum of e^(x - maximum) from the maximum whose key is `key` to the greater maximum
// `greatest`.
float rescaled(float sum, int key, float greatest) {
  return key == kMinKey ? 0.0 : sum * exp_f32(value_of_key(key) - greatest);
}
