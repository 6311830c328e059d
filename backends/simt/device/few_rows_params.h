// SPDX-License-Identifier: Apache-2.0
// The tiles of the kernels for few rows, which host and kernels share. The including file defines u32.
#pragma once

#ifdef SIMT_FN
#define FEW_FN SIMT_FN constexpr
#else
#define FEW_FN constexpr
#endif

#define FEW_MAX_ROWS 16      // maximum rows of a product with few rows
#define FEW_LANES 8          // number of adjacent lanes that load adjacent chunks (16 bytes each) of a column of b
#define FEW_PACK_LANES 4     // number of adjacent lanes that load adjacent packs (16 bytes each) of a row of b
#define FEW_LOCAL 1920       // Words of local memory with `chunks`
#define FEW_PACK_LOCAL 1024  // numbers of local memory with `packs`

// The rows of a tile of the kernels `chunks`, and of the kernels `packs`. With `packs`, tiles have fewer rows, because
// a lane has more sums per row.
FEW_FN u32 few_chunk_rows(u32 rows) { return rows == 1 ? 1u : rows <= 4 ? 4u : 8u; }
FEW_FN u32 few_pack_rows(u32 rows) { return rows == 1 ? 1u : 4u; }
// Columns per lane with `chunks`, if a chunk has `elements` elements. A lane multiplies each number that it loads from
// local memory by one element of each column. Chunks of more elements need more registers, so a lane has fewer columns.
FEW_FN u32 few_columns(u32 elements, u32 tile_rows) { return tile_rows == 1 || elements > 8 ? 2u : 4u; }
// The chunks of a column, or the packs, that a lane loads before it multiplies them.
FEW_FN u32 few_steps(u32 tile_rows) { return tile_rows == 1 ? 2u : 1u; }
FEW_FN u32 few_packs(u32 tile_rows) { return tile_rows == 1 ? 8u : 4u; }
// The distance in local memory, in `Words`, between the numbers of a for one chunk and those for the next chunk. There
// are `elements` numbers per chunk. The pitch is odd, so that adjacent lanes use different banks.
FEW_FN u32 few_pitch(u32 elements) { return elements == 4 ? 1u : elements / 4 + 1; }
// The number of chunks for which local memory holds the numbers of a at a time.
FEW_FN u32 few_piece(u32 elements, u32 tile_rows) {
  u32 out = FEW_LANES;
  while (2 * out * few_pitch(elements) * tile_rows <= FEW_LOCAL && 2 * out * elements <= 4096) out *= 2;
  return out;
}
