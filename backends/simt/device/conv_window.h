// SPDX-License-Identifier: Apache-2.0
// The GEMMs of convolutions: the positions of terms and columns in the image, and the storing of results. ConvParams
// defines columns, terms, phases and taps.
#pragma once
#include "activation.h"
#include "nest.h"

SIMT_FN float value_at(Pointer base, const ConvParams& p, int operand, i64 at) {
  const bool immediate = (p.immediate >> operand & 1u) != 0;
  return SIMT_T::value(immediate ? (SIMT_T::Bits)p.immediates[operand]
                                 : at_offset<SIMT_T::Bits>(base, p.offsets[operand])[at]);
}

struct Index {
  u32 at[4];
};
SIMT_FN Index index_of(const DivisorParams* shape, u32 x) {
  Index out;
  SIMT_UNROLL for (int d = 3; d > 0; --d) {
    const u32 quotient = (u32)((u64)x * shape[d].multiplier >> shape[d].shift);
    out.at[d] = x - quotient * shape[d].divisor;
    x = quotient;
  }
  out.at[0] = x;
  return out;
}

// One GEMM, which computes one phase of one group of channels.
struct Matrix {
  i64 c, a, b, bias;  // positions, in elements
  i32 first[4];       // the first position in c that belongs to the phase
  i32 tap[4];         // the first tap (element of the convolution kernel) of the phase
  i32 origin[4];      // the position in the image for column 0 and the first tap
};
SIMT_FN Matrix matrix_of(const ConvParams& p, u32 index) {
  Matrix out;
  out.c = out.a = out.b = 0;
  SIMT_UNROLL for (int d = 3; d > 0; --d) {
    const u32 quotient = p.phases[d] == 1 ? index : index / p.phases[d];
    out.first[d] = (i32)(index - quotient * p.phases[d]);
    index = quotient;
    out.tap[d] = 0;
    out.origin[d] = p.origin[d];
    if (p.stride[d] != 1) {  // avoids divisions, because CPUs have no vector instruction for integer division
      // The first tap solves tap * dilation = x modulo the stride.
      const i32 x = out.first[d] + p.origin[d], common = p.common[d];
      const u32 period = (u32)p.period[d];
      const bool exists = x % common == 0;
      out.tap[d] = exists ? (i32)((u64)((u32)(x / common) % period) * (u32)p.inverse[d] % period) : p.taps[d];
      out.origin[d] = exists ? (i32)((x + (i64)p.depth_step[d] * common * out.tap[d]) / p.stride[d]) : 0;
    }
    out.c += p.c_positions[d] * out.first[d];
    out.a += p.a_taps[d] * out.tap[d];
    out.b += p.image[d] * out.origin[d];
  }
  out.c += p.group_strides[0] * index;
  out.a += p.group_strides[1] * index;
  out.b += p.group_strides[2] * index;
  out.bias = p.group_strides[3] * index;
  return out;
}

// A position in b, and coordinates in its image. An element of b has the sum of its column's Window
// and its term's Window.
struct Window {
  i64 at;
  i32 position[3];
};
SIMT_FN Window window_of(const ConvParams& p, Index index, const i32* step, i64 first_stride) {
  Window out;
  out.at = first_stride * index.at[0];
  SIMT_UNROLL for (int d = 1; d < 4; ++d) {
    out.position[d - 1] = step[d] * (i32)index.at[d];
    out.at += p.image[d] * out.position[d - 1];
  }
  return out;
}
SIMT_FN Window column_of(const ConvParams& p, Matrix matrix, Index index) {
  Window out = window_of(p, index, p.column_step, p.b_column);
  out.at += matrix.b;
  SIMT_UNROLL for (int d = 1; d < 4; ++d) out.position[d - 1] += matrix.origin[d];
  return out;
}
SIMT_FN bool is_inside(const ConvParams& p, Window column, Window term) {
  bool inside = true;
  SIMT_UNROLL for (int d = 1; d < 4; ++d) {
    inside &= (u32)(column.position[d - 1] + term.position[d - 1]) < (u32)p.extent[d];
  }
  return inside;
}
// Returns whether the tap of a term exists. All phases have the same number of terms, but some phases
// have fewer taps.
SIMT_FN bool is_tap(const ConvParams& p, Matrix matrix, Index term) {
  bool exists = true;
  SIMT_UNROLL for (int d = 1; d < 4; ++d) exists &= matrix.tap[d] + p.period[d] * (i32)term.at[d] < p.taps[d];
  return exists;
}

// Returns the position of c[row, column].
SIMT_FN i64 position_of(const ConvParams& p, Matrix matrix, u32 row, Index column) {
  i64 at = matrix.c + p.row_strides[0] * row;
  SIMT_UNROLL for (int d = 0; d < 4; ++d) at += p.c_columns[d] * column.at[d];
  return at;
}
// Returns whether the column is inside c. All phases have the same number of columns, but some phases
// have fewer positions in c.
SIMT_FN bool has_column(const ConvParams& p, Matrix matrix, Index column) {
  bool has = true;
  SIMT_UNROLL for (int d = 1; d < 4; ++d) has &= matrix.first[d] + p.stride[d] * (i64)column.at[d] < p.c_extent[d];
  return has;
}
// Returns the bias of a row. There must be a bias.
SIMT_FN float row_bias(const ConvParams& p, Pointer bias, Matrix matrix, u32 row) {
  const i64 bias_at = matrix.bias + p.row_strides[3] * row;
  if (p.bias_bytes == SIMT_T_BITS / 8) return value_at(bias, p, 3, bias_at);
  const bool immediate = (p.immediate >> 3 & 1u) != 0;
  return float_of_bits(immediate ? (u32)p.immediates[3] : at_offset<u32>(bias, p.offsets[3])[bias_at]);
}
// Adds the bias of a row, and applies the activation.
SIMT_FN SIMT_T::Bits result_of(const ConvParams& p, Pointer bias, Matrix matrix, u32 row, float sum) {
  if (p.bias_bytes != 0) sum += row_bias(p, bias, matrix, row);
  return SIMT_T::bits(activated(sum, p.activation));
}
// Stores the result for `sum` in c[row, column], or nothing if c does not have this column.
SIMT_FN void put(const ConvParams& p, Pointer c, Pointer bias, Matrix matrix, u32 row, Index column, float sum) {
  if (!has_column(p, matrix, column)) return;
  at_offset<SIMT_T::Bits>(c, p.offsets[0])[position_of(p, matrix, row, column)] = result_of(p, bias, matrix, row, sum);
}
SIMT_FN SIMT_GLOBAL float* partial_of(const ConvParams& p, Pointer partials, u32 split, u32 matrix, u32 row) {
  return at_offset<float>(partials, p.offsets[4]) + (((u64)split * p.matrices + matrix) * p.rows + row) * p.columns;
}
