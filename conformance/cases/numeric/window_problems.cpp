// SPDX-License-Identifier: Apache-2.0
#include "cases/numeric/window_problems.hpp"

namespace backplane::conformance::numeric {

namespace {

constexpr std::array<int64_t, 3> kNone{0, 0, 0}, kOne{1, 1, 1};

constexpr WindowProblem kAll[] = {
    {"plain", 2, 1, 2, 3, 4, {7, 9, 0}, {3, 3, 0}, kOne, kOne, kNone, kNone},
    {"padded", 2, 1, 2, 3, 5, {6, 7, 0}, {3, 3, 0}, kOne, kOne, {1, 1, 0}, {1, 1, 0}},
    {"uneven_pads", 2, 1, 1, 2, 3, {6, 8, 0}, {3, 2, 0}, kOne, kOne, {2, 0, 0}, {0, 1, 0}},
    {"strided", 2, 1, 2, 2, 3, {9, 10, 0}, {3, 3, 0}, {2, 3, 1}, kOne, {1, 0, 0}, {0, 1, 0}},
    {"dilated", 2, 1, 1, 2, 3, {11, 9, 0}, {3, 2, 0}, kOne, {2, 3, 1}, {1, 2, 0}, {2, 0, 0}},
    {"grouped", 2, 2, 2, 4, 6, {5, 6, 0}, {3, 3, 0}, kOne, kOne, {1, 1, 0}, {1, 1, 0}},
    {"depthwise", 2, 5, 1, 5, 5, {6, 6, 0}, {3, 3, 0}, {2, 1, 1}, kOne, {1, 1, 0}, {1, 1, 0}},
    {"pointwise", 2, 1, 2, 17, 9, {4, 5, 0}, {1, 1, 0}, kOne, kOne, kNone, kNone},
    {"all", 2, 3, 2, 6, 9, {13, 11, 0}, {3, 2, 0}, {2, 3, 1}, {2, 1, 1}, {3, 0, 0}, {1, 2, 0}},
    {"line", 1, 1, 2, 3, 4, {17, 0, 0}, {5, 0, 0}, {2, 1, 1}, {2, 1, 1}, {3, 0, 0}, {2, 0, 0}},
    {"volume", 3, 2, 1, 4, 4, {4, 5, 6}, {2, 3, 2}, {1, 2, 1}, {1, 1, 2}, {1, 0, 1}, {0, 1, 1}},
    {"one_place", 2, 1, 2, 3, 4, {5, 7, 0}, {5, 7, 0}, {0x7FFFFFFF, 0x7FFFFFFF, 1}, kOne, kNone, kNone},
    {"one_place_and_rest", 2, 1, 2, 3, 4, {4, 5, 0}, {3, 2, 0}, {2, 7, 1}, kOne, kNone, {0, 1, 0}},
    {"deep", 2, 1, 1, 33, 17, {8, 8, 0}, {3, 3, 0}, kOne, kOne, {1, 1, 0}, {1, 1, 0}},
    {"wide_kernel", 2, 1, 2, 3, 4, {3, 2, 0}, {5, 4, 0}, kOne, kOne, {2, 1, 0}, {1, 2, 0}},
    {"wide_dilation", 2, 1, 2, 3, 4, {3, 4, 0}, {2, 3, 0}, {1, 2, 1}, {4, 3, 1}, {2, 2, 0}, {1, 1, 0}},
    {"no_images", 2, 1, 0, 3, 4, {5, 6, 0}, {3, 3, 0}, kOne, kOne, {1, 1, 0}, {1, 1, 0}},
    {"no_channels", 2, 1, 2, 0, 4, {5, 6, 0}, {3, 3, 0}, kOne, kOne, {1, 1, 0}, {1, 1, 0}},
    {"no_results", 2, 1, 2, 3, 0, {5, 6, 0}, {3, 3, 0}, kOne, kOne, {1, 1, 0}, {1, 1, 0}},
    {"empty_image", 2, 1, 2, 3, 4, {0, 5, 0}, {2, 3, 0}, kOne, kOne, {1, 1, 0}, {2, 1, 0}},
    {"only_padding",
     2,
     1,
     2,
     3,
     4,
     {3, 5, 0},
     {2, 2, 0},
     kOne,
     kOne,
     {3, 2, 0},
     {2, 4, 0}},  // some windows contain only padding
    {"only_padding_apart", 3, 1, 1, 2, 2, {2, 3, 2}, {2, 2, 1}, {2, 1, 3}, {3, 1, 1}, {4, 0, 3}, {5, 3, 3}},
    {"batch", 2, 1, 19, 5, 18, {6, 5, 0}, {3, 2, 0}, {1, 2, 1}, kOne, {1, 2, 0}, {2, 1, 0}},
    {"batch_dilated", 2, 1, 9, 2, 33, {5, 6, 0}, {2, 3, 0}, {2, 1, 1}, {3, 2, 1}, {0, 3, 0}, {1, 2, 0}},
    {"pointwise_plane", 2, 1, 2, 6, 9, {15, 19, 0}, {1, 1, 0}, kOne, kOne, kNone, kNone},
};

}  // namespace

const std::span<const WindowProblem> kWindowProblems = kAll;

int64_t WindowProblem::result(size_t d) const {
  return (image[d] + pad_begin[d] + pad_end[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1;
}

bool is_empty(const WindowProblem& s) {
  return s.batches == 0 || s.in_channels == 0 || s.out_channels == 0 || s.image[0] == 0;
}

std::vector<int64_t> image_shape(const WindowProblem& s, int64_t channels) {
  std::vector<int64_t> shape = {s.batches, channels};
  for (uint32_t d = 0; d < s.rank; ++d) shape.push_back(s.image[d]);
  return shape;
}

std::vector<int64_t> result_shape(const WindowProblem& s, int64_t channels) {
  std::vector<int64_t> shape = {s.batches, channels};
  for (uint32_t d = 0; d < s.rank; ++d) shape.push_back(s.result(d));
  return shape;
}

std::array<int64_t, 3> used(const WindowProblem& s, const std::array<int64_t, 3>& values) {
  std::array<int64_t, 3> picked{};
  std::copy_n(values.begin(), s.rank, picked.begin());
  return picked;
}

}  // namespace backplane::conformance::numeric
