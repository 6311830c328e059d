// SPDX-License-Identifier: Apache-2.0
// Copies elements that have SIMT_T::kBits bits. A fill is a copy of one value.
#include "nest.h"

struct Copy {
  typedef SIMT_T::Bits Out;
  typedef SIMT_T::Bits In;
  SIMT_FN static Out apply(In x, u32) { return x; }
};
SIMT_MAP1(copy, Copy)

// Copies a matrix whose rows are contiguous in `out` and whose columns are contiguous in `a`. A
// group transposes tiles of SIMT_TILE * SIMT_TILE elements in local memory. The last two dimensions
// are the matrix. p.count is the number of tiles.
#define SIMT_TILE 32
SIMT_KERNEL(copy_transpose)(Pointer out, Pointer a, NestParams p) {
  typedef SIMT_T::Bits Bits;
  SIMT_SHARED(Bits, tile, SIMT_TILE * (SIMT_TILE + 1));
  const u32 rows = p.shape[p.rank - 2], columns = p.shape[p.rank - 1];
  const u32 across = (columns + SIMT_TILE - 1) / SIMT_TILE, down = (rows + SIMT_TILE - 1) / SIMT_TILE;
  for (u32 t = group_id(); t < p.count; t += group_count()) {
    u32 rest = t / across;
    const u32 column = (t - rest * across) * SIMT_TILE;
    const u32 band = rest / down, row = (rest - band * down) * SIMT_TILE;
    i64 to = 0, from = 0;
    rest = band;
    for (u32 d = p.rank - 2; d-- > 0;) {
      const u32 quotient = rest / p.shape[d], coordinate = rest - quotient * p.shape[d];
      rest = quotient;
      to += p.strides[0][d] * coordinate;
      from += p.strides[1][d] * coordinate;
    }
    to += p.strides[0][p.rank - 2] * row + column;
    from += p.strides[1][p.rank - 1] * column + row;
    SIMT_GLOBAL Bits* target = at_offset<Bits>(out, p.offsets[0]) + to;
    SIMT_GLOBAL const Bits* source = at_offset<Bits>(a, p.offsets[1]) + from;
    for (u32 i = local_id(); i < SIMT_TILE * SIMT_TILE; i += group_size()) {
      const u32 c = i / SIMT_TILE, r = i % SIMT_TILE;
      if (row + r < rows && column + c < columns)
        tile[r * (SIMT_TILE + 1) + c] = source[p.strides[1][p.rank - 1] * c + r];
    }
    group_barrier();
    for (u32 i = local_id(); i < SIMT_TILE * SIMT_TILE; i += group_size()) {
      const u32 r = i / SIMT_TILE, c = i % SIMT_TILE;
      if (row + r < rows && column + c < columns)
        target[p.strides[0][p.rank - 2] * r + c] = tile[r * (SIMT_TILE + 1) + c];
    }
    group_barrier();
  }
}
