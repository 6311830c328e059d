// SPDX-License-Identifier: Apache-2.0
// How a product is divided that is too much for a dispatch, for the scratch memory, or for a thread.
#pragma once

#include "ops/gemm_params.hpp"

namespace backplane::vulkan {

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

inline constexpr int64_t kRoomForSums = static_cast<int64_t>(Stream::kScratchBytes / sizeof(float));  // of parts

// Matrices, rows, columns and terms of a sum are fewer: kernels count them in 32 bits, and step past their end by less than this leaves.
inline constexpr int64_t kMostCount = (int64_t{1} << 31) - 128;

// Divides each sum into about `wanted` parts, and more where a thread would run too long; -> how many.
int64_t divide_depth(ProductParams& params, int64_t wanted);

// Operations of one sum, of all its parts.
inline double operations_of_sum(const ProductParams& params) { return 2.0 * params.depth * params.segments; }

// As much of a product as one dispatch takes: whole matrices, or rows of one, or columns of some rows.
struct Extent {
  int64_t matrices, rows, columns;
};
// `operations`: that a dispatch may do. Where there are several parts, their sums have room in the scratch memory.
Extent extent_in_time(const ProductParams& params, int64_t parts, double operations);

// What begins at matrix, row and column, up to `extent`.
ProductParams part_of(const ProductParams& params, const Extent& extent, int64_t matrix, int64_t row, int64_t column);

// UNSUPPORTED where there are more matrices, rows, columns or terms of a sum than kernels count, which do so in 32 bits. A plan is
// not made for such a descriptor; one for any size, made for another, refuses it when it is executed.
kit::Status check_counts(const kit::CheckedDesc& checked);
kit::Status check_counts(const Call& call);

}  // namespace backplane::vulkan
