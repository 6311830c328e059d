// SPDX-License-Identifier: Apache-2.0
// Copies elements of BYTES bytes between views that are contiguous along different dimensions. The
// output is contiguous along the last dimension, and the input along the dimension before it. Tiles
// pass through shared memory, so that both reads and writes are coalesced.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#if BYTES == 1
#define WORD uint
#define LOAD load8
#define STORE store8
#elif BYTES == 2
#define WORD uint
#define LOAD load16
#define STORE store16
#elif BYTES == 4
#define WORD uint
#define LOAD load32
#define STORE store32
#else
#define WORD uint64_t
#define LOAD load64
#define STORE store64
#endif
#define TILE uint(BACKPLANE_TRANSPOSE_TILE)

shared WORD tile[TILE][TILE + 1];  // the extra column puts the elements of a column in different banks

void main() {
  const uint last = params.rank - 1u;
  const uint columns = params.shape[last], rows = params.shape[last - 1u];
  const uint across = (columns + TILE - 1u) / TILE, down = (rows + TILE - 1u) / TILE;
  const uint tiles = params.count / (columns * rows) * across * down;
  const uint x = gl_LocalInvocationID.x % TILE, y = gl_LocalInvocationID.x / TILE;
  for (uint which = gl_WorkGroupID.x; which < tiles; which += gl_NumWorkGroups.x) {
    const uint column = which % across * TILE, row = which / across % down * TILE;
    uint remaining = which / across / down;
    uint64_t to = params.operands[0].address, from = params.operands[1].address;
    for (uint d = last - 1u; d-- > 0u;) {
      const int64_t index = int64_t(remaining % params.shape[d]);
      remaining /= params.shape[d];
      to += uint64_t(params.operands[0].strides[d] * index);
      from += uint64_t(params.operands[1].strides[d] * index);
    }
    from += uint64_t(row + x) * BYTES;
    to += uint64_t(column + x) * BYTES;
    for (uint i = y; i < TILE; i += GROUP / TILE) {
      if (row + x < rows && column + i < columns)
        tile[i][x] = LOAD(from + uint64_t(params.operands[1].strides[last] * int64_t(column + i)));
    }
    barrier();
    for (uint i = y; i < TILE; i += GROUP / TILE) {
      if (column + x < columns && row + i < rows)
        STORE(to + uint64_t(params.operands[0].strides[last - 1u] * int64_t(row + i)), tile[x][i]);
    }
    barrier();
  }
}
