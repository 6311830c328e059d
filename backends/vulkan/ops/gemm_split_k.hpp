// SPDX-License-Identifier: Apache-2.0
// Divides a GEMM that is too large for one dispatch, the scratch buffer or a thread's loop, by
// split-K and by slices of the output.
#pragma once

#include "ops/gemm_params.hpp"

namespace backplane::vulkan {

// The number of partial sums that fit the scratch buffer.
inline constexpr int64_t kMaxPartialSums = static_cast<int64_t>(Stream::kScratchBytes / sizeof(float));

// Upper limit (exclusive) of the number of matrices, rows, columns and terms of a sum. Kernels
// index them in 32 bits and may step past the end by up to 127.
inline constexpr int64_t kMaxCount = (int64_t{1} << 31) - 128;

// Splits each sum into about `wanted` parts, or more if a thread would run too long. Returns the
// number of splits.
int64_t choose_split_k(GemmParams& params, int64_t wanted);

// The number of operations for one output element, over all splits.
inline double operations_per_output(const GemmParams& params) { return 2.0 * params.depth * params.segments; }

// The output of one dispatch: whole matrices, rows of one matrix, or columns of some rows.
struct DispatchExtent {
  int64_t matrices, rows, columns;
};
// The maximum extent of a dispatch that does at most `operations` operations. With split-K, its
// partial sums also fit the scratch buffer.
DispatchExtent dispatch_extent(const GemmParams& params, int64_t splits, double operations);

// The slice of at most `extent` that begins at `matrix`, `row` and `column`.
GemmParams slice_of(const GemmParams& params, const DispatchExtent& extent, int64_t matrix, int64_t row,
                    int64_t column);

// UNSUPPORTED if there are kMaxCount or more matrices, rows, columns or terms of a sum. Called when
// a plan is made, and again when it is executed.
kit::Status check_index_limits(const kit::CheckedDesc& checked);
kit::Status check_index_limits(const Call& call);

}  // namespace backplane::vulkan
