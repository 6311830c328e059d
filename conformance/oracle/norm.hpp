// SPDX-License-Identifier: Apache-2.0
// Groups of elements that a normalisation reduces, with the mean and variance of each group.
#pragma once

#include <vector>

#include "composite.hpp"

namespace backplane::conformance::oracle {

// The groups of the elements of x, and the index into gamma and beta for each element.
struct Grouping {
  std::vector<std::vector<int64_t>> members{};  // indices into x per group, in row-major order
  std::vector<int64_t> parameter{};             // index into gamma and beta per element of x
};
// Returns the groups of layer_norm and rms_norm. There is one group per index of the dimensions
// outside `axes`, and gamma and beta extend along `axes`.
Grouping group_axes(const std::vector<int64_t>& shape, uint32_t axes);
// Returns the groups of group_norm. x has the shape [N,C,..], and gamma and beta have the shape [C].
Grouping group_channels(const std::vector<int64_t>& shape, int64_t groups);
// Returns the groups of batch_norm, one per channel. gamma and beta have the shape [C].
Grouping group_batch(const std::vector<int64_t>& shape);

struct Moments {
  long double mean = 0, variance = 0;  // the variance divides by n, not by n - 1
  long double magnitude = 0;           // mean of |x|
  int64_t count = 0;
};
Moments moments_of(const Tensor& x, const std::vector<int64_t>& members);

// Returns (sqrt(n) + 8) u, the maximum relative error of each step of a normalisation over n
// elements.
inline long double norm_loss(uint32_t dtype, int64_t n) { return (std::sqrt(count_of(n)) + 8) * unit(dtype); }
inline long double rms_loss(uint32_t dtype, int64_t n) { return (rho(n) / 2 + 12) * unit(dtype); }

}  // namespace backplane::conformance::oracle
