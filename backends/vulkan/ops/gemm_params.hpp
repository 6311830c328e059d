// SPDX-License-Identifier: Apache-2.0
// What a product is told. shaders/gemm.glsl says what a product is.
#pragma once

#include "ops/kernels.hpp"

namespace backplane::vulkan {

struct Matrices {
  uint64_t address;  // of the first
  int64_t strides[BP_MAX_RANK];
};

// Mirrors shaders/gemm.glsl. Strides are in bytes.
struct ProductParams {
  static constexpr uint32_t kPartial = 1, kContinue = 2, kBias = 4, kAlong = 8;  // flags

  uint32_t rows, columns, depth, segments;
  uint32_t matrices, matrix_rank;
  uint32_t matrix_shape[BP_MAX_RANK];
  uint32_t depth_part, segment_part;
  uint32_t depth_parts;
  uint32_t first_part, parts;
  uint32_t flags;
  int32_t depth_step;
  uint32_t first_matrix, first_column;
  uint32_t all_rows;
  Matrices to, a, b, bias;
  int64_t out_row, out_column, a_row, a_depth, b_depth, b_column, bias_row, bias_column;
  uint64_t partial;
  uint64_t immediates[7];
  uint32_t column_shape[4], segment_shape[4];
  int32_t column_step[4], segment_step[4], offset[4], extent[4];
  int64_t out_columns[4], image[4], a_segments[4];
  int64_t b_segment;
  int32_t stride[4], gcd[4], period[4], inverse[4], kernel[4], places[4];
  int64_t a_block, b_block, b_byte;
  uint32_t all_depth, padding;
  uint64_t scale, zero;
  int64_t scale_column, scale_block, zero_column, zero_block;
  uint64_t a_scale, a_zero;
  int64_t a_scale_row, a_zero_row;

  int64_t sums() const { return int64_t{rows} * columns * matrices; }
};
static_assert(sizeof(ProductParams) == 920);

// Strides of a view in bytes; those of an immediate are 0.
struct Strides {
  explicit Strides(const View& view);
  int64_t operator[](uint32_t axis) const { return bytes[axis]; }
  int64_t bytes[BP_MAX_RANK] = {};
};

// Rows, columns and the batch of `out`: its dimensions before the last two, or before the last where it is a row.
void describe_batch(const View& out, const Strides& to, const Strides& a, ProductParams& params);
// The last dimension of the batch joins the rows where b is the same for all of it, and rows go on at one stride.
void join_rows(ProductParams& params);

}  // namespace backplane::vulkan
