// SPDX-License-Identifier: Apache-2.0
// Runs vector kernels on operands of any strides. Contains loops over dimensions, staging through
// buffers in the first-level cache, and division of work among threads.
#pragma once

#include <backplane/kit/kernels.hpp>

#include "simd/vector_kernel.hpp"

namespace backplane::onednn {

// The state of a plan that run_vectorised executes.
struct VectorPlan {
  VectorKernel kernel;
  int64_t grain;  // number of elements that justify waking a thread
};
// Numbers of elements that take about 0.1 ms, for cheap and for costly kernels.
inline constexpr int64_t kCheapGrain = int64_t{1} << 18, kCostlyGrain = int64_t{1} << 16;

// Outputs of at least this many bytes are written with non-temporal stores, because they would not
// stay in the caches.
inline constexpr int64_t kStreamedBytes = 32 << 20;
// Makes this thread's non-temporal stores visible to other threads.
void fence_stores();

// Creates the plan state for `kernel`. Returns null if `kernel` is null.
std::shared_ptr<const void> vector_plan(VectorKernel kernel, int64_t grain);
// Replaces the plain kernel of `op` for `dtypes` with `run`, whose plan state contains `kernel`.
// Does nothing if `kernel` is null.
void replace_kernel(kit::Kernels& kernels, uint32_t op, kit::KernelDtypes dtypes, kit::Kernel run, VectorKernel kernel,
                    int64_t grain);

// Runs a plan whose state is a VectorPlan. N is the number of operands, including the output.
template <std::size_t N>
void run_vectorised(const kit::Call& call);
extern template void run_vectorised<2>(const kit::Call&);
extern template void run_vectorised<3>(const kit::Call&);
extern template void run_vectorised<4>(const kit::Call&);

// Computes to = f(from) on dense memory, as the epilogue of a contraction. If `from` and `to` are
// the same memory, `from` has the dtype of `to`. Otherwise `from` is f32.
void run_contiguous(const VectorPlan& plan, const std::byte* from, const kit::View& to);

}  // namespace backplane::onednn
