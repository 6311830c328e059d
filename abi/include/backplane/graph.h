/* SPDX-License-Identifier: Apache-2.0 */
/* The optional interface "bp.graph", which records work once and enqueues it many times. plugin.h
 * includes this header. */
#ifndef BACKPLANE_GRAPH_H
#define BACKPLANE_GRAPH_H

#include "device.h"

/* "bp.graph" version 1, per device, captures the enqueue calls of streams in a graph, and launches
 * the graph. */
#define BP_INTERFACE_GRAPH "bp.graph"

typedef struct bp_graph bp_graph; /* captured work, which belongs to the device */

/* A range of bytes of a buffer. Role: input, and an array element, so the struct never grows. */
typedef struct bp_graph_binding {
  bp_buffer* buffer;
  uint64_t offset; /* bytes from the buffer's start to the range */
  uint64_t bytes;  /* size of the range; at least 1 */
} bp_graph_binding;
BP_STATIC_ASSERT(sizeof(bp_graph_binding) == 24, "bp_graph_binding is frozen");

/* Parameters of graph_begin. Role: input. */
typedef struct bp_graph_desc {
  uint32_t struct_size;
  uint32_t flags; /* must be 0 */
  /* The ranges that a launch may replace. The ranges do not overlap. Each operand and each range of
   * a copy is inside one of these ranges or outside all of them. */
  const bp_graph_binding* bindings;
  uint32_t binding_count;
  uint32_t reserved;
} bp_graph_desc;
#define BP_GRAPH_DESC_MIN_SIZE 24u
BP_FROZEN_MIN(bp_graph_desc, BP_GRAPH_DESC_MIN_SIZE);

/* Properties of a graph. Role: output. */
typedef struct bp_graph_info {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t nodes;        /* executions and copies in the graph */
  uint64_t device_bytes; /* device memory that the plugin allocated for the graph */
} bp_graph_info;
#define BP_GRAPH_INFO_MIN_SIZE 24u
BP_FROZEN_MIN(bp_graph_info, BP_GRAPH_INFO_MIN_SIZE);

/* The slots of "bp.graph". Role: table. All slots are required.
 *
 * These rules apply to all slots:
 * Capture  A stream captures from graph_begin to graph_end. Its copies and executions are recorded
 *          and not executed. event_record records a point of the capture in the event. If another
 *          stream then waits for the event, that stream joins the capture. When the capture ends,
 *          the stream of graph_begin must have waited for all work of the streams that joined.
 *          These calls return INVALID_ARGUMENT, and the capture continues: stream_wait, graph_begin
 *          and graph_launch on a capturing stream; the wait of a capturing stream for an event that
 *          was recorded outside its capture. For an event that was last recorded in a capture,
 *          event_wait and event_elapsed return INVALID_ARGUMENT. After the capture has ended,
 *          stream_wait_event on such an event also returns INVALID_ARGUMENT. The caller does not
 *          destroy a capturing stream.
 * Values   Immediates, scalars, sizes and host addresses are recorded. A scalar in a buffer
 *          (BP_OP_FLAG_DEVICE_SCALARS) and the bytes at a host address are read at each launch.
 * Memory   Until the graph is destroyed, the caller keeps the plans, buffers, workspace and host
 *          memory that recorded work uses. The caller may destroy the events and the streams that
 *          joined as soon as the capture has ended.
 * Order    The caller orders the launches of one graph, because they use the same workspace. */
typedef struct bp_graph_api {
  uint32_t struct_size;
  uint32_t reserved;

  /* Begins a capture on a stream. Earlier work of the stream is not part of the capture.
   * Ownership: desc is borrowed for the call.
   * Threads:   any, one call on this stream at a time. Until graph_end, one thread at a time calls
   *            slots of the capture's streams and events.
   * Stream:    never waits for device work.
   * Errors:    UNSUPPORTED for an unknown flag; INVALID_ARGUMENT for a capturing stream, and for
   *            bindings that are null, exceed their buffer or overlap; OUT_OF_MEMORY;
   *            EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.3, required. */
  bp_status (*graph_begin)(bp_device* device, bp_stream* stream, const bp_graph_desc* desc, bp_error* error);

  /* Ends the capture that began on this stream, and creates the graph. A failure also ends the
   * capture, unless `out` is null, `info` is too small, or the stream has no capture to end.
   * Ownership: the caller owns *out, and calls graph_destroy before close. info is the caller's,
   *            and may be null.
   * Threads:   any, one call on this stream at a time.
   * Stream:    never waits for device work. May allocate device memory.
   * Errors:    INVALID_ARGUMENT if no capture began on this stream, or if a stream that joined has
   *            work for which this stream did not wait; UNSUPPORTED for work that the plugin cannot
   *            record; OUT_OF_MEMORY; EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.3, required. */
  bp_status (*graph_end)(bp_device* device, bp_stream* stream, bp_graph** out, bp_graph_info* info, bp_error* error);

  /* Enqueues all work of a graph, in the recorded order, on any stream of the device. `count` is 0,
   * or the number of bindings of graph_begin. With bindings, each range replaces the range of the
   * same index in this launch. The replacement has the same size and kind of memory as the recorded
   * range, and at least the same alignment. The ranges do not overlap each other, and do not
   * overlap other memory that the graph writes. A range that the graph writes overlaps no other
   * memory of the graph.
   * Ownership: bindings are borrowed for the call. The buffers of the graph and of the bindings are
   *            borrowed until the stream has executed the work.
   * Threads:   any, one call on this stream and one launch of this graph at a time.
   * Stream:    enqueues. Failed work fails this stream.
   * Errors:    INVALID_ARGUMENT for a wrong count or size, a range that exceeds its buffer, or a
   *            capturing stream; OUT_OF_MEMORY with nothing enqueued; EXECUTION_FAILED;
   *            DEVICE_LOST.
   * Since:     0.3, required. */
  bp_status (*graph_launch)(bp_device* device, bp_stream* stream, bp_graph* graph, const bp_graph_binding* bindings,
                            uint32_t count, bp_error* error);

  /* Destroys a graph. Launches that are already enqueued are not affected.
   * Ownership: consumes graph.
   * Threads:   any; no other call on this graph runs.
   * Stream:    synchronous; may wait for the device.
   * Errors:    none.
   * Since:     0.3, required. */
  void (*graph_destroy)(bp_device* device, bp_graph* graph);
} bp_graph_api;
#define BP_GRAPH_API_MIN_SIZE 40u
BP_FROZEN_MIN(bp_graph_api, BP_GRAPH_API_MIN_SIZE);

#endif
