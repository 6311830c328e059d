// SPDX-License-Identifier: Apache-2.0
// Vectorised steps of rope. The angle of position p and frequency f must be known modulo 2 pi to
// 2^-20 for every p, more than f32 can hold. So f / (2 pi) is split into a whole number of 2^-32
// turns and a rest. p times the first wraps at whole turns in integer arithmetic; p times the
// second is small.
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
  // y = x with its first 2 * half elements rotated: element i with i + half or, if `pairs`, with
  // its neighbour.
  void (*rotate)(const RopeTable& table, bool pairs, const float* x, float* y);
};
inline constexpr int64_t kRopePadding = 64;  // elements beyond `half` that vectors may touch

// The functions compiled for this processor; null on targets without vectors.
RopeKernels rope_kernels();

}  // namespace backplane::onednn
