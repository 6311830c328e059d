// SPDX-License-Identifier: Apache-2.0
// Vectorised steps of the operator rope. The angle of position p and frequency f is p * f. It must be accurate
// to 2^-20 modulo 2 pi for every p, and f32 is not precise enough. Therefore f / (2 pi) is split into an
// integer number of 2^-32 turns and a remainder. The 32-bit product of p and the integer wraps at whole turns,
// which preserves the angle. The product of p and the remainder is small.
#pragma once

#include <cstdint>

namespace backplane::onednn {

// The frequencies, and buffers for the cosines and sines of one position. Each array has `half`
// values and kRopePadding elements of padding.
struct RopeTable {
  const uint32_t* steps;  // integer parts of the frequencies, in units of 2^-32 turns
  const float* rests;     // remainders of the frequencies, in radians
  float *cosines, *sines;
  int64_t half;
};
struct RopeKernels {
  // Computes the cosines and sines for one position.
  void (*angles)(const RopeTable& table, int32_t position);
  // Rotates the first 2 * half elements of x into y. Element i is paired with element i + half. If
  // `pairs` is set, element 2 i is instead paired with element 2 i + 1.
  void (*rotate)(const RopeTable& table, bool pairs, const float* x, float* y);
};
inline constexpr int64_t kRopePadding = 64;  // elements past `half` that vectors may access

// Returns the functions that are compiled for this processor. They are null on targets without
// vectors.
RopeKernels rope_kernels();

}  // namespace backplane::onednn
