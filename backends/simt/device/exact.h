// SPDX-License-Identifier: Apache-2.0
// Exact sums and products of f32. Each result consists of the rounded number and its rounding
// error.
#pragma once
#include "types.h"

struct Exact {
  float high, low;
};

SIMT_FN float magnitude(float x) { return float_of_bits(bits_of_float(x) & 0x7FFFFFFFu); }

// Computes a * b (Dekker), with each factor split into two numbers of 12 bits (Veltkamp). If this split
// or the product would overflow, `low` is 0. A fused multiply-add would be shorter, but OpenCL devices
// may emulate it.
SIMT_FN Exact exact_product(float a, float b) {
  const float p = a * b, ca = 4097.0f * a, cb = 4097.0f * b;
  const float a1 = ca - (ca - a), b1 = cb - (cb - b), a2 = a - a1, b2 = b - b1;
  const float e = ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2;
  const bool fits = magnitude(ca) < 1.0e38f && magnitude(cb) < 1.0e38f && magnitude(p) < 1.0e38f;
  Exact out;
  out.high = p;
  out.low = fits ? e : 0.0f;
  return out;
}
// Computes a + b (Knuth). If the sum would overflow, `low` is 0.
SIMT_FN Exact exact_sum(float a, float b) {
  const float s = a + b, t = s - a, e = (a - (s - t)) + (b - t);
  Exact out;
  out.high = s;
  out.low = magnitude(s) < 3.0e38f ? e : 0.0f;
  return out;
}

// A sum with its rounding error (Neumaier). Functions access the members one by one. If a kernel copied
// a whole Sum, compilers would keep both members in one vector, and permute it for each addition.
struct Sum {
  float high, low;
};
SIMT_FN void clear(Sum& sum) { sum.high = sum.low = 0.0f; }
SIMT_FN void add(Sum& sum, float x) {
  const float s = sum.high + x, t = s - sum.high;
  sum.low += (sum.high - (s - t)) + (x - t);
  sum.high = s;
}
// Returns the sum plus its rounding error or, if the sum is not finite, without it.
SIMT_FN float total(const Sum& sum) {
  return (bits_of_float(sum.high) & 0x7F800000u) == 0x7F800000u ? sum.high : sum.high + sum.low;
}
