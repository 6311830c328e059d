// SPDX-License-Identifier: Apache-2.0
// The kernels of matmul and linear of floats for GPUs with sub-groups of at least 32 threads. Operands a and b must be
// in memory.
#include "block.h"
#include "gemm.h"

template <int side, bool quads>
struct MatrixSource {
  Lines<SIMT_T> a;
  Lines<SIMT_T> b;
  SIMT_INLINED void load(u32 depth) {
    load_lines<quads>(a, depth);
    load_lines<quads>(b, depth);
  }
  SIMT_INLINED void put(SIMT_LOCAL Number* stage) const {
    put_lines<side, quads>(a, stage);
    put_lines<side, quads>(b, stage + Block<side>::kOperand);
  }
};

template <int side>
SIMT_INLINED void multiply_matrix(const GemmParams& p, Pointer a, Pointer b, const Tile& tile, BlockSums<side>& sums,
                                  SIMT_LOCAL NumberQuad* memory) {
  const Lines<SIMT_T> lines_a =
      lines_of<side, SIMT_T>(at_offset<SIMT_T::Bits>(a, p.offsets[1]) + tile.a + p.row_strides[1] * tile.row +
                                 p.column_strides[1] * tile.begin,
                             p.row_strides[1], p.column_strides[1], p.rows - tile.row, p.depth);
  const Lines<SIMT_T> lines_b =
      lines_of<side, SIMT_T>(at_offset<SIMT_T::Bits>(b, p.offsets[2]) + tile.b + p.row_strides[2] * tile.begin +
                                 p.column_strides[2] * tile.column,
                             p.column_strides[2], p.row_strides[2], p.columns - tile.column, p.depth);
  const u32 depth = inside(tile.begin, tile.end);
  if (lines_a.is_quad && lines_b.is_quad) {
    MatrixSource<side, true> source = {lines_a, lines_b};
    multiply_block<side>(sums, source, depth, memory);
  } else {
    MatrixSource<side, false> source = {lines_a, lines_b};
    multiply_block<side>(sums, source, depth, memory);
  }
}
template <int side>
SIMT_INLINED void store_matrix(const GemmParams& p, Pointer c, Pointer bias, const Tile& tile, BlockSums<side>& sums) {
  const u32 rows = p.rows - tile.row, columns = p.columns - tile.column;
  if (p.splits != 1u) {
    const u64 to = ((u64)tile.matrix * p.rows + tile.row) * p.columns + tile.column;
    store_block<side>(sums, at_offset<u32>(c, p.offsets[0]) + to, p.columns, 1, rows, columns);
    return;
  }
  const i64 to = tile.c + p.row_strides[0] * tile.row + p.column_strides[0] * tile.column;
  if (p.bias_bytes != 0u) {
    const u32 first = first_column<side>(opaque(local_id()));
    SIMT_UNROLL for (int i = 0; i < Block<side>::kColumns; ++i) {
      const u32 column = first + i % 4 + i / 4 * Block<side>::kHalf;
      const float own = bias_at(p, bias, tile.column + smaller(column, columns - 1u));
      SIMT_UNROLL for (int r = 0; r < BLOCK_ROWS; ++r) sums.at[r][i] += own;
    }
  }
  activate_block<side>(sums, p.activation);
  if (p.out_bytes == 2u) {
    store_block<side>(sums, at_offset<u16>(c, p.offsets[0]) + to, p.row_strides[0], p.column_strides[0], rows, columns);
    return;
  }
  store_block<side>(sums, at_offset<u32>(c, p.offsets[0]) + to, p.row_strides[0], p.column_strides[0], rows, columns);
}
template <int side>
SIMT_INLINED void multiply_matrices(const GemmParams& p, Pointer c, Pointer a, Pointer b, Pointer bias,
                                    SIMT_LOCAL NumberQuad* memory) {
  const u32 count = gemm_tiles(p, side, side);
  for (u32 index = group_id(); index < count; index += group_count()) {
    BlockSums<side> sums;
    multiply_matrix<side>(p, a, b, tile_of(p, index, side, side), sums, memory);
    // tile_of() computes the tile again, so that it does not occupy registers while the group multiplies.
    store_matrix<side>(p, c, bias, tile_of(p, opaque(index), side, side), sums);
  }
}

SIMT_SIZED_KERNEL(matmul_block128, 256, 2)(Pointer c, Pointer a, Pointer b, Pointer bias, GemmParams p) {
  SIMT_SHARED(NumberQuad, local_quads, Block<128>::kQuads);
  multiply_matrices<128>(p, c, a, b, bias, local_quads);
}
SIMT_SIZED_KERNEL(matmul_block64, 128, 4)(Pointer c, Pointer a, Pointer b, Pointer bias, GemmParams p) {
  SIMT_SHARED(NumberQuad, local_quads, Block<64>::kQuads);
  multiply_matrices<64>(p, c, a, b, bias, local_quads);
}
