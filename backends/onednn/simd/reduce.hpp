// SPDX-License-Identifier: Apache-2.0
// Vectorised kernels of reduce_sum, reduce_max and reduce_min for f32, f16 and bf16. They reduce in
// two stages: blocks in vectors of f32, and then the results of blocks in f64.
#pragma once

#include <cstdint>

namespace backplane::onednn {

struct ReduceKernels {
  // Returns the reduction of `total` and `count` contiguous elements.
  double (*row)(double total, const void* x, int64_t count);
  // Reduces element k of each of `rows` rows, and totals[k], into totals[k]. Rows are `stride` bytes apart.
  void (*columns)(double* totals, const void* x, int64_t stride, int64_t rows, int64_t columns);
  // Combines the partial result others[k] into totals[k].
  void (*combine)(double* totals, const double* others, int64_t columns);
  double start;  // the result of a reduction without elements
};

// Returns the kernels that are compiled for this processor. The pointers are null if only
// the plain kernel supports the operator and dtype.
ReduceKernels reduce_kernels(uint32_t op, uint32_t dtype);

}  // namespace backplane::onednn
