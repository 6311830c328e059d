// SPDX-License-Identifier: Apache-2.0
// A GEMM for any size, any strides and every dtype except f64, by the plugin's own kernels. It
// serves any-size plans.
#pragma once

#include <backplane/kit/call.hpp>

#include "simd/vector_kernel.hpp"

namespace backplane::onednn {

// Number of multiplications in oneDNN that justifies waking a team: about 0.1 ms of work.
inline constexpr int64_t kTeamWork = int64_t{1} << 24;

// Applied to the accumulators before they are stored.
struct Epilogue {
  const kit::View* bias = nullptr;    // contiguous, with the output's dtype; null for none
  VectorKernel activation = nullptr;  // from f32 to the output's dtype; null for none
};

bool gemm_supports(uint32_t dtype);
// out = a * b. The views have the same rank, at least 2, with batch dimensions first. The use of
// `scratch` is bounded.
void gemm(const kit::View& a, const kit::View& b, const kit::View& out, const Epilogue& epilogue,
          kit::Scratch& scratch);

}  // namespace backplane::onednn
