// SPDX-License-Identifier: Apache-2.0
// The parameters of attention with matrix units, which host and kernels share. Include device/attention_params.h
// before this file.
#pragma once

#define ATTENTION_MMA_THREADS 128  // threads per group
// A warp of a tile has one or two fragments of 16 rows.
#define ATTENTION_MMA_ROWS(fragments) (64 * (fragments))  // rows per tile

// Shared memory contains the keys and values of two steps or, if `depth` is 128, of one step. The kernel for 128
// elements with two fragments has steps of fewer keys, because its results need more registers.
#define ATTENTION_MMA_KEYS(depth, fragments) ((depth) == 128 && (fragments) == 2 ? 32 : 64)  // keys per step
#define ATTENTION_MMA_STAGES(depth) ((depth) == 64 ? 2 : 1)
#define ATTENTION_MMA_BYTES(depth, fragments) \
  ((ATTENTION_MMA_ROWS(fragments) + 2 * ATTENTION_MMA_STAGES(depth) * ATTENTION_MMA_KEYS(depth, fragments)) * (depth)*2)

// The kernels for few rows, which divide the keys among groups. Each warp processes a quarter of each step's keys.
#define ATTENTION_PART_ROWS 16   // rows per tile
#define ATTENTION_PART_KEYS 64   // keys per step
#define ATTENTION_PART_STAGES 2  // steps in shared memory
#define ATTENTION_PART_BYTES(depth) \
  ((ATTENTION_PART_ROWS + 2 * ATTENTION_PART_STAGES * ATTENTION_PART_KEYS) * (depth)*2)
// The f32 numbers of each row and part in the workspace: `depth` weighted values, the greatest score, and the sum of
// weights.
#define ATTENTION_PART_NUMBERS(depth) ((depth) + 2)

// The kernels for warpgroups. Each of two warpgroups has 64 rows. Two groups run on a multiprocessor if depth is 64.
#define ATTENTION_GROUP_THREADS 256
#define ATTENTION_GROUP_ROWS 128
#define ATTENTION_GROUP_KEYS(depth) ((depth) == 64 ? 64 : 128)
#define ATTENTION_GROUP_BYTES(depth) (1024 + (ATTENTION_GROUP_ROWS + 4 * ATTENTION_GROUP_KEYS(depth)) * (depth)*2)

// The kernels whose warpgroups take turns. Each warpgroup has 64 rows, and `stages` steps of keys and values are in
// shared memory.
#define ATTENTION_TURN_THREADS(warpgroups) (128 * (warpgroups))
#define ATTENTION_TURN_ROWS(warpgroups) (64 * (warpgroups))
#define ATTENTION_TURN_BYTES(depth, warpgroups, keys, stages) \
  (1024 + (ATTENTION_TURN_ROWS(warpgroups) + 2 * (stages) * (keys)) * (depth)*2)
// Lists of arguments: warpgroups per group, keys per step, stages. Two groups of ATTENTION_TURN_64 run on a
// multiprocessor.
#define ATTENTION_TURN_64 2, 64, 4
#define ATTENTION_TURN_64_LONG 4, 64, 4
#define ATTENTION_TURN_64_MASKED 2, 128, 3
#define ATTENTION_TURN_128 2, 128, 3

// A unit is a head of q or, if the tiles of rows include several heads, all heads that share keys and values.
struct AttentionMmaParams {
  AttentionParams operands;  // `columns`, `tiles`, `column_blocks`, `items` and `contiguous` are unused
  u32 units;                 // number of units in all batches
  u32 unit_heads;            // heads of q per unit
  u32 unit_tiles;            // tiles of rows per unit
  u32 section;               // units per section; all tiles of a section run before the tiles of the next section
  u32 mask_words;            // 1 if all rows of the mask begin at multiples of 16 bytes
  u32 parts;                 // number of parts into which the keys of a tile are divided
  u32 part_steps;            // steps per part
  u32 part_depth;            // weighted values per row and part
};
static_assert(sizeof(AttentionMmaParams) == 336, "host and kernels must agree on the layout");
