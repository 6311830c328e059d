// SPDX-License-Identifier: Apache-2.0
// Native composites of ABI 0.3 that frameworks need, without a defect or with one defect: gemm.
#include <cmath>

#include "composites.hpp"

namespace backplane::conformance::mutants {
namespace {

enum class GemmFlaw { kNone, kReadsUnusedC, kAlphaScalesC, kResultOfData };

// Operands: a[..,M,K], b[..,K,N], [c[..,M,N]] -> y[..,M,N]
template <GemmFlaw kFlaw>
void gemm(const Call& call) {
  const Values a(call.in(0)), b(call.in(1)), c(call, 2);
  Values y(call.out());
  const double alpha = call.scalar<float>(0), beta = call.scalar<float>(1);
  const uint32_t rank = call.in(0).rank;
  const int64_t rows = call.in(0).shape[rank - 2], depth = call.in(0).shape[rank - 1];
  const int64_t cols = call.in(1).shape[rank - 1];
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t row = i / cols, matrix = row / rows;
    double sum = 0;
    for (int64_t k = 0; k < depth; ++k) sum += a[row * depth + k] * b[(matrix * depth + k) * cols + i % cols];
    const bool used = beta != 0 || kFlaw == GemmFlaw::kReadsUnusedC;
    const double added = used ? beta * c.or_else(i, 0) : 0;
    y[i] = kFlaw == GemmFlaw::kAlphaScalesC ? alpha * (sum + added) : alpha * sum + added;
    if constexpr (kFlaw == GemmFlaw::kResultOfData) {
      std::byte rounded[sizeof(double)];
      put(call.in(0).dtype, rounded, y[i]);
      y[i] = get(call.in(0).dtype, rounded);
    }
  }
  y.store();
}

// Adds a gemm for all dtypes, with 16-bit and f32 results of 16-bit operands.
void add_gemm(Kernels& kernels, Kernel run) {
  add_native(kernels, BP_OP_GEMM, run);
  for (const uint32_t half : {BP_F16, BP_BF16})
    kernels.add(BP_OP_GEMM, half, BP_F32, KernelSpec{.run = run, .mixed = UINT32_MAX});
}
template <GemmFlaw kFlaw>
constexpr Mutation flawed_gemm() {
  return {.kernels = [](Kernels& kernels) { add_gemm(kernels, gemm<kFlaw>); }};
}

}  // namespace

void add_honest_frameworks(Kernels& kernels) { add_gemm(kernels, gemm<GemmFlaw::kNone>); }

const Mutation defect::gemm_reads_unused_c = flawed_gemm<GemmFlaw::kReadsUnusedC>();
const Mutation defect::gemm_alpha_scales_c = flawed_gemm<GemmFlaw::kAlphaScalesC>();
const Mutation defect::gemm_result_of_data = flawed_gemm<GemmFlaw::kResultOfData>();

}  // namespace backplane::conformance::mutants
