/* SPDX-License-Identifier: Apache-2.0 */
/* The optional interface "bp.native", which shares the objects of a device with other code that
 * uses the same driver. plugin.h includes this header. */
#ifndef BACKPLANE_NATIVE_H
#define BACKPLANE_NATIVE_H

#include "device.h"

/* "bp.native" version 1, per device, returns the driver's handles of a device's objects, and wraps
 * the driver's objects in a buffer or a stream. */
#define BP_INTERFACE_NATIVE "bp.native"

/* Flag of bp_native_handle: `value` is the address that code on the device uses. */
#define BP_NATIVE_ADDRESS 1u

/* A handle of an object in the driver's API. Role: output of the slots that return a handle, and
 * input of the slots that wrap an object. */
typedef struct bp_native_handle {
  uint32_t struct_size;
  uint32_t flags; /* BP_NATIVE_ADDRESS or 0 */
  uint64_t value; /* a pointer, a number or, with BP_NATIVE_ADDRESS, an address; may be 0 */
  /* For a buffer: the number of bytes from the object's start, or from the address, to the buffer's
   * first byte. For an event: if `value` is the handle of a counter, the number that the counter
   * reaches at the event. Otherwise 0. */
  uint64_t offset;
  uint64_t bytes; /* for a buffer: its size, at least 1; otherwise 0 */
  /* The type of `value`: NUL-terminated and of the form [a-z0-9_.]{1,31}. Plugins define the types
   * and document them. Two plugins that use the same driver use the same names. The caller compares
   * the type before it uses `value`. */
  char type[32];
} bp_native_handle;
#define BP_NATIVE_HANDLE_MIN_SIZE 64u
BP_FROZEN_MIN(bp_native_handle, BP_NATIVE_HANDLE_MIN_SIZE);

/* The slots of "bp.native". Role: table. A slot is null if the driver has no such object.
 *
 * These rules apply to all slots:
 * Order    A native stream is a stream whose handle stream_native returned, or that stream_wrap
 *          wraps. It executes the work of the plugin and of other code in the order of the enqueue
 *          calls. The plugin therefore submits its work before an enqueue call returns. stream_wait
 *          and events cover the work of the plugin and the work of other code.
 * Threads  During a call on a stream, no other code uses the native stream, unless the driver
 *          permits this use. All streams that wrap one native stream count as one stream.
 * Failure  If work of other code fails, calls on the stream may return the errors of a failed
 *          stream.
 * Lifetime The caller does not destroy a handle that a slot returned. A handle that the caller
 *          wraps must remain valid until the wrapping object is destroyed. */
typedef struct bp_native_api {
  uint32_t struct_size;
  uint32_t reserved;

  /* Returns handle number `index` of the device, such as a context or a queue family. The indices
   * of an open device are consecutive from 0, and their handles are constant.
   * Ownership: out is the caller's. The handle is borrowed until close.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work.
   * Errors:    UNSUPPORTED for an index past the last handle; DEVICE_LOST.
   * Since:     0.3, optional. */
  bp_status (*device_native)(bp_device* device, uint32_t index, bp_native_handle* out, bp_error* error);

  /* Returns the handle of a stream. The handle is constant. From this call on, other code may
   * enqueue work on the native stream.
   * Ownership: out is the caller's. The handle is borrowed until stream_destroy.
   * Threads:   any, one call on this stream at a time.
   * Stream:    submits all earlier work of the stream; never waits for device work.
   * Errors:    UNSUPPORTED for a stream without such a handle; EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.3, optional. */
  bp_status (*stream_native)(bp_device* device, bp_stream* stream, bp_native_handle* out, bp_error* error);

  /* Returns the handle of a buffer's memory. The handle is constant, and refers to exactly the
   * bytes of the buffer.
   * Ownership: out is the caller's. The handle is borrowed until buffer_destroy.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work.
   * Errors:    UNSUPPORTED for memory without such a handle; DEVICE_LOST.
   * Since:     0.3, optional. */
  bp_status (*buffer_native)(bp_device* device, bp_buffer* buffer, bp_native_handle* out, bp_error* error);

  /* Returns the handle of the point that was recorded last in an event.
   * Ownership: out is the caller's. The handle is borrowed until the event is recorded again or
   *            destroyed.
   * Threads:   any, concurrently, except with event_record of this event.
   * Stream:    synchronous; never waits for device work.
   * Errors:    INVALID_ARGUMENT for an event that was never recorded; UNSUPPORTED for a point
   *            without such a handle; EXECUTION_FAILED if the event's stream failed; DEVICE_LOST.
   * Since:     0.3, optional. */
  bp_status (*event_native)(bp_device* device, bp_event* event, bp_native_handle* out, bp_error* error);

  /* Creates a stream that enqueues on a native stream of the caller. stream_destroy does not
   * destroy the native stream.
   * Ownership: the caller owns *out, and calls stream_destroy before close. The native stream is
   *            borrowed until then. `native` is borrowed for the call.
   * Threads:   any, concurrently, except with other uses of the native stream.
   * Stream:    synchronous; never waits for device work.
   * Errors:    UNSUPPORTED for an unknown type or flag, and for a stream that the device cannot
   *            use; INVALID_ARGUMENT for a value that the driver rejects; OUT_OF_MEMORY;
   *            DEVICE_LOST.
   * Since:     0.3, optional. */
  bp_status (*stream_wrap)(bp_device* device, const bp_native_handle* native, bp_stream** out, bp_error* error);

  /* Creates a buffer over native memory of the caller, and returns the kind of the memory in
   * *out_kind. buffer_destroy does not free the memory. If the memory has no address, its first
   * byte counts as aligned to bp_device_info.alignment.
   * Ownership: the caller owns *out, and calls buffer_destroy. The memory is borrowed until then.
   *            `native` is borrowed for the call.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work.
   * Errors:    UNSUPPORTED for an unknown type or flag, and for memory or alignment that the device
   *            does not accept; INVALID_ARGUMENT for 0 bytes, for bytes beyond the end of the
   *            memory, and for a value that the driver rejects; OUT_OF_MEMORY; DEVICE_LOST.
   * Since:     0.3, optional. */
  bp_status (*buffer_wrap)(bp_device* device, const bp_native_handle* native, uint32_t* out_kind, bp_buffer** out,
                           bp_error* error);
} bp_native_api;
#define BP_NATIVE_API_MIN_SIZE 56u
BP_FROZEN_MIN(bp_native_api, BP_NATIVE_API_MIN_SIZE);

#endif
