/* SPDX-License-Identifier: Apache-2.0 */
/* Element types and tensor views. Views (reshape, permute, slice, broadcast, flip, unfold, bitcast) are this metadata,
 * never operators. */
#ifndef BACKPLANE_TENSOR_H
#define BACKPLANE_TENSOR_H

#include "base.h"

enum {
#define BP_DTYPE_ROW(id, symbol, name, bytes, kind, core) BP_##symbol = id,
#include "dtypes.def"
#undef BP_DTYPE_ROW
};

#define BP_DTYPE_LIMIT 64 /* every dtype id is below: sets of dtypes are 64-bit masks */
/* Sets of dtypes: a mask of BP_DTYPE_BIT. No bit for a number that is not below BP_DTYPE_LIMIT. */
#define BP_DTYPE_BIT(dtype) ((uint64_t)((dtype) < BP_DTYPE_LIMIT) << ((dtype) & (BP_DTYPE_LIMIT - 1)))

#define BP_MAX_RANK 8
#define BP_MAX_OPERANDS 32 /* inputs, and outputs: the stage masks are 32 bits */
/* Core states at most 256 bytes. "Fully aligned": to that, or to the device's own alignment if it is less. */
#define BP_MAX_ALIGNMENT_LOG2 8
/* Input only: rank 0 or all strides 0, and the operand carries the value; dtypes of at most 8 bytes. */
#define BP_DESC_IMMEDIATE 1
#define BP_DESC_PACKED 2      /* reserved, input only: a layout that the plugin made; strides hold its identity */
#define BP_DESC_HINTS 0xFF00u /* bits that a callee ignores where it does not know them; none is defined yet */

/* A view without its data. Role: input, and an array element, so it never grows.
 * Strides are in elements; 0, negative and overlapping strides are legal on inputs. An output's element addresses are
 * distinct. Entries at and beyond rank are zero, so that bytes compare. */
typedef struct bp_tensor_desc {
  uint16_t dtype;
  uint8_t rank;           /* 0..BP_MAX_RANK */
  uint8_t alignment_log2; /* of element 0's address, buffer and offset together: at least 2^alignment_log2 bytes; core
                           * may understate it */
  uint16_t flags;         /* BP_DESC_* */
  uint16_t alias; /* output: 1 + index of the first input that it is identical to (start, strides, dtype; a later one
                   * may be, too); 0: overlaps none */
  int64_t shape[BP_MAX_RANK];
  int64_t strides[BP_MAX_RANK];
} bp_tensor_desc;
BP_STATIC_ASSERT(sizeof(bp_tensor_desc) == 136, "bp_tensor_desc is frozen");

typedef struct bp_buffer bp_buffer; /* a span of memory, opaque; never presumed a pointer */

/* What a view points at, for one execution. Role: input, and an array element, so it never grows. */
typedef struct bp_operand {
  bp_buffer* buffer;  /* null: an immediate, or a view of zero elements */
  uint64_t offset;    /* bytes from the buffer's start to the view's element 0 */
  uint64_t immediate; /* the value's bits in its dtype, low bytes first; the rest zero */
} bp_operand;
BP_STATIC_ASSERT(sizeof(bp_operand) == 24, "bp_operand is frozen");

#endif
