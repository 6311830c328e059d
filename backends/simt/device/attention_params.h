// SPDX-License-Identifier: Apache-2.0
// The parameters of the kernels of attention, which host and kernels share.
#pragma once

#define SIMT_ATTENTION_KEYS 64      // maximum keys per step of attention_tiles
#define SIMT_ATTENTION_COLUMNS 16   // columns of v per sub-group of attention_tiles
#define SIMT_ATTENTION_OWN_KEYS 16  // keys per sub-group and step of attention_tiles
#define SIMT_ATTENTION_DEPTH 1024   // maximum elements of a query in attention_rows
#define SIMT_ATTENTION_BLOCK 64     // keys per sub-group and step of attention_rows
#define SIMT_ATTENTION_PARTS 8      // columns of v per lane of attention_rows
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
  u32 columns;               // columns of v per work item
  u32 tiles, column_blocks;  // tiles of rows per group, blocks of `columns` columns of v
  u32 items;                 // work items: each is a tile of rows with a block of columns and, if split, a split
  u32 causal;                // BP_CAUSAL_*
  u32 mask_kind;             // SIMT_MASK_*
  u32 has_logsumexp;
  u32 contiguous;  // not 0 if k and v are contiguous and their extents are multiples of the width
  float scale;
};
static_assert(sizeof(AttentionParams) == 304, "host and kernels must agree on the layout");

#define SIMT_ATTENTION_SPLITS 128         // maximum number of splits of the keys, and threads of attention_combine
#define SIMT_ATTENTION_SPLIT_ROWS 4       // maximum rows per group of attention_split
#define SIMT_ATTENTION_SPLIT_DEPTH 256    // maximum elements of a query in attention_split
#define SIMT_ATTENTION_SPLIT_COLUMNS 128  // columns of v per group of attention_split
#define SIMT_ATTENTION_TEAM 16            // lanes of attention_blocks that process the same rows
#define SIMT_ATTENTION_STEP 64            // keys per step of attention_blocks, and columns of v in local memory
#define SIMT_ATTENTION_KEPT 4096          // elements of queries that fit into local memory in attention_blocks

// The parameters of the kernels in attention_blocks.h, which may divide the keys of a row into splits.
struct AttentionBlockParams {
  u64 offsets[7];            // y, logsumexp, q, k, v, mask, partials; in attention_combine: y, logsumexp, partials
  AttentionParams operands;  // the member `offsets` of `operands` is unused
  u32 splits, split_keys;    // number of splits, maximum keys of a split
  u32 lanes;                 // lanes that share a key in attention_split, 8 or 16
  u32 longest_first;         // not 0 if groups of attention_blocks begin with the last rows, which see the most keys
};
static_assert(sizeof(AttentionBlockParams) == 376, "host and kernels must agree on the layout");
