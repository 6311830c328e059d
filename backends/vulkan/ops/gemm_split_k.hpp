// SPDX-License-Identifier: Apache-2.0
// Divides large GEMMs by split-K and into slices of the output, because dispatches, the scratch
// buffer and the loops of threads have limits.
#pragma once

#include "ops/gemm_params.hpp"

namespace backplane::vulkan {

// The number of partial sums that fit into the scratch buffer.
inline constexpr int64_t kMaxPartialSums = static_cast<int64_t>(Stream::kScratchBytes / sizeof(float));

// Exclusive upper limit for the number of matrices, rows, columns and terms of a sum. In a partial
// tile, the kernels' 32-bit indices may exceed such a number by up to 127.
inline constexpr int64_t kMaxCount = (int64_t{1} << 31) - 128;

// Divides each sum into about `wanted` splits, or into more splits if a thread would run too long.
// Writes the sizes of splits to `params` and returns the number of splits.
int64_t choose_split_k(GemmParams& params, int64_t wanted);

// Returns the number of operations per output element, over all splits.
inline double operations_per_output(const GemmParams& params) { return 2.0 * params.depth * params.segments; }

// The part of the output that one dispatch computes: whole matrices, rows of one matrix, or columns
// of some rows.
struct DispatchExtent {
  int64_t matrices, rows, columns;
};
// Returns the largest extent for which one split has at most `operations` operations. Tiles are not divided, so an
// extent of a single tile may have more operations. With split-K, the partial sums of the extent also fit into the
// scratch buffer.
DispatchExtent dispatch_extent(const GemmParams& params, int64_t splits, double operations);

// Returns the parameters of a slice that begins at `matrix`, `row` and `column` and has at most the
// size `extent`.
GemmParams slice_of(const GemmParams& params, const DispatchExtent& extent, int64_t matrix, int64_t row,
                    int64_t column);

// Both functions return UNSUPPORTED if there are kMaxCount or more matrices, rows, columns or terms
// of a sum. The first function checks a descriptor when a plan is made. The second function checks
// each execution of the plan.
kit::Status check_index_limits(const kit::CheckedDesc& checked);
kit::Status check_index_limits(const Call& call);

}  // namespace backplane::vulkan
