// SPDX-License-Identifier: Apache-2.0
// The parameters of kernels that reduce and map rows, which host and kernels share byte for byte.
// The including file defines u32, i64 and u64.
#pragma once

// The distribution of rows over threads. A tile of threads processes one row, or one row per thread.
#define SIMT_TILE_THREADS 0   // a tile is a group, and each of its threads processes a row
#define SIMT_TILE_SUBGROUP 1  // a tile is a sub-group
#define SIMT_TILE_GROUP 2     // a tile is a group
// The phase of a launch.
#define SIMT_PHASE_WHOLE 0     // reduces rows and uses the results
#define SIMT_PHASE_PARTIALS 1  // reduces splits of rows and stores partial results
#define SIMT_PHASE_COMBINE 2   // combines the partial results of each row and uses the results

// The arrangement of the elements that the threads of a tile access at once. Main operands have one
// element per thread. Shared operands may have one element for all threads.
#define SIMT_ACCESS_ANY 0     // elements with any strides
#define SIMT_ACCESS_ALONG 1   // consecutive elements of all operands
#define SIMT_ACCESS_ACROSS 2  // consecutive elements of main operands, and one element of shared operands

#define SIMT_TILE_RANK 9
// Rows that operators reduce and then map. In `shape` and `strides`, the dimensions that enumerate blocks come first,
// and the dimensions that enumerate segments follow. A block is a row or, with SIMT_TILE_THREADS, one row per thread. A
// segment is a part of a row whose elements have constant strides. Segments consist of chunks, and a split is a range
// of chunks. Places are the entries of `offsets`: one for each operand, then those of other memory that the kernel
// defines, and the last for the partial results.
template <int Places, int Operands>
struct TileParams {
  u64 offsets[Places];
  i64 strides[Operands][SIMT_TILE_RANK];
  i64 steps[Operands];         // strides along a segment
  i64 lane_strides[Operands];  // strides between the threads of a tile
  i64 extra[6];                // numbers whose meaning the kernel defines
  u32 shape[SIMT_TILE_RANK];
  u32 block_rank, segment_rank;
  u32 blocks;
  u32 lanes;                  // extent of the last dimension that enumerates rows, with SIMT_TILE_THREADS
  u32 length;                 // elements per segment
  u32 chunk, segment_chunks;  // elements per chunk, chunks per segment
  u32 chunks, split_chunks;   // chunks per row and per split
  u32 splits, row_splits;     // splits per row in this launch, and partial results per row
  u32 tile, phase;            // SIMT_TILE_* and SIMT_PHASE_*
  u32 access;                 // SIMT_ACCESS_*
  u32 caches;                 // not 0 if local memory may hold the elements of rows
  u32 present;                // bit i is set if place i has memory
  u32 option;                 // a number whose meaning the kernel defines
  u32 bytes[Operands];        // bytes per element
  float count;                // elements per row
  float numbers[4];           // numbers whose meaning the kernel defines
};
static_assert(sizeof(TileParams<3, 2>) == 384 && sizeof(TileParams<4, 3>) == 480,
              "host and kernels must agree on the layout");

#define SIMT_TEAM_VALUES 16    // elements of a row that a thread of a team keeps in registers
#define SIMT_COLUMN_VALUES 32  // elements of interleaved rows that a thread keeps in registers
#define SIMT_TEAM_THREADS 256  // maximum number of threads per group
// Rows whose elements have constant strides in main operands. A team of threads keeps a row, or a part of it, in
// registers.
template <int Places, int Operands>
struct TeamParams {
  TileParams<Places, Operands> rows;  // `length` is the number of elements in a segment of shared operands
  u32 extent;                         // elements per row
  // Threads per row, a power of two. A team that is larger than a sub-group is a group. For interleaved rows, `team` is
  // the number of a group's threads that have different, adjacent rows.
  u32 team;
};
