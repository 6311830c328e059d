// SPDX-License-Identifier: Apache-2.0
// Vectorised kernels of philox, uniform, normal and dropout.
#pragma once

#include <cstddef>
#include <cstdint>

namespace backplane::onednn {

// The key, and the low and high halves of the counter of block 0.
struct PhiloxSeed {
  uint64_t key, low, high;
};
// Each kernel writes a multiple of this number of words or elements.
inline constexpr int64_t kPhiloxWords = 64;

struct RandomKernels {
  // Writes the words of consecutive blocks, beginning with `block`. `count` is the number of words, a multiple
  // of kPhiloxWords.
  void (*words)(const PhiloxSeed& seed, uint64_t block, uint32_t* out, int64_t count) = nullptr;
  // `uniform` converts the leading `bits` bits of each word to a number in [0, 1). `normal` converts pairs of such
  // numbers to pairs of normal numbers. `count` is a multiple of kPhiloxWords. `out` may be `words`.
  void (*uniform)(const uint32_t* words, int bits, float* out, int64_t count) = nullptr;
  void (*normal)(const uint32_t* words, int bits, float* out, int64_t count) = nullptr;
  // Computes y = x * factor for elements whose uniform number is at least p, and y = 0 for other elements. Sets
  // kept[i] to 1 or 0 unless `kept` is null. All arrays must have room for a multiple of kPhiloxWords elements.
  void (*dropout)(const uint32_t* words, const float* x, float p, float factor, float* y, uint8_t* kept,
                  int64_t count) = nullptr;
};

// Returns kernels that are compiled for this processor, or null pointers on targets without vectors.
RandomKernels random_kernels();

}  // namespace backplane::onednn
