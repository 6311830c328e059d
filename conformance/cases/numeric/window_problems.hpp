// SPDX-License-Identifier: Apache-2.0
// Problems for the convolution and pooling cases.
#pragma once

#include <array>
#include <span>

#include "cases/numeric/composite.hpp"

namespace backplane::conformance::numeric {

// A convolution or pooling problem. The members describe a forward convolution from `image` to the
// result. conv_bwd_input and conv_transpose compute the image from the result.
struct WindowProblem {
  std::string_view name;
  uint32_t rank, groups;
  int64_t batches, in_channels, out_channels;
  std::array<int64_t, 3> image, kernel, stride, dilation, pad_begin, pad_end;
  int64_t result(size_t d) const;
};

extern const std::span<const WindowProblem> kWindowProblems;

// Returns whether an extent of the problem is 0. In this case, sums have no terms, or there are no results.
bool is_empty(const WindowProblem& problem);

std::vector<int64_t> image_shape(const WindowProblem& problem, int64_t channels);
std::vector<int64_t> result_shape(const WindowProblem& problem, int64_t channels);

// Returns `values`, with 0 in each dimension that the problem does not use.
std::array<int64_t, 3> used(const WindowProblem& s, const std::array<int64_t, 3>& values);

template <typename Attributes>
void set_window(const WindowProblem& s, Attributes& attributes) {
  attributes.spatial_rank = s.rank;
  std::copy_n(used(s, s.stride).begin(), 3, attributes.stride);
  std::copy_n(used(s, s.dilation).begin(), 3, attributes.dilation);
  std::copy_n(used(s, s.pad_begin).begin(), 3, attributes.pad_begin);
  std::copy_n(used(s, s.pad_end).begin(), 3, attributes.pad_end);
}

}  // namespace backplane::conformance::numeric
