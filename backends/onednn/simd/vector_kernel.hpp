// SPDX-License-Identifier: Apache-2.0
// The signature of vectorised elementwise kernels.
#pragma once

#include <cstdint>

namespace backplane::onednn {

// Computes out[i] = f(in[0][i], ...) for 0 <= i < count. All operands are contiguous, and an input
// may be the same memory as the output.
using VectorKernel = void (*)(const void* const* in, void* out, int64_t count);

}  // namespace backplane::onednn
