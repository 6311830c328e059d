// SPDX-License-Identifier: Apache-2.0
// Vectorised kernels of cumsum for f32, f16 and bf16, with sums in f64.
#pragma once

#include <cstdint>

namespace backplane::onednn {

// If `exclusive` is set, result i does not include element i.
struct ScanKernels {
  // Scans `count` contiguous elements, from the last to the first if `reverse` is set.
  void (*row)(const void* x, void* y, int64_t count, bool exclusive, bool reverse);
  // Scans `columns` columns, at most kMaxColumns, which are adjacent in memory. Each column has
  // `length` elements. Strides between these elements are in bytes and may be negative.
  void (*columns)(const void* x, int64_t x_stride, void* y, int64_t y_stride, int64_t length, int64_t columns,
                  bool exclusive);
  static constexpr int64_t kMaxColumns = 4096;
};

// Returns the kernels that are compiled for this processor. The pointers are null if there are none
// for the dtype.
ScanKernels scan_kernels(uint32_t dtype);

}  // namespace backplane::onednn
