// SPDX-License-Identifier: Apache-2.0
// The storage of a product's matrices.
#pragma once

#include <climits>
#include <optional>

#include "launcher.hpp"

namespace backplane::gpu_host {

inline std::byte* address_of(const simt::Place& place) { return place.memory->address + place.offset; }

// The storage of a matrix with contiguous rows or columns.
struct Storage {
  bool by_rows = true;  // rows are contiguous
  int64_t pitch = 0;    // elements between two rows, or between two columns
};
inline std::optional<Storage> storage_of(const simt::Matrix& matrix, uint64_t rows, uint64_t columns) {
  const auto height = static_cast<int64_t>(rows), width = static_cast<int64_t>(columns);
  if (matrix.batch_stride < 0) return std::nullopt;
  if (width == 1 || matrix.column_stride == 1) {
    const int64_t pitch = height == 1 ? width : matrix.row_stride;
    if (pitch >= width && pitch <= INT_MAX) return Storage{true, pitch};
  }
  if (height == 1 || matrix.row_stride == 1) {
    const int64_t pitch = width == 1 ? height : matrix.column_stride;
    if (pitch >= height && pitch <= INT_MAX) return Storage{false, pitch};
  }
  return std::nullopt;
}

inline simt::Matrix transposed(simt::Matrix matrix) {
  std::swap(matrix.row_stride, matrix.column_stride);
  return matrix;
}

}  // namespace backplane::gpu_host
