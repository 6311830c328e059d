// SPDX-License-Identifier: Apache-2.0
// Loops that run vector kernels on operands of any strides. They iterate over dimensions, copy strided operands
// to buffers in the first-level cache, and divide the work among threads.
#pragma once

#include <backplane/kit/kernels.hpp>

#include "simd/vector_kernel.hpp"

namespace backplane::onednn {

// The state of a plan that run_vectorised executes.
struct VectorPlan {
  VectorKernel kernel;
  int64_t grain;  // number of elements that justify waking a thread
};
// Numbers of elements that a cheap and a costly kernel process in about 0.1 ms.
inline constexpr int64_t kCheapGrain = int64_t{1} << 18, kCostlyGrain = int64_t{1} << 16;

// Cheap kernels write outputs of at least this many bytes with non-temporal stores, because these
// outputs would not stay in the caches. Costly kernels use plain stores, which overlap with
// arithmetic and are faster in measurements.
inline constexpr int64_t kStreamedBytes = 32 << 20;
// Makes this thread's non-temporal stores visible to other threads.
void fence_stores();

// Creates the plan state for `kernel`. Returns null if `kernel` is null.
std::shared_ptr<const void> vector_plan(VectorKernel kernel, int64_t grain);
// Replaces the plain kernel of `op` for `dtypes` with `run`, and stores `kernel` in the plan's state. Does
// nothing if `kernel` is null.
void replace_kernel(kit::Kernels& kernels, uint32_t op, kit::KernelDtypes dtypes, kit::Kernel run, VectorKernel kernel,
                    int64_t grain);

// Runs a plan whose state is a VectorPlan. N is the number of operands: the output and N - 1 inputs.
template <std::size_t N>
void run_vectorised(const kit::Call& call);
extern template void run_vectorised<2>(const kit::Call&);
extern template void run_vectorised<3>(const kit::Call&);
extern template void run_vectorised<4>(const kit::Call&);

// Runs a plan on views of the same shape: views[0] is the output, the others are the inputs. A view may have
// other extents and strides than the call's operand.
template <std::size_t N>
void run_views(const VectorPlan& plan, const std::array<kit::View, N>& views);
extern template void run_views<3>(const VectorPlan&, const std::array<kit::View, 3>&);
extern template void run_views<4>(const VectorPlan&, const std::array<kit::View, 4>&);

// Computes to = f(from) on dense memory, for example the activation after a product. If `from` and `to` are the
// same memory, `from` has the dtype of `to`. Otherwise `from` is f32.
void run_contiguous(const VectorPlan& plan, const std::byte* from, const kit::View& to);

}  // namespace backplane::onednn
