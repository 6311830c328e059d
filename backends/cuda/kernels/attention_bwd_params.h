// SPDX-License-Identifier: Apache-2.0
// The parameters of `attention_bwd` with matrix units, which host and kernels share. Include
// device/attention_params.h before this file.
#pragma once

#define ATTENTION_BWD_THREADS 128  // threads per group
#define ATTENTION_BWD_ROWS 64      // keys or queries per group, 16 per warp
// Queries or keys per step.
#define ATTENTION_BWD_STEP(depth) ((depth) == 64 ? 64 : 32)
// Bytes of shared memory. Each of the group's rows and each row of two steps has `depth` elements of two operands.
// Each row of the two steps also has two f32 numbers.
#define ATTENTION_BWD_BYTES(depth) \
  ((ATTENTION_BWD_ROWS + 2 * ATTENTION_BWD_STEP(depth)) * (depth)*4 + ATTENTION_BWD_STEP(depth) * 16)

// The kernels for warpgroups. A group has two warpgroups, each of which has 64 rows of a tile.
#define ATTENTION_BWD_GROUP_THREADS 256
#define ATTENTION_BWD_GROUP_ROWS 128
#define ATTENTION_BWD_GROUP_STEP 64
// Bytes of shared memory: 1024 for alignment, two f32 numbers for each row of two steps, and two operands for each
// row of the tile and of the two steps.
#define ATTENTION_BWD_GROUP_BYTES(depth) \
  (1024 + 4 * ATTENTION_BWD_GROUP_STEP * 4 + (2 * ATTENTION_BWD_GROUP_ROWS + 4 * ATTENTION_BWD_GROUP_STEP) * (depth)*2)

enum AttentionBwdOperand {
  kBwdDy,
  kBwdQ,
  kBwdK,
  kBwdV,
  kBwdY,
  kBwdLogsumexp,
  kBwdMask,
  kBwdDq,
  kBwdDk,
  kBwdDv,
  kBwdSums,  // the sum of dy * y over each row, in the workspace
  kBwdOperands
};
struct AttentionBwdParams {
  u64 offsets[kBwdOperands];
  AttentionStrides strides[kBwdOperands];  // the strides of the sums are unused
  u32 batches, groups, repeats;            // a group is a head of k and v; `repeats` heads of q share the group
  u32 queries, keys;
  u32 depth, value_columns;  // elements of a query, columns of v
  u32 causal;                // BP_CAUSAL_*
  u32 mask_kind;             // SIMT_MASK_*
  u32 words;                 // bit 1 << i: rows of operand i are contiguous and begin at multiples of 16 bytes
  u32 tiles;                 // tiles of rows per head
  u32 has_dk, has_dv;
  float scale;
};
static_assert(sizeof(AttentionBwdParams) == 496, "host and kernels must agree on the layout");
