// SPDX-License-Identifier: Apache-2.0
// The vectorised kernel of scatter with mode ADD, for f32, f16 and bf16.
#pragma once

#include <cstddef>
#include <cstdint>

namespace backplane::onednn {

// A linked list of rows of a source. `first` is the index of the first row in the list, and next[r] is the
// index of the row after row r. For the last row, next[r] is -1.
struct RowList {
  const std::byte* source;
  int64_t stride;  // bytes from a row of the source to the next
  const int32_t* next;
  int32_t first;
};
// Adds the rows of the list to `count` contiguous elements of `to`. Sums in f64 and rounds once.
using AddRowsKernel = void (*)(const RowList& rows, void* to, int64_t count);

// Returns the kernel that is compiled for this processor, or null if there is none for the dtype.
AddRowsKernel add_rows_kernel(uint32_t dtype);

}  // namespace backplane::onednn
