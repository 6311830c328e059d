// SPDX-License-Identifier: Apache-2.0
// Sums and extrema of f32, f16 and bf16 in two stages: blocks in vectors of f32, totals of blocks in f64.
#pragma once

#include <backplane/kit/loops.hpp>

#include "ops/operators.hpp"
#include "runtime/threads.hpp"

namespace backplane::onednn {

// Totals are f64: exact for an extremum, and wide enough for a sum.
struct Reduction {
  // total and `count` contiguous elements
  double (*row)(double total, const void* x, int64_t count);
  // totals[k] and element k of each of `rows` rows, which are `stride` bytes apart
  void (*columns)(double* totals, const void* x, int64_t stride, int64_t rows, int64_t columns);
  // totals[k] of two parts
  void (*join)(double* totals, const double* others, int64_t columns);
  double start;
};

// One file, compiled once a vector target; row is null where there is nothing better than the plain kernel.
Reduction reduction(uint32_t op, uint32_t dtype);

}  // namespace backplane::onednn
