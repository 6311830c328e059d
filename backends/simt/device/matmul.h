// SPDX-License-Identifier: Apache-2.0
// The kernels of matmul and linear.
#include "activation.h"
#include "gemm.h"

struct MatrixProduct {
  typedef GemmParams Params;
  typedef SIMT_T A;
#if SIMT_IS_FLOAT
  typedef SIMT_T B;
#else
  typedef I8 B;
#endif
  SIMT_FN static const GemmParams& gemm(const Params& p) { return p; }
  SIMT_FN static bool transposed_b(const Params& p) { return p.row_strides[2] == 1 && p.column_strides[2] != 1; }
  SIMT_FN static void load_a(const Params& p, const GemmPointers& at, const Tile& tile, u32 k, u32 tile_rows, bool by_k,
                             SIMT_LOCAL Number* to) {
    load_matrix_a<A>(p, at.a, tile, k, tile_rows, by_k, to);
  }
  SIMT_FN static void load_b(const Params& p, const GemmPointers& at, const Tile& tile, u32 k, u32 tile_columns,
                             u32 pitch, SIMT_LOCAL Number* to) {
    load_matrix_b<B>(p, at.b, tile, k, tile_columns, pitch, to);
  }
  SIMT_FN static void finish(const Params& p, const GemmPointers& at, const Tile& tile, u32 row, u32 column, u32 offset,
                             bool inside, Number sum) {
    const i64 stride = p.column_strides[0];
    Pointer line = at.c + p.offsets[0] + (tile.c + p.row_strides[0] * row + stride * column) * p.out_bytes;
#if SIMT_IS_FLOAT
    if (p.bias_bytes != 0) sum += bias_at(p, at.bias, inside ? (i64)column + offset : 0);
    sum = activated(sum, p.activation);
    if (p.out_bytes == 2) {
      put_bits<u16>(line, stride, offset, inside, (u16)SIMT_T::bits(sum));
      return;
    }
#endif
    put_bits<u32>(line, stride, offset, inside, number_bits(sum));
  }
};

#define MATMUL_OPERANDS Pointer c, Pointer a, Pointer b, Pointer bias, GemmParams p
#define MATMUL_POINTERS const GemmPointers at = {c, a, b, bias, {}}

SIMT_KERNEL(matmul_tiles)(MATMUL_OPERANDS) {
  SIMT_SHARED(Number, tiles, GEMM_LOCAL);
  MATMUL_POINTERS;
  gemm_by_tiles<MatrixProduct>(p, at, tiles);
}
SIMT_KERNEL(matmul_rows)(MATMUL_OPERANDS) {
  SIMT_SHARED(Number, results, GEMM_OUTPUTS * GEMM_MAX_GROUP);
  MATMUL_POINTERS;
  if (p.rows == 1) {
    gemm_by_rows<MatrixProduct, 1>(p, at, results);
  } else {
    gemm_by_rows<MatrixProduct, 8>(p, at, results);
  }
}
SIMT_KERNEL(matmul_dots)(MATMUL_OPERANDS) {
  MATMUL_POINTERS;
  if (p.rows == 1) {
    gemm_by_dots<MatrixProduct, 1, 8>(p, at);
  } else {
    gemm_by_dots<MatrixProduct, 4, 4>(p, at);
  }
}
SIMT_KERNEL(matmul_combine)(MATMUL_OPERANDS) {
  MATMUL_POINTERS;
  gemm_combine<MatrixProduct>(p, at);
}
