/* SPDX-License-Identifier: Apache-2.0 */
/* The optional interface "bp.pack", which copies a constant operand once to a layout that a plan
 * prefers. plugin.h includes this header. */
#ifndef BACKPLANE_PACK_H
#define BACKPLANE_PACK_H

#include "device.h"

/* "bp.pack" version 1, per device, packs inputs whose values do not change between executions. */
#define BP_INTERFACE_PACK "bp.pack"

typedef struct bp_pack bp_pack; /* the packing of one input, prepared for a descriptor */

/* The layout of a packed operand. Role: output. The view of a packed operand has the flag
 * BP_DESC_PACKED and the input's rank, shape and dtype. Its strides[0] is `bytes` and its
 * strides[1] is `layout` (tensor.h). */
typedef struct bp_pack_info {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t bytes;  /* size of the packed operand; 1 to INT64_MAX */
  uint64_t layout; /* the plugin's number for the layout; strides[1] has the same 64 bits */
} bp_pack_info;
#define BP_PACK_INFO_MIN_SIZE 24u
BP_FROZEN_MIN(bp_pack_info, BP_PACK_INFO_MIN_SIZE);

/* The slots of "bp.pack". Role: table. All slots are required.
 *
 * These rules apply to all slots:
 * Layouts  A plan takes a packed operand only if the plan's descriptor contains the packed view.
 *          plan_create returns UNSUPPORTED for a packed view unless a plan for this descriptor
 *          reads exactly this layout, with this size. The number of a layout also depends on the
 *          shape, so no plan takes a packed operand under another shape. Two plans may take the
 *          same packed operand. A layout is valid for the device handle that returned it, and is
 *          not stored in files.
 * Equality An execution with a packed operand has the results that the specification permits for
 *          the plain operand.
 * Lifetime A packed operand is the content of a buffer of the caller. It does not refer to the
 *          bp_pack, the plan or the plain operand, all of which may be destroyed. The plain operand
 *          may change after the stream has executed the packing, but then the packed operand keeps
 *          the old values. */
typedef struct bp_pack_api {
  uint32_t struct_size;
  uint32_t reserved;

  /* Prepares to pack input number `input` for plans of `desc`, in which that input is plain. desc
   * obeys the rules of plan_create. Other inputs may be packed. A call with a null `out` is a
   * query, which fills info and returns the same status as the creation, except OUT_OF_MEMORY and
   * DEVICE_LOST. plan_create accepts desc if the plain view is replaced by the packed view.
   * Ownership: the caller owns *out, and calls pack_destroy before close. desc is borrowed for the
   *            call. info is the caller's.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work.
   * Errors:    UNSUPPORTED if the plan prefers the plain operand, and for a descriptor that
   *            plan_create does not support; INVALID_ARGUMENT for an input that is not constant,
   *            because an output aliases it, and for an input that is absent, packed, an immediate,
   *            of rank below 2 or without elements; OUT_OF_MEMORY; DEVICE_LOST.
   * Since:     0.3, required in this interface. */
  bp_status (*pack_create)(bp_device* device, const bp_op_desc* desc, uint32_t input, bp_pack** out, bp_pack_info* info,
                           bp_error* error);

  /* Enqueues one packing. The plain operand is the view of pack_create, with element 0 at
   * src_offset. The packed operand occupies bp_pack_info.bytes from dst_offset on, and is fully
   * aligned (BP_MAX_ALIGNMENT_LOG2). The two ranges do not overlap. Both buffers can be operands.
   * Ownership: both buffers are borrowed until the stream has executed the packing.
   * Threads:   any, one call on this stream at a time; one bp_pack on many streams at once.
   * Stream:    enqueues.
   * Errors:    INVALID_ARGUMENT for a range beyond a buffer, a packed operand that is not fully
   *            aligned, and a stream that captures a graph; OUT_OF_MEMORY with nothing enqueued;
   *            EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.3, required in this interface. */
  bp_status (*pack_execute)(bp_device* device, bp_stream* stream, bp_pack* pack, bp_buffer* src, uint64_t src_offset,
                            bp_buffer* dst, uint64_t dst_offset, bp_error* error);

  /* Destroys a bp_pack. Packings that are already enqueued, and packed operands, are not affected.
   * Ownership: consumes pack.
   * Threads:   any; no other call on this pack runs.
   * Stream:    synchronous; never waits for device work.
   * Errors:    none.
   * Since:     0.3, required in this interface. */
  void (*pack_destroy)(bp_device* device, bp_pack* pack);
} bp_pack_api;
#define BP_PACK_API_MIN_SIZE 32u
BP_FROZEN_MIN(bp_pack_api, BP_PACK_API_MIN_SIZE);

#endif
