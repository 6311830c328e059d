/* SPDX-License-Identifier: Apache-2.0 */
/* The device: its properties, and the table of its slots.
 *
 * These rules apply to every slot unless its comment states otherwise:
 * Sizes    Unknown flag bits and enumerators are treated like unknown bytes. Input: UNSUPPORTED.
 *          Output: the reader ignores them. So an output bit may inform or permit; it may oblige a
 *          reader only if the reader requested it by an input bit.
 * Failure  *out is null and *error is filled. Success with a null *out is nonconforming. Any slot
 *          may return DEVICE_LOST. An enqueue is all or nothing: if it has submitted a part and
 *          cannot continue, it fails its stream (EXECUTION_FAILED). It then never returns
 *          OUT_OF_MEMORY or UNSUPPORTED.
 * Threads  Device and event slots: any thread, concurrently, except that two records of one event
 *          exclude each other. A stream: one call at a time, without thread affinity. A plan is
 *          immutable: any number of threads and streams may execute it at once.
 *          A wait in progress, of the host or of a stream, refers to the record that was the latest
 *          when it began, regardless of later records. A stream's wait outlives the event, and a
 *          record outlives its stream.
 *          A slot restores the state of the thread: current context, floating-point state, signal
 *          mask, locale. It does not disturb other users of the hardware in the process: no stream
 *          is ordered with a vendor's default stream, and no slot breaks a capture that another
 *          library has in progress, as far as the driver permits.
 * Stream   An enqueue never waits for the device, except for room that earlier work will free: work
 *          of the same stream, or of streams that share its hardware queue and do not wait for it.
 *          It allocates no device memory and no pinned memory. It may allocate from the host heap,
 *          but not if it ran before with the same plan. A device with BP_CAP_SYNCHRONOUS finishes
 *          the work inside the call instead.
 * Lifetime A plan may be destroyed as soon as the enqueue has returned, and so may an event, unless
 *          an event_wait on it is in progress: the plugin keeps what it needs. Before the caller
 *          destroys a buffer, stream or device, it makes sure that no pending work uses it. A
 *          plugin need not check this; it may wait or free immediately.
 * Errors   A failed stream returns its first error from every later call. An event fails if its
 *          accepted record follows work that failed. A stream that waits for a failed event fails
 *          with the same error, at its next wait at the latest. Outputs of failed work, and of
 *          later work of the stream, are undefined; nothing else has changed.
 *          On a failed stream stream_wait returns TIMEOUT until no work of the stream can access
 *          memory any more, and then the error; other slots return immediately. event_wait and
 *          event_elapsed on an event that its stream failed to reach return that stream's error:
 *          they neither hang nor succeed.
 *          EXECUTION_FAILED ends with the stream. DEVICE_LOST ends with the device, and may affect
 *          all opens of the same hardware. After it every slot and every destroy returns promptly.
 *          An event that passed before the loss returns OK or DEVICE_LOST. A later device_open may
 *          return UNAVAILABLE until the process ends.
 *          Core's checks (docs/requirements.md) are preconditions here: a plugin may return
 *          INVALID_ARGUMENT for an execution that violates one, but it need not.
 * Process  After fork() the child makes no calls. The process may exit at any moment, with
 *          everything alive. */
#ifndef BACKPLANE_DEVICE_H
#define BACKPLANE_DEVICE_H

#include "ops.h"

/* Opaque handles; only the plugin knows their content. */
typedef struct bp_plugin bp_plugin;
typedef struct bp_device bp_device;
typedef struct bp_stream bp_stream; /* in-order queue */
typedef struct bp_event bp_event;   /* a point in a stream; belongs to its device */
typedef struct bp_plan bp_plan;     /* an operator prepared for a descriptor */

/* Device types: information only; they do not influence selection or ranking. */
#define BP_DEVICE_CPU 1
#define BP_DEVICE_GPU 2
#define BP_DEVICE_NPU 3
#define BP_DEVICE_OTHER 4

/* Kinds of memory. */
#define BP_MEMORY_DEVICE 0u
/* Mapped memory: a source or target of copy, and an operand only with BP_CAP_HOST_OPERANDS. The
 * host may read and write whole blocks of 256 bytes that no pending work uses, even while work uses
 * other blocks of the buffer. Ordinary memory suffices if copies of it do not block. */
#define BP_MEMORY_HOST 1u
/* Mapped memory that may also be an operand. The host may read and write any bytes that no pending
 * work uses, even while work uses other bytes of the buffer. A device offers this kind only if that
 * needs no flush. */
#define BP_MEMORY_SHARED 2u
#define BP_MEMORY_KINDS 3u

/* Capabilities; the conformance suite tests each. */
#define BP_CAP_SYNCHRONOUS 1u     /* enqueues finish the work before they return */
#define BP_CAP_HOST_OPERANDS 2u   /* HOST memory may be an operand */
#define BP_CAP_FTZ_F32 4u         /* arithmetic on f32 and bf16 may flush subnormals to zero */
#define BP_CAP_DETERMINISTIC 8u   /* all operators support BP_OP_FLAG_DETERMINISTIC */
#define BP_CAP_TIMING 16u         /* events created with BP_EVENT_TIMING measure time */
#define BP_CAP_UNIFIED_MEMORY 32u /* device and host share the same physical memory */
/* buffer_address returns addresses of the process: the bytes at an address belong to this buffer
 * and to no other memory of the process or of any device. */
#define BP_CAP_PROCESS_ADDRESSES 64u

/* The properties of a device, before it is open. Role: output. Strings are NUL-terminated UTF-8. */
typedef struct bp_device_info {
  uint32_t struct_size;
  uint32_t type; /* BP_DEVICE_* */
  char name[128];
  char driver[128]; /* name and version */
  /* The vendor's identifier of the smallest unit with which memory can be shared; a partition has
   * its own identifier. Two plugins may drive one device. Zero: none. */
  uint8_t uuid[16];
  /* The DLDeviceType of each BP_MEMORY_*; 0: none. Core knows no vendor, so the plugin states
   * it. */
  int32_t dlpack_type[4];
  int32_t dlpack_id; /* the id for DEVICE memory; other kinds have id 0 */
  uint32_t reserved;
  uint64_t alignment;        /* of buffers created with alignment 0: bytes, a power of two */
  uint64_t max_buffer_bytes; /* the limit for DEVICE memory; other kinds may have a lower one */
  uint64_t memory_kinds;     /* mask of 1 << BP_MEMORY_*; always includes DEVICE */
  uint64_t capabilities;     /* BP_CAP_* */
} bp_device_info;
#define BP_DEVICE_INFO_MIN_SIZE 336u
BP_FROZEN_MIN(bp_device_info, BP_DEVICE_INFO_MIN_SIZE);

/* Sizes in bytes. Role: output. free_bytes is a snapshot, or UINT64_MAX if the driver does not
 * report it. */
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
  uint32_t flags;      /* 0 */
  const char* options; /* null or "key=value;key=value"; an unknown key is UNSUPPORTED */
} bp_device_desc;
#define BP_DEVICE_DESC_MIN_SIZE 16u
BP_FROZEN_MIN(bp_device_desc, BP_DEVICE_DESC_MIN_SIZE);

/* Role: input. */
typedef struct bp_buffer_desc {
  uint32_t struct_size;
  uint32_t kind;      /* BP_MEMORY_* */
  uint64_t bytes;     /* at least 1 */
  uint64_t alignment; /* bytes, a power of two; 0: bp_device_info.alignment */
} bp_buffer_desc;
#define BP_BUFFER_DESC_MIN_SIZE 24u
BP_FROZEN_MIN(bp_buffer_desc, BP_BUFFER_DESC_MIN_SIZE);

/* Role: input. */
typedef struct bp_stream_desc {
  uint32_t struct_size;
  int32_t priority; /* 0 normal, positive more urgent; a hint */
} bp_stream_desc;
#define BP_STREAM_DESC_MIN_SIZE 8u
BP_FROZEN_MIN(bp_stream_desc, BP_STREAM_DESC_MIN_SIZE);

/* Flag of event_create, which permits event_elapsed. UNSUPPORTED without BP_CAP_TIMING. */
#define BP_EVENT_TIMING 1u

/* Timeouts of waits, in nanoseconds: 0 polls, UINT64_MAX waits forever. Otherwise a plugin sleeps
 * at most 10 ms longer than the timeout; delays by the system's scheduler do not count. */
#define BP_WAIT_FOREVER UINT64_MAX

/* The slots. Role: table. Core copies it when it loads the plugin, before any device is open. In
 * the copy it replaces null optional slots by stubs and inserts layers. A plugin never calls itself
 * through a table. */
typedef struct bp_device_api {
  uint32_t struct_size;
  uint32_t reserved;

  /* Ends a device.
   * Ownership: consumes device; every object of it has been destroyed.
   * Threads:   any; no other call on this device runs.
   * Stream:    synchronous; may wait for the device.
   * Errors:    none.
   * Since:     0.1, required. */
  void (*close)(bp_device* device);

  /* Returns the total bytes of memory of `kind`, and the bytes that buffer_create of that kind can
   * still allocate. Counts all opens of the hardware.
   * Ownership: out is the caller's.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work.
   * Errors:    UNSUPPORTED for a kind that the device does not offer; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*memory_info)(bp_device* device, uint32_t kind, bp_memory_info* out, bp_error* error);

  /* Allocates memory with undefined contents. The plugin does not cache; core does.
   * Ownership: caller; free with buffer_destroy before the device.
   * Threads:   any, concurrently.
   * Stream:    synchronous; may wait for the device.
   * Errors:    OUT_OF_MEMORY; UNSUPPORTED kind or alignment; INVALID_ARGUMENT for 0 bytes;
   *            DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*buffer_create)(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error);

  /* Ends a buffer that no pending work uses.
   * Ownership: consumes buffer and the pointer that buffer_map returned.
   * Threads:   any, concurrently.
   * Stream:    synchronous; may wait for the device.
   * Errors:    none.
   * Since:     0.1, required. */
  void (*buffer_destroy)(bp_device* device, bp_buffer* buffer);

  /* Returns the host address of a HOST or SHARED buffer. The address is the same until destroy.
   * Work sees host writes that were made before its enqueue. The host sees device writes after a
   * wait that covers them. BP_MEMORY_* states which bytes the host may access meanwhile.
   * Ownership: *out is borrowed from the buffer until buffer_destroy.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work.
   * Errors:    UNSUPPORTED for DEVICE memory; DEVICE_LOST.
   * Since:     0.1, required if memory_kinds has HOST or SHARED. */
  bp_status (*buffer_map)(bp_device* device, bp_buffer* buffer, void** out, bp_error* error);

  /* Creates an in-order stream.
   * Ownership: caller; free with stream_destroy before the device.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work.
   * Errors:    OUT_OF_MEMORY; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*stream_create)(bp_device* device, const bp_stream_desc* desc, bp_stream** out, bp_error* error);

  /* Ends a stream that is idle, or has failed.
   * Ownership: consumes stream.
   * Threads:   any; no other call on this stream runs.
   * Stream:    synchronous; may wait for the stream.
   * Errors:    none.
   * Since:     0.1, required. */
  void (*stream_destroy)(bp_device* device, bp_stream* stream);

  /* Submits all earlier work of the stream, even with timeout 0, and waits until that work has
   * ended. The wait occupies the stream. To let other threads enqueue meanwhile, record an event
   * and wait for the event.
   * Ownership: nothing changes hands.
   * Threads:   any, one call on this stream at a time.
   * Stream:    waits.
   * Errors:    TIMEOUT; EXECUTION_FAILED with the cause of the first failure; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*stream_wait)(bp_device* device, bp_stream* stream, uint64_t timeout_ns, bp_error* error);

  /* Creates an event. `flags` is 0 or BP_EVENT_TIMING.
   * Ownership: caller; free with event_destroy before the device.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work.
   * Errors:    UNSUPPORTED flag; OUT_OF_MEMORY; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*event_create)(bp_device* device, uint32_t flags, bp_event** out, bp_error* error);

  /* Ends an event; work that already waits for it is not affected.
   * Ownership: consumes event.
   * Threads:   any; no other call on this event runs.
   * Stream:    synchronous; never waits for device work.
   * Errors:    none.
   * Since:     0.1, required. */
  void (*event_destroy)(bp_device* device, bp_event* event);

  /* Marks the point after all work that was enqueued so far, and submits that work, which then runs
   * without further calls. An event may be recorded again at any time. A wait refers to the latest
   * record at the moment of the wait's call. A record that fails does not change the event, so that
   * a later wait refers to the previous record.
   * Ownership: nothing changes hands.
   * Threads:   any, one call on this stream and one record of this event at a time.
   * Stream:    enqueues.
   * Errors:    OUT_OF_MEMORY; EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*event_record)(bp_device* device, bp_event* event, bp_stream* stream, bp_error* error);

  /* Later work of `stream` starts after the event's latest record. An event that was never recorded
   * counts as passed.
   * Ownership: nothing changes hands.
   * Threads:   any, one call on this stream at a time.
   * Stream:    enqueues; the host does not wait.
   * Errors:    EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*stream_wait_event)(bp_device* device, bp_stream* stream, bp_event* event, bp_error* error);

  /* Waits on the host for the event's latest record. An event that was never recorded counts as
   * passed. Never accesses the stream.
   * Ownership: nothing changes hands.
   * Threads:   any, concurrently, also while the event is recorded again.
   * Stream:    waits for the event only.
   * Errors:    TIMEOUT; EXECUTION_FAILED if the stream failed before the event; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*event_wait)(bp_device* device, bp_event* event, uint64_t timeout_ns, bp_error* error);

  /* Returns the device time from `begin` to `end` in nanoseconds; negative if `end` came first.
   * Both were created with BP_EVENT_TIMING.
   * Ownership: nothing changes hands.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits.
   * Errors:    NOT_READY before both have passed; INVALID_ARGUMENT if one was never recorded or has
   *            no timing; UNSUPPORTED for two streams whose clocks cannot be compared;
   *            EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.1, required with BP_CAP_TIMING. */
  bp_status (*event_elapsed)(bp_device* device, bp_event* begin, bp_event* end, int64_t* out_ns, bp_error* error);

  /* Copies bytes between buffers of this device. 0 bytes are legal. Overlap is illegal, and so is
   * HOST to HOST, which the host does itself.
   * Ownership: both buffers are borrowed until the stream has executed the copy.
   * Threads:   any, one call on this stream at a time.
   * Stream:    enqueues.
   * Errors:    OUT_OF_MEMORY; EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*copy)(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src,
                    uint64_t src_offset, uint64_t bytes, bp_error* error);

  /* Copies from pageable host memory, for drivers that can do so without staging or blocking. If
   * the slot is null, core stages through a HOST buffer and counts that.
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

  /* Prepares an operator for a descriptor. The status is truthful: after OK, execution never
   * returns UNSUPPORTED. A kernel should be keyed by dtype and layout class, not by size; a plan
   * that is not ANY_SIZE may be compiled for its size. This slot loads what the execution needs.
   * Far operands (BP_NEAR_LIMIT) may be UNSUPPORTED, except for copy if max_buffer_bytes admits
   * them. A call with a null `out` is a query: it returns the same status, except OUT_OF_MEMORY and
   * DEVICE_LOST, fills info (see BP_PLAN_FACTS_UNKNOWN), and compiles nothing.
   * Ownership: caller; free with plan_destroy before the device. desc is borrowed for the call.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work, unless desc->flags has TUNE.
   * Errors:    UNSUPPORTED for an operator, dtype, count, attribute value or flag that the plugin
   *            does not know or support; INVALID_ARGUMENT only for the closed list of
   *            docs/spec/growth.md; OUT_OF_MEMORY; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*plan_create)(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                           bp_error* error);

  /* Ends a plan; enqueued executions of it are not affected.
   * Ownership: consumes plan.
   * Threads:   any; no other call on this plan runs.
   * Stream:    synchronous; never waits for device work.
   * Errors:    none.
   * Since:     0.1, required. */
  void (*plan_destroy)(bp_device* device, bp_plan* plan);

  /* Enqueues one execution.
   * Ownership: execution and everything that it points to is borrowed for the call; buffers until
   *            the stream has executed the work.
   * Threads:   any, one call on this stream at a time; one plan on many streams at once.
   * Stream:    enqueues.
   * Errors:    OUT_OF_MEMORY with nothing enqueued; EXECUTION_FAILED; DEVICE_LOST; INVALID_ARGUMENT
   *            if a precondition is violated and the plugin checks it.
   * Since:     0.1, required. */
  bp_status (*plan_execute)(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                            bp_error* error);

  /* Returns the workspace of an ANY_SIZE plan for the sizes of `desc`. Uses only host arithmetic:
   * no driver call, no allocation.
   * Ownership: nothing changes hands; desc is borrowed for the call.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits.
   * Errors:    INVALID_ARGUMENT for a descriptor outside the plan's class.
   * Since:     0.1, required of a plugin that sets BP_PLAN_SIZED_WORKSPACE. */
  bp_status (*plan_workspace)(bp_device* device, bp_plan* plan, const bp_op_desc* desc, uint64_t* out_bytes,
                              bp_error* error);

  /* Returns the address by which the device's own code accesses the first byte of `buffer`, if
   * memory has addresses. Kernels of other libraries and a DLTensor's `data` use the address. It
   * differs from the address of every byte of the device's other living buffers.
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
