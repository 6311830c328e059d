// SPDX-License-Identifier: Apache-2.0
// The CPU fallback. An overload without a kernel runs on the CPU, with copies of its tensors.
#pragma once

#include <ATen/native/CPUFallback.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace backplane_torch {

// Returns the number of fallbacks of each operator, sorted by the operator's name.
std::vector<std::pair<std::string, int64_t>> fallback_counts();
void reset_fallback_counts();
// After `forbid_fallbacks(true)`, an overload without a kernel raises NotImplementedError.
void forbid_fallbacks(bool forbidden);

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack);
// Runs an overload on the CPU. Kernels that support only some arguments use it for other arguments:
//   return OnCpu<at::_ops::pow_Tensor_Tensor_out>::call(self, exponent, out);
template <class Op>
using OnCpu = at::native::call_fallback_fn<&run_on_cpu, Op>;

}  // namespace backplane_torch
