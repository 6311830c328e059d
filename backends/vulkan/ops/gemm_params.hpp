// SPDX-License-Identifier: Apache-2.0
// The parameters of a GEMM kernel.
#pragma once

#include "ops/kernels.hpp"

namespace backplane::vulkan {

struct Matrices {
  uint64_t address;  // address of the first matrix
  int64_t strides[BP_MAX_RANK];
};

// The parameter block. The layout must match shaders/gemm.glsl, which explains the fields. Strides
// are in bytes.
struct GemmParams {
  static constexpr uint32_t kPartial = 1, kAccumulate = 2, kBias = 4, kKAlongImage = 8;  // bits of `flags`

  uint32_t rows, columns, depth, segments;
  uint32_t matrices, matrix_rank;
  uint32_t matrix_shape[BP_MAX_RANK];
  uint32_t split_depth, split_segments;
  uint32_t depth_splits;
  uint32_t first_split, splits;
  uint32_t flags;
  int32_t depth_step;
  uint32_t first_matrix, first_column;
  uint32_t all_rows;
  Matrices c, a, b, bias;
  int64_t out_row, out_column, a_row, a_depth, b_depth, b_column, bias_row, bias_column;
  uint64_t partials;
  uint64_t immediates[7];
  uint32_t column_shape[4], segment_shape[4];
  int32_t column_step[4], segment_step[4], offset[4], extent[4];
  int64_t out_columns[4], image[4], a_segments[4];
  int64_t b_segment;
  int32_t stride[4], gcd[4], period[4], inverse[4], kernel[4], out_extent[4];
  int64_t a_block, b_block, b_byte;
  uint32_t all_depth, padding;
  uint64_t scale, zero;
  int64_t scale_column, scale_block, zero_column, zero_block;
  uint64_t a_scale, a_zero;
  int64_t a_scale_row, a_zero_row;

  int64_t outputs() const { return int64_t{rows} * columns * matrices; }
};
static_assert(sizeof(GemmParams) == 920);

// The strides of a view in bytes. The strides of an immediate are 0.
struct Strides {
  explicit Strides(const View& view);
  int64_t operator[](uint32_t axis) const { return bytes[axis]; }
  int64_t bytes[BP_MAX_RANK] = {};
};

// Writes the rows, columns and batch of `out` to `params`. `to` contains the strides of `out`, and
// `a` contains the strides of operand `a`. The batch consists of all dimensions before the last two.
// If the rank is 1, there is one row and no batch.
void describe_batch(const View& out, const Strides& to, const Strides& a, GemmParams& params);
// Folds the innermost dimensions of the batch into M if `b` broadcasts over these dimensions. Folds
// a dimension only if the resulting rows of `a` and of the output are evenly spaced.
void fold_batch_into_rows(GemmParams& params);

}  // namespace backplane::vulkan
