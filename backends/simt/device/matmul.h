// SPDX-License-Identifier: Apache-2.0
// The kernels of matmul and linear.
#include "activation.h"
#include "few_rows.h"

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

// The `Product` of gemm_by_chunks.
struct ChunkedProduct : MatrixProduct {
  enum { kChunk = 128 / B::kBits };
  typedef SIMT_GLOBAL const u8* Column;
  typedef Words Chunk;
  SIMT_FN static Number zero_of_a(const Params&, const GemmPointers&, const Tile&, u32) { return 0; }
  SIMT_FN static Column column_of(const Params& p, const GemmPointers& at, const Tile& tile, u32 column) {
    return (Column)(at_offset<typename B::Bits>(at.b, p.offsets[2]) + tile.b + p.column_strides[2] * column +
                    tile.begin);
  }
  SIMT_FN static bool is_whole(const Tile& tile, u32 chunk, Column column) {
    return tile.begin + (chunk + 1) * kChunk <= tile.end && on_boundary(column, 0);
  }
  SIMT_FN static void load_chunk(const Params&, const GemmPointers&, Column column, const Tile& tile, u32 chunk,
                                 Chunk& out) {
    if (is_whole(tile, chunk, column)) out = load_words(column + 16 * (u64)chunk);
  }
  template <int rows, int columns>
  SIMT_FN static void multiply(const Params&, const GemmPointers&, const Column* from, const Tile& tile, u32 chunk,
                               Chunk* chunks, SIMT_LOCAL const Words* x, u32 row_pitch, Number* sums) {
    const u32 k = tile.begin + chunk * kChunk;
    SIMT_UNROLL for (u32 i = 0; i < columns; ++i) {
      if (is_whole(tile, chunk, from[i])) continue;
      chunks[i] = load_units<typename B::Bits>(from[i] + 16 * (u64)chunk, smaller(tile.end - k, (u32)kChunk));
    }
    SIMT_UNROLL_LONG for (u32 q = 0; q < kChunk / 4; ++q) {
      SIMT_UNROLL for (u32 r = 0; r < rows; ++r) {
        const Words quad = load_local(x + r * row_pitch + q);
        SIMT_UNROLL for (u32 i = 0; i < columns; ++i) {
          SIMT_UNROLL for (u32 j = 0; j < 4; ++j) {
            const Number y = B::value(bits_in<B>(chunks[i], 4 * q + j));
            sums[i * rows + r] = multiply_to(number_of_bits(quad.at[j]), y, sums[i * rows + r]);
          }
        }
      }
    }
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
#if SIMT_IS_FLOAT
SIMT_KERNEL(matmul_chunks_one)(MATMUL_OPERANDS) {
  SIMT_SHARED(Words, rows_of_a, FEW_LOCAL);
  MATMUL_POINTERS;
  gemm_by_chunks<ChunkedProduct, 1>(p, at, rows_of_a);
}
SIMT_KERNEL(matmul_chunks)(MATMUL_OPERANDS) {
  SIMT_SHARED(Words, rows_of_a, FEW_LOCAL);
  MATMUL_POINTERS;
  if (p.rows <= 4) {
    gemm_by_chunks<ChunkedProduct, 4>(p, at, rows_of_a);
  } else {
    gemm_by_chunks<ChunkedProduct, 8>(p, at, rows_of_a);
  }
}
SIMT_KERNEL(matmul_packs_one)(MATMUL_OPERANDS) {
  SIMT_SHARED(Number, parts, FEW_PACK_LOCAL);
  MATMUL_POINTERS;
  gemm_by_packs<MatrixProduct, 1>(p, at, parts);
}
SIMT_KERNEL(matmul_packs)(MATMUL_OPERANDS) {
  SIMT_SHARED(Number, parts, FEW_PACK_LOCAL);
  MATMUL_POINTERS;
  gemm_by_packs<MatrixProduct, 4>(p, at, parts);
}
#endif
