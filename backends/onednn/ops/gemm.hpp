// SPDX-License-Identifier: Apache-2.0
// GEMM of any size, any strides and any dtype below f64, by kernels of the plugin's own. It serves
// plans for any size.
#pragma once

#include <backplane/kit/call.hpp>

#include "simd/vector_kernel.hpp"

namespace backplane::onednn {

// Multiplications in oneDNN that repay waking a team: about 0.1 ms.
inline constexpr int64_t kTeamWork = int64_t{1} << 24;

// Applied to the accumulators before they are stored.
struct Epilogue {
  const kit::View* bias = nullptr;    // contiguous, of the output's dtype; null for none
  VectorKernel activation = nullptr;  // from f32 to the output's dtype; null for none
};

bool gemm_supports(uint32_t dtype);
// out = a * b for views of equal rank, at least 2, batch dimensions first. Uses a bounded part of
// `scratch`.
void gemm(const kit::View& a, const kit::View& b, const kit::View& out, const Epilogue& epilogue,
          kit::Scratch& scratch);

}  // namespace backplane::onednn
