/* SPDX-License-Identifier: Apache-2.0 */
/* The optional interface "bp.peer", through which two devices of one plugin use each other's memory
 * and events. plugin.h includes this header. */
#ifndef BACKPLANE_PEER_H
#define BACKPLANE_PEER_H

#include "device.h"

/* "bp.peer" version 1, per device, copies between two open devices, maps a peer's buffers, and
 * waits for a peer's events. */
#define BP_INTERFACE_PEER "bp.peer"

/* Results of peer_query: the ways in which the device can use its peer's objects. */
#define BP_PEER_COPY 1u    /* peer_copy copies to and from the peer's buffers without the host */
#define BP_PEER_OPERAND 2u /* peer_map creates a buffer that is a legal operand on the device */
#define BP_PEER_WAIT 4u    /* peer_wait_event makes streams wait for events of the peer */

/* The slots of "bp.peer". Role: table. An optional slot is null if the driver lacks the operation.
 *
 * These rules apply to all slots:
 * Peers    `peer` is another open device of the same plugin instance. It may be a second device
 *          handle for the same hardware. A device is not a peer of itself.
 * Enabling The caller calls peer_enable for a device and its peer before it calls peer_copy,
 *          peer_map or peer_wait_event for them. The plugin need not check this.
 * Lifetime A device stays open while the pending work of another device uses its objects, and while
 *          a mapped buffer of another device exists. */
typedef struct bp_peer_api {
  uint32_t struct_size;
  uint32_t reserved;

  /* Returns a mask of BP_PEER_*: the ways in which `device` can use the objects of `peer` after
   * peer_enable. The mask is constant, and may be 0. With the two devices exchanged, the mask may
   * be another.
   * Ownership: out is the caller's.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work.
   * Errors:    INVALID_ARGUMENT if both devices are the same; DEVICE_LOST.
   * Since:     0.3, required in this interface. */
  bp_status (*peer_query)(bp_device* device, bp_device* peer, uint32_t* out, bp_error* error);

  /* Enables all uses that peer_query returns, until one of the devices closes. A further call for
   * the same devices returns OK and does nothing.
   * Ownership: none.
   * Threads:   any, concurrently.
   * Stream:    synchronous.
   * Errors:    INVALID_ARGUMENT if both devices are the same; UNSUPPORTED if peer_query returns 0;
   *            OUT_OF_MEMORY; DEVICE_LOST.
   * Since:     0.3, required in this interface. */
  bp_status (*peer_enable)(bp_device* device, bp_device* peer, bp_error* error);

  /* Copies between a buffer of `dst_device` and a buffer of `src_device`. One of the two devices is
   * `device`, and the other device is its peer. `stream` belongs to `device`. All other rules are
   * those of `copy`.
   * Ownership: the caller keeps the buffers until the stream has executed the copy.
   * Threads:   any, one call on this stream at a time.
   * Stream:    enqueues.
   * Errors:    UNSUPPORTED without BP_PEER_COPY; INVALID_ARGUMENT for a range beyond a buffer, and
   *            if both buffers are HOST; OUT_OF_MEMORY; EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.3, optional. */
  bp_status (*peer_copy)(bp_device* device, bp_stream* stream, bp_device* dst_device, bp_buffer* dst,
                         uint64_t dst_offset, bp_device* src_device, bp_buffer* src, uint64_t src_offset,
                         uint64_t bytes, bp_error* error);

  /* Creates a buffer of `device` over the memory of `buffer`, which belongs to `peer`, and returns
   * the kind of the memory for `device` in *out_kind. buffer_destroy does not free the memory.
   * Ownership: the caller owns *out, and calls buffer_destroy before it destroys `buffer`.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work.
   * Errors:    UNSUPPORTED without BP_PEER_OPERAND, and for memory that the device cannot map;
   *            INVALID_ARGUMENT if both devices are the same; OUT_OF_MEMORY; DEVICE_LOST.
   * Since:     0.3, optional. */
  bp_status (*peer_map)(bp_device* device, bp_device* peer, bp_buffer* buffer, uint32_t* out_kind, bp_buffer** out,
                        bp_error* error);

  /* Makes later work of `stream` wait until `event`, which belongs to `peer`, has completed as last
   * recorded. All other rules are those of stream_wait_event.
   * Ownership: borrowed for the call.
   * Threads:   any, one call on this stream at a time.
   * Stream:    enqueues.
   * Errors:    UNSUPPORTED without BP_PEER_WAIT; INVALID_ARGUMENT if both devices are the same;
   *            EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.3, optional. */
  bp_status (*peer_wait_event)(bp_device* device, bp_stream* stream, bp_device* peer, bp_event* event, bp_error* error);
} bp_peer_api;
#define BP_PEER_API_MIN_SIZE 48u
BP_FROZEN_MIN(bp_peer_api, BP_PEER_API_MIN_SIZE);

#endif
