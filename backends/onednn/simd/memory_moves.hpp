// SPDX-License-Identifier: Apache-2.0
// Copies without arithmetic: non-temporal copies and small transposes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace backplane::onednn {

struct MemoryMoves {
  // Copies with non-temporal stores. Other threads may see the old bytes until the caller has
  // executed a store fence.
  void (*stream)(const std::byte* from, std::byte* to, int64_t bytes);
  // Transposes columns to lines: stores word l of the column at from + i * stride in to[l * pitch + i], for i <
  // columns and l < lines. `stride` is in bytes, `pitch` in words. The array index is the base-2 logarithm of
  // the word's size in bytes.
  void (*transpose[4])(const std::byte* from, int64_t stride, std::byte* to, int64_t pitch, int64_t columns,
                       int64_t lines);
  // Like transpose, but processes squares of whole vectors. This is faster if `to` is the output itself and not
  // a buffer in the first-level cache. The array index is the same; there is no function for words of 1 byte.
  void (*transpose_squares[4])(const std::byte* from, int64_t stride, std::byte* to, int64_t pitch, int64_t columns,
                               int64_t lines);
  // Like transpose_squares, but with non-temporal stores. Does nothing and returns false if the target's
  // vectors are too small. Also returns false if `to`, `pitch`, `columns` or `lines` is not a multiple of a
  // cache line.
  bool (*stream_transposed[4])(const std::byte* from, int64_t stride, std::byte* to, int64_t pitch, int64_t columns,
                               int64_t lines);
  // Copies `rows` rows of `bytes` bytes. `from_stride` and `to_stride` are the distances between rows in bytes.
  void (*rows)(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t bytes,
               int64_t rows);
};

// Returns the functions that are compiled for this processor.
const MemoryMoves& memory_moves();

}  // namespace backplane::onednn
