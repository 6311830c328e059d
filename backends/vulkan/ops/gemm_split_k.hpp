// SPDX-License-Identifier: Apache-2.0
// How a GEMM is divided that exceeds a dispatch, the scratch buffer or a thread: split-K, and
// slices of the output.
#pragma once

#include "ops/gemm_params.hpp"

namespace backplane::vulkan {

// Partial sums that the scratch buffer holds.
inline constexpr int64_t kMaxPartialSums = static_cast<int64_t>(Stream::kScratchBytes / sizeof(float));

// Upper limit (exclusive) of matrices, rows, columns and terms of a sum. Kernels index them in 32
// bits, and step past their end by less than the 128 that remain.
inline constexpr int64_t kMaxCount = (int64_t{1} << 31) - 128;

// Splits each sum into about `wanted` parts, or more if a thread would run too long. Returns how
// many.
int64_t choose_split_k(GemmParams& params, int64_t wanted);

// Operations of one output element, over all its splits.
inline double operations_per_output(const GemmParams& params) { return 2.0 * params.depth * params.segments; }

// The output of one dispatch: whole matrices, rows of one matrix, or columns of some rows.
struct DispatchExtent {
  int64_t matrices, rows, columns;
};
// `operations`: what a dispatch may do. With split-K the partial sums fit the scratch buffer.
DispatchExtent dispatch_extent(const GemmParams& params, int64_t splits, double operations);

// The slice that begins at matrix, row and column, of at most `extent`.
GemmParams slice_of(const GemmParams& params, const DispatchExtent& extent, int64_t matrix, int64_t row,
                    int64_t column);

// UNSUPPORTED if there are kMaxCount or more matrices, rows, columns or terms of a sum. Checked
// when a plan is made, and again when an any-size plan is executed.
kit::Status check_index_limits(const kit::CheckedDesc& checked);
kit::Status check_index_limits(const Call& call);

}  // namespace backplane::vulkan
