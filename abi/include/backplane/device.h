/* SPDX-License-Identifier: Apache-2.0 */
/* A device: its properties, and the table of its slots.
 *
 * These rules apply to every slot unless its comment states otherwise:
 * Flags    Unknown flag bits and enumerators are treated like unknown bytes of a struct. In an
 *          input they are UNSUPPORTED. In an output the reader ignores them. An output bit may
 *          therefore only state a property or allow an action. Any other output bit needs a request
 *          by the reader, with an input bit.
 * Failure  After a failure *out is null and *error is filled. After a success *out is never null.
 *          Any slot may return DEVICE_LOST. An enqueue call is all or nothing. If the call has
 *          submitted a part of the work and cannot continue, it fails its stream
 *          (EXECUTION_FAILED). The call then never returns OUT_OF_MEMORY or UNSUPPORTED.
 * Threads  Any number of threads may call device and event slots concurrently, but only one thread
 *          at a time may record an event. Any thread may call a slot of a stream, but only one
 *          thread at a time. A plan is immutable, so any number of threads and streams may execute
 *          it at once. event_record marks a point of a stream. A wait by the host or by a stream
 *          refers to the point that was marked last before the wait began. Later event_record calls
 *          do not affect that wait. A stream's wait remains valid after the event is destroyed. A
 *          marked point remains valid after its stream is destroyed.
 *          A slot restores the thread's current context, floating-point state, signal mask and
 *          locale. As far as the driver permits, a slot does not disturb other users of the
 *          hardware in the process. No stream is implicitly ordered with a vendor's default stream.
 *          No slot breaks a stream capture that another library has in progress.
 * Stream   An enqueue call may wait for the device only until earlier work frees room that the call
 *          needs. The earlier work belongs to the same stream, or to a stream that shares the
 *          hardware queue and does not wait for this stream. An enqueue call allocates no device
 *          memory and no pinned memory. It may allocate from the host heap, except when it executes
 *          a plan that was executed before. On a device with BP_CAP_SYNCHRONOUS, enqueue calls are
 *          synchronous.
 * Lifetime A plan or an event may be destroyed as soon as the enqueue call that uses it has
 *          returned. The plugin keeps the parts of the object that pending work still needs. An
 *          event must not be destroyed while an event_wait on it is in progress. Before the caller
 *          destroys a buffer, stream or device, the caller makes sure that no pending work uses the
 *          object. A plugin need not check this; it may wait, or free the object immediately.
 * Errors   Every later call on a failed stream returns the stream's first error. An event fails if
 *          it was recorded after work that failed. A stream that waits for a failed event fails
 *          with the event's error, at the latest when the host next waits for the stream. Outputs
 *          of failed work and of later work on the stream are undefined. All other memory is
 *          unchanged.
 *          On a failed stream, stream_wait returns TIMEOUT while work of the stream can still
 *          access memory, and then the error. Other slots return immediately. If a stream fails
 *          before it reaches an event, event_wait and event_elapsed on that event return the
 *          stream's error. These two slots neither hang nor succeed.
 *          EXECUTION_FAILED lasts until the stream is destroyed. DEVICE_LOST lasts until the device
 *          is closed, and may affect all open devices on the same hardware. After DEVICE_LOST every
 *          slot, including every destroy, returns promptly. An event that completed before the loss
 *          returns OK or DEVICE_LOST. A later device_open may return UNAVAILABLE until the process
 *          ends.
 *          Core's checks (docs/requirements.md) are preconditions of the slots. A plugin may return
 *          INVALID_ARGUMENT for an execution that violates a precondition, but need not check it.
 * Process  After fork() the child process makes no calls. The process may exit at any moment, even
 *          while objects are alive. */
#ifndef BACKPLANE_DEVICE_H
#define BACKPLANE_DEVICE_H

#include "ops.h"

/* Opaque handles; only the plugin knows their content. */
typedef struct bp_plugin bp_plugin;
typedef struct bp_device bp_device;
typedef struct bp_stream bp_stream; /* a queue that executes work in order */
typedef struct bp_event bp_event;   /* a point in a stream; the event belongs to the device */
typedef struct bp_plan bp_plan;     /* an operator prepared for a descriptor */

/* Device types. A device type is only informative, and does not influence the selection or the
 * ranking of devices. */
#define BP_DEVICE_CPU 1
#define BP_DEVICE_GPU 2
#define BP_DEVICE_NPU 3
#define BP_DEVICE_OTHER 4

/* Kinds of memory. */
#define BP_MEMORY_DEVICE 0u
/* Mapped memory that can be the source or target of a copy. It can be an operand only with
 * BP_CAP_HOST_OPERANDS. The host may read and write whole blocks of 256 bytes that no pending work
 * uses, even while work uses other blocks of the buffer. The plugin may use ordinary host memory if
 * copies to and from that memory do not block. */
#define BP_MEMORY_HOST 1u
/* Mapped memory that may also be an operand. The host may read and write any bytes that no pending
 * work uses, even while work uses other bytes of the buffer. A device offers this kind only if
 * these accesses need no flush. */
#define BP_MEMORY_SHARED 2u
#define BP_MEMORY_KINDS 3u

/* Capabilities. The conformance suite tests each capability. */
#define BP_CAP_SYNCHRONOUS 1u     /* each enqueue call returns after its work has completed */
#define BP_CAP_HOST_OPERANDS 2u   /* HOST memory may be an operand */
#define BP_CAP_FTZ_F32 4u         /* arithmetic on f32 and bf16 may flush subnormals to zero */
#define BP_CAP_DETERMINISTIC 8u   /* all operators support BP_OP_FLAG_DETERMINISTIC */
#define BP_CAP_TIMING 16u         /* events created with BP_EVENT_TIMING measure time */
#define BP_CAP_UNIFIED_MEMORY 32u /* device and host share the same physical memory */
/* buffer_address returns addresses in the address space of the process. The bytes at such an
 * address belong to this buffer, and to no other memory of the process or of any device. */
#define BP_CAP_PROCESS_ADDRESSES 64u

/* The properties of a device, which the plugin returns before the device is open. Role: output.
 * Strings are NUL-terminated UTF-8. */
typedef struct bp_device_info {
  uint32_t struct_size;
  uint32_t type; /* BP_DEVICE_* */
  char name[128];
  char driver[128]; /* name and version of the driver */
  /* The vendor's identifier of the smallest hardware unit within which devices can share memory.
   * Each partition of a device therefore has a separate identifier. Zeros mean that there is no
   * identifier. Two plugins may drive the same unit. */
  uint8_t uuid[16];
  /* The DLDeviceType of each BP_MEMORY_* kind, or 0 if there is none. The plugin states the type,
   * because core contains no constants of vendors. */
  int32_t dlpack_type[4];
  int32_t dlpack_id; /* DLPack device id of DEVICE memory; other kinds have id 0 */
  uint32_t reserved;
  uint64_t alignment;        /* default alignment of buffers; bytes, a power of two */
  uint64_t max_buffer_bytes; /* largest DEVICE buffer; other kinds may have a lower limit */
  uint64_t memory_kinds;     /* mask of bits 1 << BP_MEMORY_*; always includes DEVICE */
  uint64_t capabilities;     /* BP_CAP_* */
} bp_device_info;
#define BP_DEVICE_INFO_MIN_SIZE 336u
BP_FROZEN_MIN(bp_device_info, BP_DEVICE_INFO_MIN_SIZE);

/* Total and free memory in bytes. Role: output. free_bytes is a snapshot, or UINT64_MAX if the
 * driver does not report free memory. */
typedef struct bp_memory_info {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t total_bytes;
  uint64_t free_bytes;
} bp_memory_info;
#define BP_MEMORY_INFO_MIN_SIZE 24u
BP_FROZEN_MIN(bp_memory_info, BP_MEMORY_INFO_MIN_SIZE);

/* Parameters of device_open. Role: input. */
typedef struct bp_device_desc {
  uint32_t struct_size;
  uint32_t flags;      /* must be 0 */
  const char* options; /* null or "key=value;key=value"; an unknown key is UNSUPPORTED */
} bp_device_desc;
#define BP_DEVICE_DESC_MIN_SIZE 16u
BP_FROZEN_MIN(bp_device_desc, BP_DEVICE_DESC_MIN_SIZE);

/* Parameters of buffer_create. Role: input. */
typedef struct bp_buffer_desc {
  uint32_t struct_size;
  uint32_t kind;      /* BP_MEMORY_* */
  uint64_t bytes;     /* size of the buffer; at least 1 */
  uint64_t alignment; /* bytes, a power of two; 0 means bp_device_info.alignment */
} bp_buffer_desc;
#define BP_BUFFER_DESC_MIN_SIZE 24u
BP_FROZEN_MIN(bp_buffer_desc, BP_BUFFER_DESC_MIN_SIZE);

/* Parameters of stream_create. Role: input. */
typedef struct bp_stream_desc {
  uint32_t struct_size;
  int32_t priority; /* a hint: 0 is normal, and positive values are more urgent */
} bp_stream_desc;
#define BP_STREAM_DESC_MIN_SIZE 8u
BP_FROZEN_MIN(bp_stream_desc, BP_STREAM_DESC_MIN_SIZE);

/* Flag of event_create that permits event_elapsed. The flag is UNSUPPORTED without
 * BP_CAP_TIMING. */
#define BP_EVENT_TIMING 1u

/* Timeouts of waits are in nanoseconds. A timeout of 0 polls, and UINT64_MAX waits forever. For any
 * other timeout, a wait ends at most 10 ms after the timeout, not counting delays by the system's
 * scheduler. */
#define BP_WAIT_FOREVER UINT64_MAX

/* The slots of a device. Role: table. Core copies the table when it loads the plugin, before any
 * device is open. In the copy, core replaces null optional slots by stubs, and wraps the slots in
 * the user's layers (docs/layers.md). A plugin never calls its own slots through a table. */
typedef struct bp_device_api {
  uint32_t struct_size;
  uint32_t reserved;

  /* Closes a device.
   * Ownership: consumes device; the caller has destroyed all objects of the device.
   * Threads:   any; no other call on this device runs.
   * Stream:    synchronous; may wait for the device.
   * Errors:    none.
   * Since:     0.1, required. */
  void (*close)(bp_device* device);

  /* Returns the total bytes of memory of `kind`, and the bytes of this kind that buffer_create can
   * still allocate. Both numbers cover all open devices on the same hardware.
   * Ownership: out is the caller's.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work.
   * Errors:    UNSUPPORTED for a kind that the device does not offer; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*memory_info)(bp_device* device, uint32_t kind, bp_memory_info* out, bp_error* error);

  /* Allocates memory with undefined contents. The plugin does not cache memory, because core does.
   * Ownership: the caller owns *out, and calls buffer_destroy before close.
   * Threads:   any, concurrently.
   * Stream:    synchronous; may wait for the device.
   * Errors:    OUT_OF_MEMORY; UNSUPPORTED for an unsupported kind or alignment; INVALID_ARGUMENT
   *            for 0 bytes; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*buffer_create)(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error);

  /* Destroys a buffer that no pending work uses.
   * Ownership: consumes buffer and the pointer that buffer_map returned.
   * Threads:   any, concurrently.
   * Stream:    synchronous; may wait for the device.
   * Errors:    none.
   * Since:     0.1, required. */
  void (*buffer_destroy)(bp_device* device, bp_buffer* buffer);

  /* Returns the host address of a HOST or SHARED buffer. The address is the same until
   * buffer_destroy. Work sees host writes that were made before the enqueue call. The host sees
   * device writes after a wait for the work that made them. BP_MEMORY_* states which bytes the host
   * may access while work is pending.
   * Ownership: *out is borrowed from the buffer until buffer_destroy.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work.
   * Errors:    UNSUPPORTED for DEVICE memory; DEVICE_LOST.
   * Since:     0.1, required if memory_kinds has HOST or SHARED. */
  bp_status (*buffer_map)(bp_device* device, bp_buffer* buffer, void** out, bp_error* error);

  /* Creates an in-order stream.
   * Ownership: the caller owns *out, and calls stream_destroy before close.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work.
   * Errors:    OUT_OF_MEMORY; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*stream_create)(bp_device* device, const bp_stream_desc* desc, bp_stream** out, bp_error* error);

  /* Destroys a stream that is idle or has failed.
   * Ownership: consumes stream.
   * Threads:   any; no other call on this stream runs.
   * Stream:    synchronous; may wait for the stream.
   * Errors:    none.
   * Since:     0.1, required. */
  void (*stream_destroy)(bp_device* device, bp_stream* stream);

  /* Submits all earlier work of the stream, even with timeout 0, and waits until that work has
   * completed. The call occupies the stream. To let other threads enqueue during a wait, record an
   * event and call event_wait.
   * Ownership: unchanged.
   * Threads:   any, one call on this stream at a time.
   * Stream:    waits.
   * Errors:    TIMEOUT; EXECUTION_FAILED with the cause of the first failure; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*stream_wait)(bp_device* device, bp_stream* stream, uint64_t timeout_ns, bp_error* error);

  /* Creates an event. `flags` is 0 or BP_EVENT_TIMING.
   * Ownership: the caller owns *out, and calls event_destroy before close.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work.
   * Errors:    UNSUPPORTED for an unsupported flag; OUT_OF_MEMORY; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*event_create)(bp_device* device, uint32_t flags, bp_event** out, bp_error* error);

  /* Destroys an event. Work that already waits for the event is not affected.
   * Ownership: consumes event.
   * Threads:   any; no other call on this event runs.
   * Stream:    synchronous; never waits for device work.
   * Errors:    none.
   * Since:     0.1, required. */
  void (*event_destroy)(bp_device* device, bp_event* event);

  /* Records in `event` the point after all work that was enqueued on `stream` so far. Submits that
   * work, so that it runs without further calls. An event may be recorded again at any time. A wait
   * refers to the point that was recorded last before the wait began. A call that fails does not
   * change the event, so a later wait refers to the previous point.
   * Ownership: unchanged.
   * Threads:   any, one call on this stream and one event_record of this event at a time.
   * Stream:    enqueues.
   * Errors:    OUT_OF_MEMORY; EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*event_record)(bp_device* device, bp_event* event, bp_stream* stream, bp_error* error);

  /* Makes later work of `stream` wait until the event, as last recorded, has completed. An event
   * that was never recorded is treated as completed.
   * Ownership: unchanged.
   * Threads:   any, one call on this stream at a time.
   * Stream:    enqueues; the host does not wait.
   * Errors:    EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*stream_wait_event)(bp_device* device, bp_stream* stream, bp_event* event, bp_error* error);

  /* Waits on the host until the event, as last recorded, has completed. An event that was never
   * recorded is treated as completed. Does not access the stream on which the event was recorded.
   * Ownership: unchanged.
   * Threads:   any, concurrently, even while the event is recorded again.
   * Stream:    waits for the event only.
   * Errors:    TIMEOUT; EXECUTION_FAILED if the stream failed before the event; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*event_wait)(bp_device* device, bp_event* event, uint64_t timeout_ns, bp_error* error);

  /* Returns the device time from `begin` to `end` in nanoseconds, which is negative if `end`
   * completed first. Both events were created with BP_EVENT_TIMING.
   * Ownership: unchanged.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits.
   * Errors:    NOT_READY before both events have completed; INVALID_ARGUMENT if an event was never
   *            recorded or has no timing; UNSUPPORTED for two streams whose clocks cannot be
   *            compared; EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.1, required with BP_CAP_TIMING. */
  bp_status (*event_elapsed)(bp_device* device, bp_event* begin, bp_event* end, int64_t* out_ns, bp_error* error);

  /* Copies bytes between buffers of this device. `bytes` may be 0. The two ranges must not overlap.
   * A copy from HOST to HOST memory is illegal, because the host can copy these bytes without
   * the device.
   * Ownership: both buffers are borrowed until the stream has executed the copy.
   * Threads:   any, one call on this stream at a time.
   * Stream:    enqueues.
   * Errors:    OUT_OF_MEMORY; EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*copy)(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src,
                    uint64_t src_offset, uint64_t bytes, bp_error* error);

  /* Copies from pageable host memory, for drivers that can do so without staging or blocking. If
   * the slot is null, core stages the bytes through a HOST buffer and counts the staging.
   * Ownership: src is borrowed until the stream has executed the copy.
   * Threads:   any, one call on this stream at a time.
   * Stream:    enqueues.
   * Errors:    OUT_OF_MEMORY; EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.1, required if memory_kinds lacks HOST. */
  bp_status (*copy_in)(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, const void* src,
                       uint64_t bytes, bp_error* error);

  /* Copies to pageable host memory, like copy_in.
   * Ownership: dst is borrowed until the stream has executed the copy.
   * Threads:   any, one call on this stream at a time.
   * Stream:    enqueues.
   * Errors:    OUT_OF_MEMORY; EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.1, required if memory_kinds lacks HOST. */
  bp_status (*copy_out)(bp_device* device, bp_stream* stream, void* dst, bp_buffer* src, uint64_t src_offset,
                        uint64_t bytes, bp_error* error);

  /* Prepares an operator for a descriptor. After OK, execution never returns UNSUPPORTED. A plugin
   * should choose kernels by dtype and layout class, not by size. A plan without ANY_SIZE may be
   * compiled for its size. This slot loads everything that an execution needs. Far operands
   * (BP_NEAR_LIMIT) may be UNSUPPORTED. The operator `copy`, however, accepts every far operand
   * that max_buffer_bytes permits. A call with a null `out` is a query, which compiles nothing. A
   * query fills info (see BP_PLAN_FACTS_UNKNOWN) and returns the same status as plan creation,
   * except OUT_OF_MEMORY and DEVICE_LOST.
   * Ownership: the caller owns *out, and calls plan_destroy before close. desc is borrowed for
   *            the call.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work, unless desc->flags has TUNE.
   * Errors:    UNSUPPORTED for an operator, dtype, count, attribute value or flag that the plugin
   *            does not know or support; INVALID_ARGUMENT only for the closed list of
   *            docs/spec/growth.md; OUT_OF_MEMORY; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*plan_create)(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                           bp_error* error);

  /* Destroys a plan. Executions that are already enqueued are not affected.
   * Ownership: consumes plan.
   * Threads:   any; no other call on this plan runs.
   * Stream:    synchronous; never waits for device work.
   * Errors:    none.
   * Since:     0.1, required. */
  void (*plan_destroy)(bp_device* device, bp_plan* plan);

  /* Enqueues one execution.
   * Ownership: execution and all structs that it refers to are borrowed for the call. Buffers are
   *            borrowed until the stream has executed the work.
   * Threads:   any, one call on this stream at a time; one plan on many streams at once.
   * Stream:    enqueues.
   * Errors:    OUT_OF_MEMORY with nothing enqueued; EXECUTION_FAILED; DEVICE_LOST; INVALID_ARGUMENT
   *            if a precondition is violated and the plugin checks it.
   * Since:     0.1, required. */
  bp_status (*plan_execute)(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                            bp_error* error);

  /* Returns the workspace in bytes that an ANY_SIZE plan needs for the sizes of `desc`. Makes no
   * driver call and no allocation.
   * Ownership: unchanged; desc is borrowed for the call.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits.
   * Errors:    INVALID_ARGUMENT for a descriptor outside the plan's class.
   * Since:     0.1, required if the plugin sets BP_PLAN_SIZED_WORKSPACE. */
  bp_status (*plan_workspace)(bp_device* device, bp_plan* plan, const bp_op_desc* desc, uint64_t* out_bytes,
                              bp_error* error);

  /* Returns the address that code on the device uses for the first byte of `buffer`, if the
   * device's memory has addresses. Kernels of other libraries and a DLTensor's `data` use the
   * address. No byte of another living buffer of the device has the same address.
   * Ownership: the address is borrowed from the buffer until buffer_destroy.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work.
   * Errors:    UNSUPPORTED if buffers have no address; DEVICE_LOST.
   * Since:     0.2, optional; required with BP_CAP_PROCESS_ADDRESSES. */
  bp_status (*buffer_address)(bp_device* device, bp_buffer* buffer, uint64_t* out, bp_error* error);
} bp_device_api;
#define BP_DEVICE_API_MIN_SIZE 176u
BP_FROZEN_MIN(bp_device_api, BP_DEVICE_API_MIN_SIZE);

#endif
