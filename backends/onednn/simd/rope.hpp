// SPDX-License-Identifier: Apache-2.0
// Vectorised steps of rope. The angle of position p and frequency f must be accurate to 2^-20
// modulo 2 pi for every p, which exceeds the precision of f32. So f / (2 pi) is split into an
// integer number of 2^-32 turns and a remainder. The product of p and the integer wraps at whole
// turns; the product of p and the remainder is small.
#pragma once

#include <cstdint>

namespace backplane::onednn {

// The frequencies, and buffers for the angles of one position: `half` values each, padded by
// kRopePadding.
struct RopeTable {
  const uint32_t* steps;  // in 2^-32 turns
  const float* rests;     // in radians
  float *cosines, *sines;
  int64_t half;
};
struct RopeKernels {
  // Computes the cosines and sines for one position.
  void (*angles)(const RopeTable& table, int32_t position);
  // y = x with the first 2 * half elements rotated. Element i is paired with i + half or, if
  // `pairs`, element 2 i with 2 i + 1.
  void (*rotate)(const RopeTable& table, bool pairs, const float* x, float* y);
};
inline constexpr int64_t kRopePadding = 64;  // elements past `half` that vectors may access

// The functions compiled for this processor; null on targets without vectors.
RopeKernels rope_kernels();

}  // namespace backplane::onednn
