// SPDX-License-Identifier: Apache-2.0
// Exact sums and products of f32. Each result consists of the rounded number and its rounding
// error.

// Computes a * b as high + low (Dekker, Veltkamp). If the split of a factor would overflow, low is
// 0.
void exact_product(float a, float b, out float high, out float low) {
  precise float p = a * b;
  precise float ca = 4097.0 * a;
  precise float cb = 4097.0 * b;
  precise float a1 = ca - (ca - a);
  precise float b1 = cb - (cb - b);
  precise float a2 = a - a1;
  precise float b2 = b - b1;
  precise float e = ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2;
  high = p;
  low = abs(ca) < 1.0e38 && abs(cb) < 1.0e38 && abs(p) < 1.0e38 ? e : 0.0;
}

// Computes a + b as high + low (Knuth). If the sum would overflow, low is 0.
void exact_sum(float a, float b, out float high, out float low) {
  precise float s = a + b;
  precise float t = s - a;
  precise float e = (a - (s - t)) + (b - t);
  high = s;
  low = abs(s) < 3.0e38 ? e : 0.0;
}
