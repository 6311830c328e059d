// SPDX-License-Identifier: Apache-2.0
// Vectorised kernels of argmax and argmin for f32, f16 and bf16.
#pragma once

#include <cstdint>

namespace backplane::onednn {

// Both kernels find the lowest index of the extremum. If there is a NaN, they find the index of the
// first NaN.
struct ArgKernels {
  // Searches `count` contiguous elements, at least 1.
  int32_t (*row)(const void* x, int64_t count);
  // Searches each of `columns` adjacent columns, at most kMaxColumns. Each column has `length`
  // elements, at least 1, which are `stride` bytes apart.
  void (*columns)(const void* x, int64_t stride, int64_t length, int64_t columns, int32_t* found);
  static constexpr int64_t kMaxColumns = 1024;
};

// Returns the kernels of `op` that are compiled for this processor. The pointers are null if only
// the plain kernel supports the operator and dtype.
ArgKernels arg_kernels(uint32_t op, uint32_t dtype);

}  // namespace backplane::onednn
