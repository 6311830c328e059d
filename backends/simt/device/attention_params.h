// SPDX-License-Identifier: Apache-2.0
// The parameters of the kernels of attention, which host and kernels share.
#pragma once

#define SIMT_ATTENTION_KEYS 64      // maximum keys per step of attention_tiles
#define SIMT_ATTENTION_COLUMNS 16   // columns of v per sub-group with attention_tiles
#define SIMT_ATTENTION_OWN_KEYS 16  // keys per sub-group and step of attention_tiles
#define SIMT_ATTENTION_DEPTH 1024   // maximum elements of a query with attention_rows
#define SIMT_ATTENTION_BLOCK 64     // keys per sub-group and step of attention_rows
#define SIMT_ATTENTION_PARTS 8      // columns of v per lane with attention_rows
#define SIMT_ATTENTION_GROUPS 16    // maximum sub-groups per group

#define SIMT_MASK_NONE 0
#define SIMT_MASK_BOOL 1
#define SIMT_MASK_ADDED 2

// Strides in elements. A row is a query or a key.
struct AttentionStrides {
  i64 batch, head, row, element;
};
struct AttentionParams {
  u64 offsets[6];  // y, logsumexp, q, k, v, mask
  AttentionStrides y, logsumexp, q, k, v, mask;
  u32 batches, groups, repeats;  // a group is a head of k and v; `repeats` heads of q share the group
  u32 queries, keys;
  u32 depth, value_columns;  // elements of a query, columns of v
  u32 columns;               // columns of v per block
  u32 tiles, column_blocks;  // tiles of rows per group, blocks of columns
  u32 items;                 // work items, each of which is a tile of rows with a block of columns
  u32 causal;                // BP_CAUSAL_*
  u32 mask_kind;             // SIMT_MASK_*
  u32 has_logsumexp;
  u32 contiguous;  // not 0 if k and v are contiguous and their extents are multiples of the width
  float scale;
};
static_assert(sizeof(AttentionParams) == 304, "host and kernels must agree on the layout");
