/* SPDX-License-Identifier: Apache-2.0 */
/* Element types and tensor views. Reshape, permute, slice, broadcast, flip, unfold and bitcast only
 * change a view's metadata, so no operator exists for them. */
#ifndef BACKPLANE_TENSOR_H
#define BACKPLANE_TENSOR_H

#include "base.h"

enum {
#define BP_DTYPE_ROW(id, symbol, name, bytes, kind, core) BP_##symbol = id,
#include "dtypes.def"
#undef BP_DTYPE_ROW
};

#define BP_DTYPE_LIMIT 64 /* every dtype id is below this limit; a set of dtypes has 64 bits */
/* The bit of a dtype in a set of dtypes, or 0 if the number is not below BP_DTYPE_LIMIT. */
#define BP_DTYPE_BIT(dtype) ((uint64_t)((dtype) < BP_DTYPE_LIMIT) << ((dtype) & (BP_DTYPE_LIMIT - 1)))

#define BP_MAX_RANK 8
/* Maximum number of inputs, and of outputs. Stage masks have one bit per operand. */
#define BP_MAX_OPERANDS 32
/* Core states an alignment of at most 256 bytes. "Fully aligned" means aligned to 256 bytes, or to
 * bp_device_info.alignment if that is less. */
#define BP_MAX_ALIGNMENT_LOG2 8
/* Flags of bp_tensor_desc, for inputs only. An operand with IMMEDIATE contains its value and has no
 * buffer. Its rank is 0 or all its strides are 0, and its dtype has at most 8 bytes. An operand
 * with PACKED was packed through bp.pack, in a layout that the plugin defines (pack.h; since 0.3).
 * Its rank is at least 2. strides[0] is its size in bytes from the operand's offset on, strides[1]
 * identifies the layout, and the other strides are 0. A packed operand is fully aligned and has
 * elements, and no output aliases it. All executions of a plan use the same packed view. */
#define BP_DESC_IMMEDIATE 1
#define BP_DESC_PACKED 2
#define BP_DESC_HINTS 0xFF00u /* a callee ignores unknown bits; no hint is defined yet */

/* A view without its data. Role: input, and an array element, so the struct never grows.
 * Strides are in elements. Inputs may have zero, negative and overlapping strides. The elements of
 * an output have distinct addresses. Entries of shape and strides from index `rank` on are zero, so
 * that views can be compared as bytes. */
typedef struct bp_tensor_desc {
  uint16_t dtype;
  uint8_t rank; /* 0..BP_MAX_RANK */
  /* The address of element 0, from buffer and offset, is a multiple of 2^alignment_log2 bytes. Core
   * may understate the alignment. */
  uint8_t alignment_log2;
  uint16_t flags; /* BP_DESC_* */
  /* For an output, 1 + the index of the first input that has the same start, strides and dtype.
   * Later inputs may also be identical to the output. The value 0 means that the output overlaps no
   * input. */
  uint16_t alias;
  int64_t shape[BP_MAX_RANK];
  int64_t strides[BP_MAX_RANK];
} bp_tensor_desc;
BP_STATIC_ASSERT(sizeof(bp_tensor_desc) == 136, "bp_tensor_desc is frozen");

typedef struct bp_buffer bp_buffer; /* a span of memory; opaque, not necessarily a pointer */

/* The memory of a view in one execution. Role: input, and an array element, so the struct never
 * grows. */
typedef struct bp_operand {
  bp_buffer* buffer;  /* null for an immediate and for a view of zero elements */
  uint64_t offset;    /* bytes from the buffer's start to the view's element 0 */
  uint64_t immediate; /* the value in its dtype, in the low bytes; the other bytes are zero */
} bp_operand;
BP_STATIC_ASSERT(sizeof(bp_operand) == 24, "bp_operand is frozen");

#endif
