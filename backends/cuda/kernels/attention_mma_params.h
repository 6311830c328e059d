// SPDX-License-Identifier: Apache-2.0
// The parameters of attention with matrix units, which host and kernels share. device/attention_params.h comes first.
#pragma once

#define ATTENTION_MMA_ROWS 128     // rows per tile
#define ATTENTION_MMA_THREADS 128  // threads per group

// The kernels for up to 64 elements per query and value have keys and values of two steps in shared memory. The kernels
// for up to 128 elements have one step of fewer keys, because their results need more registers.
#define ATTENTION_MMA_KEYS(depth) ((depth) == 64 ? 64 : 32)  // keys per step
#define ATTENTION_MMA_STAGES(depth) ((depth) == 64 ? 2 : 1)
#define ATTENTION_MMA_BYTES(depth) \
  ((ATTENTION_MMA_ROWS + 2 * ATTENTION_MMA_STAGES(depth) * ATTENTION_MMA_KEYS(depth)) * (depth)*2)

// A unit is a head of q or, if the tiles of rows include several heads, all heads that share keys and values.
struct AttentionMmaParams {
  AttentionParams operands;  // `columns`, `tiles`, `column_blocks`, `items` and `contiguous` are unused
  u32 units;                 // units of all batches
  u32 unit_heads;            // heads of q per unit
  u32 unit_tiles;            // tiles of rows per unit
  u32 section;               // units whose tiles run before those of the next units
};
static_assert(sizeof(AttentionMmaParams) == 320, "host and kernels must agree on the layout");
