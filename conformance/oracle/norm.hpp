// SPDX-License-Identifier: Apache-2.0
// The groups of elements that a normalisation reduces, and their mean and variance.
#pragma once

#include <vector>

#include "composite.hpp"

namespace backplane::conformance::oracle {

// The elements of x in each group, and the element of gamma and beta that applies to each element
// of x.
struct Grouping {
  std::vector<std::vector<int64_t>> members{};  // by group, row-major
  std::vector<int64_t> parameter{};             // by element of x
};
// layer_norm, rms_norm: one group for each index of the dimensions outside `axes`; gamma and beta
// extend along `axes`.
Grouping group_axes(const std::vector<int64_t>& shape, uint32_t axes);
// group_norm: x[N,C,..], parameters [C].
Grouping group_channels(const std::vector<int64_t>& shape, int64_t groups);
// batch_norm: one group per channel, parameters [C].
Grouping group_batch(const std::vector<int64_t>& shape);

struct Moments {
  long double mean = 0, variance = 0;  // the variance divides by n, not by n - 1
  long double magnitude = 0;           // mean of |x|
  int64_t count = 0;
};
Moments moments_of(const Tensor& x, const std::vector<int64_t>& members);

// (root n + 8) u: the maximum relative error of each step of a normalisation over n elements.
inline long double norm_loss(uint32_t dtype, int64_t n) { return (std::sqrt(count_of(n)) + 8) * unit(dtype); }
inline long double rms_loss(uint32_t dtype, int64_t n) { return (rho(n) / 2 + 12) * unit(dtype); }

}  // namespace backplane::conformance::oracle
