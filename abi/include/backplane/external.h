/* SPDX-License-Identifier: Apache-2.0 */
/* The optional interface "bp.external", which shares memory and semaphores with other processes,
 * other devices and other plugins. plugin.h includes this header. */
#ifndef BACKPLANE_EXTERNAL_H
#define BACKPLANE_EXTERNAL_H

#include "device.h"

/* "bp.external" version 1, per device, exports memory and semaphores as handles of the operating
 * system, and imports such handles. */
#define BP_INTERFACE_EXTERNAL "bp.external"

/* Flags of bp_external_type: the operations that a device offers for handles of the type. */
#define BP_EXTERNAL_MEMORY_EXPORT 1u
#define BP_EXTERNAL_MEMORY_IMPORT 2u
#define BP_EXTERNAL_SEMAPHORE_EXPORT 4u
#define BP_EXTERNAL_SEMAPHORE_IMPORT 8u

/* A type of handles that a device exports or imports. Role: output. */
typedef struct bp_external_type {
  uint32_t struct_size;
  uint32_t flags; /* BP_EXTERNAL_*, at least one */
  /* The type's name: NUL-terminated and of the form [a-z0-9_.]{1,31}. Plugins define the names and
   * document them. Two plugins that exchange handles of a type use the same name. */
  char name[32];
} bp_external_type;
#define BP_EXTERNAL_TYPE_MIN_SIZE 40u
BP_FROZEN_MIN(bp_external_type, BP_EXTERNAL_TYPE_MIN_SIZE);

/* A handle by which other devices and processes import memory or a semaphore. Role: output of the
 * slots that export, and input of the slots that import. A process that receives a handle from
 * another process sets `fd` to its own descriptor of the object. The process does not change
 * `object_bytes`, `uuid`, `type` and `data`. */
typedef struct bp_external_handle {
  uint32_t struct_size;
  uint32_t reserved; /* must be 0 */
  int64_t fd;        /* a file descriptor of the process, or -1 if the type has none */
  /* For memory: the number of bytes from the object's start to the buffer's first byte, and the
   * buffer's size. Otherwise 0. */
  uint64_t offset;
  uint64_t bytes;
  uint64_t object_bytes; /* for memory: the size of the whole object; otherwise 0 */
  /* bp_device_info.uuid of the exporting device if only devices with this uuid can import the
   * handle; otherwise 0. */
  uint8_t uuid[16];
  char type[32];     /* a name of bp_external_type */
  uint8_t data[128]; /* the handle of a type without a file descriptor; otherwise 0 */
} bp_external_handle;
#define BP_EXTERNAL_HANDLE_MIN_SIZE 216u
BP_FROZEN_MIN(bp_external_handle, BP_EXTERNAL_HANDLE_MIN_SIZE);

/* A counter of 64 bits that streams of several devices and processes advance and wait for. */
typedef struct bp_semaphore bp_semaphore;

/* The slots of "bp.external". Role: table. An optional slot is null if the driver lacks the
 * operation.
 *
 * These rules apply to all slots:
 * Descriptors An export returns a new file descriptor, which the caller owns and closes. The
 *             descriptor is closed on exec. An import neither closes nor keeps the caller's
 *             descriptor, whether it succeeds or fails.
 * Lifetime    Exported memory exists until all of its buffers are destroyed and all of its
 *             descriptors are closed, in all processes and in any order. A semaphore exists until
 *             the same is true of its bp_semaphore objects and its descriptors.
 * Order       Streams and events order work of one device only. Semaphores, or waits by the host
 *             processes, order the work of several devices and processes on shared memory.
 * Input       A handle comes from another process, so the plugin checks it. A wrong handle never
 *             makes enqueued work fail, and never ends the process. */
typedef struct bp_external_api {
  uint32_t struct_size;
  uint32_t reserved;

  /* Returns type number `index` of the device. The indices of an open device are consecutive from
   * 0, and their types are constant.
   * Ownership: out is the caller's.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work.
   * Errors:    UNSUPPORTED for an index past the last type; DEVICE_LOST.
   * Since:     0.3, required in this interface. */
  bp_status (*external_type)(bp_device* device, uint32_t index, bp_external_type* out, bp_error* error);

  /* Creates a buffer whose memory buffer_export can export as `type`. All other rules are those of
   * buffer_create.
   * Ownership: the caller owns *out, and calls buffer_destroy. desc and type are borrowed for the
   *            call.
   * Threads:   any, concurrently.
   * Stream:    synchronous.
   * Errors:    UNSUPPORTED for an unknown type, and for a kind or an alignment that such memory
   *            does not have; INVALID_ARGUMENT for 0 bytes; OUT_OF_MEMORY; DEVICE_LOST.
   * Since:     0.3, optional. */
  bp_status (*buffer_create_external)(bp_device* device, const bp_buffer_desc* desc, const char* type, bp_buffer** out,
                                      bp_error* error);

  /* Returns a handle of a buffer's memory. The handle states the bytes of the buffer.
   * Ownership: out is the caller's, and so is out->fd. The buffer may be destroyed before the
   *            handle is imported. type is borrowed for the call.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work.
   * Errors:    UNSUPPORTED for an unknown type, and for a buffer that was not created for this
   *            type; OUT_OF_MEMORY if the process has no free descriptor; DEVICE_LOST.
   * Since:     0.3, optional. */
  bp_status (*buffer_export)(bp_device* device, bp_buffer* buffer, const char* type, bp_external_handle* out,
                             bp_error* error);

  /* Creates a buffer over memory of a handle, and returns the kind of the memory in *out_kind.
   * `offset` and `bytes` may state a part of the memory.
   * Ownership: the caller owns *out, and calls buffer_destroy. `handle` and its descriptor are
   *            borrowed for the call.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work.
   * Errors:    UNSUPPORTED for an unknown type, for a uuid of another device, and for an offset
   *            that the device does not accept; INVALID_ARGUMENT for 0 bytes, for bytes beyond the
   *            end of the memory, and for a descriptor that is closed, lacks access or is not of
   *            this type; OUT_OF_MEMORY; DEVICE_LOST.
   * Since:     0.3, optional. */
  bp_status (*buffer_import)(bp_device* device, const bp_external_handle* handle, uint32_t* out_kind, bp_buffer** out,
                             bp_error* error);

  /* Creates a semaphore that semaphore_export can export as `type`. The semaphore begins at
   * `value`.
   * Ownership: the caller owns *out, and calls semaphore_destroy before close. type is borrowed for
   *            the call.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work.
   * Errors:    UNSUPPORTED for an unknown type; OUT_OF_MEMORY; DEVICE_LOST.
   * Since:     0.3, optional. */
  bp_status (*semaphore_create)(bp_device* device, const char* type, uint64_t value, bp_semaphore** out,
                                bp_error* error);

  /* Returns a handle of a semaphore.
   * Ownership: out is the caller's, and so is out->fd. The semaphore may be destroyed before the
   *            handle is imported. type is borrowed for the call.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work.
   * Errors:    UNSUPPORTED for an unknown type, and for a semaphore that was not created for this
   *            type; OUT_OF_MEMORY if the process has no free descriptor; DEVICE_LOST.
   * Since:     0.3, optional. */
  bp_status (*semaphore_export)(bp_device* device, bp_semaphore* semaphore, const char* type, bp_external_handle* out,
                                bp_error* error);

  /* Creates a bp_semaphore for the semaphore to which a handle refers.
   * Ownership: the caller owns *out, and calls semaphore_destroy before close. `handle` and its
   *            descriptor are borrowed for the call.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work.
   * Errors:    UNSUPPORTED for an unknown type and for a uuid of another device; INVALID_ARGUMENT
   *            for a descriptor that is closed, lacks access or is not of this type; OUT_OF_MEMORY;
   *            DEVICE_LOST.
   * Since:     0.3, optional. */
  bp_status (*semaphore_import)(bp_device* device, const bp_external_handle* handle, bp_semaphore** out,
                                bp_error* error);

  /* Raises the semaphore to `value` after all earlier work of the stream, whose results are then
   * visible to work that waits for this value. With a null stream, raises the semaphore at once. A
   * value that the semaphore has already reached changes nothing. If the stream fails first, the
   * semaphore is not raised.
   * Ownership: the caller keeps the semaphore until the stream has executed the signal.
   * Threads:   any, one call on this stream at a time.
   * Stream:    enqueues; submits all earlier work of the stream.
   * Errors:    UNSUPPORTED for a null stream if the host cannot raise the semaphore; OUT_OF_MEMORY;
   *            EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.3, optional. */
  bp_status (*semaphore_signal)(bp_device* device, bp_stream* stream, bp_semaphore* semaphore, uint64_t value,
                                bp_error* error);

  /* Makes later work of the stream wait until the semaphore has reached `value`. The wait may come
   * before the signal. Other streams execute their work during the wait.
   * Ownership: the caller keeps the semaphore until the stream has executed the wait.
   * Threads:   any, one call on this stream at a time.
   * Stream:    enqueues.
   * Errors:    UNSUPPORTED if the stream shares its hardware queue with another stream;
   *            OUT_OF_MEMORY; EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.3, optional. */
  bp_status (*semaphore_wait)(bp_device* device, bp_stream* stream, bp_semaphore* semaphore, uint64_t value,
                              bp_error* error);

  /* Destroys a semaphore of this device. Other bp_semaphore objects for the same semaphore remain
   * valid.
   * Ownership: consumes semaphore, which no pending work uses.
   * Threads:   any, concurrently.
   * Stream:    synchronous.
   * Errors:    none.
   * Since:     0.3, required with semaphore_create or semaphore_import. */
  void (*semaphore_destroy)(bp_device* device, bp_semaphore* semaphore);
} bp_external_api;
#define BP_EXTERNAL_API_MIN_SIZE 88u
BP_FROZEN_MIN(bp_external_api, BP_EXTERNAL_API_MIN_SIZE);

#endif
