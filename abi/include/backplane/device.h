/* SPDX-License-Identifier: Apache-2.0 */
/* The device: what it says of itself, and the table of its slots.
 *
 * Rules that hold for every slot unless its comment says otherwise:
 * Sizes    Unknown flag bits and enumerators are as unknown bytes. Input: UNSUPPORTED. Output: the reader ignores them, so
 *          an output bit may inform or permit, and never oblige, a reader that did not ask for it by an input bit.
 * Failure  *out is null and *error filled. Success with a null *out is nonconforming. Any slot may report DEVICE_LOST.
 *          An enqueue is whole or nothing: one that has submitted a part and cannot go on fails its stream
 *          (EXECUTION_FAILED), and never answers OUT_OF_MEMORY or UNSUPPORTED.
 * Threads  Device and event slots: any thread, concurrently, except that two records of one event exclude each other. A
 *          stream: one call at a time, without thread affinity. A plan is immutable: any number of threads and streams
 *          execute it at once. A wait in progress, of the host or of a stream, keeps to the record that it began with,
 *          whatever is recorded meanwhile; a stream's wait also outlives the event, and a record its stream.
 *          A slot leaves the thread as it found it: current context, floating-point state, signal mask, locale.
 *          Other users of the hardware in the process stay undisturbed: no stream is ordered with a vendor's default
 *          stream, and no slot, as far as the driver lets it, breaks a capture that another library has in progress.
 * Stream   An enqueue never waits for the device, except for room that earlier work will free: work of the same stream, or of
 *          streams that share its hardware queue and that it does not hold up itself. It allocates no device or pinned
 *          memory. The host heap may grow, but an enqueue that ran before with the same plan allocates nothing. A device
 *          with BP_CAP_SYNCHRONOUS finishes the work inside the call instead.
 * Lifetime A plan may be destroyed as soon as the enqueue returned, an event too unless an event_wait on it is in progress:
 *          the plugin keeps what it needs. The caller proves that no pending work uses a buffer, stream or device before
 *          it destroys it; a plugin need not check, and may wait or free at once.
 * Errors   A failed stream answers every later call with its first error. An event fails if its accepted record follows work
 *          that failed. A stream that waits on a failed event fails with the same error, at its next wait at the latest.
 *          Outputs of failed work, and of later work of the stream, are undefined; nothing else changed.
 *          On a failed stream stream_wait answers with the error only when no work of it will touch memory again,
 *          and TIMEOUT until then; other slots answer at once. event_wait and event_elapsed on an event that its stream
 *          failed to reach answer with that stream's error: they neither hang nor succeed. EXECUTION_FAILED ends with that
 *          stream, DEVICE_LOST with the device, and may strike all opens of the same hardware; after it every slot answers
 *          at once and every destroy returns promptly. An event that passed before the loss answers OK or DEVICE_LOST. A
 *          later device_open may answer UNAVAILABLE until the process ends.
 *          What core checks (docs/requirements.md) are preconditions here: a plugin may answer INVALID_ARGUMENT to an
 *          execution that breaks one, and need not.
 * Process  After fork() the child calls nothing. Exit at any moment, with everything alive, is safe. */
#ifndef BACKPLANE_DEVICE_H
#define BACKPLANE_DEVICE_H

#include "ops.h"

/* Opaque and the plugin's own. */
typedef struct bp_plugin bp_plugin;
typedef struct bp_device bp_device;
typedef struct bp_stream bp_stream; /* in-order queue */
typedef struct bp_event bp_event;   /* a point in a stream; belongs to its device */
typedef struct bp_plan bp_plan;     /* an operator made ready for a descriptor */

/* Device types: information only; nothing selects or ranks by them. */
#define BP_DEVICE_CPU 1
#define BP_DEVICE_GPU 2
#define BP_DEVICE_NPU 3
#define BP_DEVICE_OTHER 4

/* Kinds of memory. */
#define BP_MEMORY_DEVICE 0u
/* Mapped; source and target of copy; an operand only with BP_CAP_HOST_OPERANDS. The host may read and write whole blocks of 256
 * bytes of a buffer that no pending work uses, at any time, whatever pending work does with its other blocks. Ordinary memory
 * will do, with copies that do not block. */
#define BP_MEMORY_HOST 1u
/* Mapped, and an operand. The host may read and write any bytes that no pending work uses, at any time, whatever pending work
 * does with other bytes of the same buffer: only where that needs no flush. */
#define BP_MEMORY_SHARED 2u
#define BP_MEMORY_KINDS 3u

/* Capabilities; each is tested. */
#define BP_CAP_SYNCHRONOUS 1u     /* enqueues finish the work before they return */
#define BP_CAP_HOST_OPERANDS 2u   /* HOST memory may be an operand */
#define BP_CAP_FTZ_F32 4u         /* arithmetic on f32 and bf16 may flush subnormals to zero */
#define BP_CAP_DETERMINISTIC 8u   /* honours BP_OP_FLAG_DETERMINISTIC for every operator that it has */
#define BP_CAP_TIMING 16u         /* events made with BP_EVENT_TIMING can be timed */
#define BP_CAP_UNIFIED_MEMORY 32u /* device and host share one physical memory */
/* buffer_address gives addresses of the process: the bytes at one meet no other buffer of any device and no other memory. */
#define BP_CAP_PROCESS_ADDRESSES 64u

/* What a device says of itself, before it is open. Role: output. Strings are NUL-terminated UTF-8. */
typedef struct bp_device_info {
  uint32_t struct_size;
  uint32_t type; /* BP_DEVICE_* */
  char name[128];
  char driver[128]; /* name and version */
  uint8_t
      uuid[16]; /* the vendor's own, of the smallest unit that memory can be shared with: a partition has its own. Two
                     * plugins may drive one device. Zero: none */
  int32_t dlpack_type[4]; /* a DLDevice's type by BP_MEMORY_*, 0: none. Core knows no vendor, so the plugin says it */
  int32_t dlpack_id;      /* of DEVICE memory; 0 for the other kinds */
  uint32_t reserved;
  uint64_t alignment;        /* bytes, a power of two: what buffer_create gives when 0 is asked */
  uint64_t max_buffer_bytes; /* of DEVICE memory; other kinds may have less */
  uint64_t memory_kinds;     /* mask of 1 << BP_MEMORY_*; DEVICE always */
  uint64_t capabilities;     /* BP_CAP_* */
} bp_device_info;
#define BP_DEVICE_INFO_MIN_SIZE 336u
BP_FROZEN_MIN(bp_device_info, BP_DEVICE_INFO_MIN_SIZE);

/* Role: output. Bytes; free_bytes is a snapshot, UINT64_MAX where the driver does not say. */
typedef struct bp_memory_info {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t total_bytes;
  uint64_t free_bytes;
} bp_memory_info;
#define BP_MEMORY_INFO_MIN_SIZE 24u
BP_FROZEN_MIN(bp_memory_info, BP_MEMORY_INFO_MIN_SIZE);

/* How a device is opened. Role: input. */
typedef struct bp_device_desc {
  uint32_t struct_size;
  uint32_t flags;      /* 0 */
  const char* options; /* null, or "key=value;key=value" of the plugin's own; an unknown key is UNSUPPORTED */
} bp_device_desc;
#define BP_DEVICE_DESC_MIN_SIZE 16u
BP_FROZEN_MIN(bp_device_desc, BP_DEVICE_DESC_MIN_SIZE);

/* Role: input. */
typedef struct bp_buffer_desc {
  uint32_t struct_size;
  uint32_t kind;      /* BP_MEMORY_* */
  uint64_t bytes;     /* at least 1 */
  uint64_t alignment; /* bytes, a power of two; 0: the device's own, which bp_device_info states */
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

#define BP_EVENT_TIMING 1u /* flag of event_create: event_elapsed will be asked; UNSUPPORTED without BP_CAP_TIMING */

/* Timeouts of waits, in nanoseconds: 0 polls, UINT64_MAX waits for ever. Otherwise a plugin sleeps no longer than 10 ms past
 * the end; how the system schedules threads is not its affair. */
#define BP_WAIT_FOREVER UINT64_MAX

/* The slots. Role: table. Core copies it when the plugin is loaded, before any device is open; null optional slots are
 * stubbed and layers are spliced in the copy. A plugin never calls itself through a table. */
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

  /* Total and free bytes of memory of `kind`: of what buffer_create of that kind can still give. Of every open of the hardware.
   * Ownership: out is the caller's.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work.
   * Errors:    UNSUPPORTED for a kind that the device does not offer; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*memory_info)(bp_device* device, uint32_t kind, bp_memory_info* out, bp_error* error);

  /* Raw allocation; contents are undefined. Core caches above it.
   * Ownership: caller; free with buffer_destroy before the device.
   * Threads:   any, concurrently.
   * Stream:    synchronous; may wait for the device.
   * Errors:    OUT_OF_MEMORY; UNSUPPORTED kind or alignment; INVALID_ARGUMENT for 0 bytes; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*buffer_create)(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error);

  /* Ends a buffer that no pending work uses.
   * Ownership: consumes buffer and the pointer that buffer_map gave.
   * Threads:   any, concurrently.
   * Stream:    synchronous; may wait for the device.
   * Errors:    none.
   * Since:     0.1, required. */
  void (*buffer_destroy)(bp_device* device, bp_buffer* buffer);

  /* The host address of a HOST or SHARED buffer: one pointer until destroy. Host writes made before an enqueue are seen by
   * that work; device writes are seen after a wait that covers them. Which bytes the host may touch meanwhile: BP_MEMORY_*.
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

  /* Submits all earlier work of the stream, also when it polls, and waits until it has ended. It occupies the stream: who
   * must not block those that enqueue records an event and waits on that.
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

  /* Ends an event; work that waits on it already is not disturbed.
   * Ownership: consumes event.
   * Threads:   any; no other call on this event runs.
   * Stream:    synchronous; never waits for device work.
   * Errors:    none.
   * Since:     0.1, required. */
  void (*event_destroy)(bp_device* device, bp_event* event);

  /* Marks the point behind all work enqueued so far, and submits that work, which then runs without further calls.
   * Recording again is legal at any time: a wait means the latest record at the moment that the wait is called. A record that
   * fails leaves the event as it was: a caller that goes on waits for the record before it.
   * Ownership: nothing changes hands.
   * Threads:   any, one call on this stream and one record of this event at a time.
   * Stream:    enqueues.
   * Errors:    OUT_OF_MEMORY; EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*event_record)(bp_device* device, bp_event* event, bp_stream* stream, bp_error* error);

  /* Later work of `stream` starts after the event's latest record. One never recorded counts as passed.
   * Ownership: nothing changes hands.
   * Threads:   any, one call on this stream at a time.
   * Stream:    enqueues; the host does not wait.
   * Errors:    EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*stream_wait_event)(bp_device* device, bp_stream* stream, bp_event* event, bp_error* error);

  /* Waits on the host for the event's latest record; one never recorded counts as passed. Never touches the stream.
   * Ownership: nothing changes hands.
   * Threads:   any, concurrently, also while the event is recorded again.
   * Stream:    waits for the event only.
   * Errors:    TIMEOUT; EXECUTION_FAILED if the stream failed before the event; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*event_wait)(bp_device* device, bp_event* event, uint64_t timeout_ns, bp_error* error);

  /* Device time from `begin` to `end` in nanoseconds; negative if end came first. Both were made with BP_EVENT_TIMING.
   * Ownership: nothing changes hands.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits.
   * Errors:    NOT_READY before both have passed; INVALID_ARGUMENT if one was never recorded or has no timing; UNSUPPORTED
   *            for two streams whose clocks do not compare; EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.1, required with BP_CAP_TIMING. */
  bp_status (*event_elapsed)(bp_device* device, bp_event* begin, bp_event* end, int64_t* out_ns, bp_error* error);

  /* Copies bytes between buffers of this device; 0 bytes is legal, overlap is not, nor is HOST to HOST, which the host
   * does itself.
   * Ownership: both buffers are borrowed until the stream has passed the copy.
   * Threads:   any, one call on this stream at a time.
   * Stream:    enqueues.
   * Errors:    OUT_OF_MEMORY; EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*copy)(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src,
                    uint64_t src_offset, uint64_t bytes, bp_error* error);

  /* Copies from pageable host memory, for a driver that takes it without staging or blocking. Where the slot is null core
   * stages through a HOST buffer, and counts it.
   * Ownership: src is borrowed until the stream has passed the copy.
   * Threads:   any, one call on this stream at a time.
   * Stream:    enqueues.
   * Errors:    OUT_OF_MEMORY; EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.1, required if memory_kinds lacks HOST. */
  bp_status (*copy_in)(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, const void* src,
                       uint64_t bytes, bp_error* error);

  /* Copies to pageable host memory, as copy_in.
   * Ownership: dst is borrowed until the stream has passed the copy.
   * Threads:   any, one call on this stream at a time.
   * Stream:    enqueues.
   * Errors:    OUT_OF_MEMORY; EXECUTION_FAILED; DEVICE_LOST.
   * Since:     0.1, required if memory_kinds lacks HOST. */
  bp_status (*copy_out)(bp_device* device, bp_stream* stream, void* dst, bp_buffer* src, uint64_t src_offset,
                        uint64_t bytes, bp_error* error);

  /* Makes an operator ready. The status is the one truthful answer to "can you?": after OK, execution never answers
   * UNSUPPORTED. A kernel should be keyed by dtype and layout class, not by size; a plan that is not ANY_SIZE may be compiled
   * for its size. What needs loading is loaded here. Far operands (BP_NEAR_LIMIT) may be UNSUPPORTED, but not those of copy
   * where max_buffer_bytes admits them. With a null `out` it gives the same status, but for OUT_OF_MEMORY and DEVICE_LOST,
   * fills info (see BP_PLAN_FACTS_UNKNOWN), and compiles nothing.
   * Ownership: caller; free with plan_destroy before the device. desc is borrowed for the call.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work, unless desc->flags has TUNE.
   * Errors:    UNSUPPORTED for what the plugin does not know or do: operator, dtype, count, attribute value, flag.
   *            INVALID_ARGUMENT for the closed list of docs/spec/growth.md only; OUT_OF_MEMORY; DEVICE_LOST.
   * Since:     0.1, required. */
  bp_status (*plan_create)(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info,
                           bp_error* error);

  /* Ends a plan; enqueued executions of it are not disturbed.
   * Ownership: consumes plan.
   * Threads:   any; no other call on this plan runs.
   * Stream:    synchronous; never waits for device work.
   * Errors:    none.
   * Since:     0.1, required. */
  void (*plan_destroy)(bp_device* device, bp_plan* plan);

  /* Enqueues one execution.
   * Ownership: execution and all that it points at is borrowed for the call; buffers until the stream has passed the work.
   * Threads:   any, one call on this stream at a time; one plan on many streams at once.
   * Stream:    enqueues.
   * Errors:    OUT_OF_MEMORY with nothing enqueued; EXECUTION_FAILED; DEVICE_LOST; INVALID_ARGUMENT where a precondition is
   *            broken and the plugin looks.
   * Since:     0.1, required. */
  bp_status (*plan_execute)(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                            bp_error* error);

  /* Workspace of an ANY_SIZE plan for the sizes of `desc`. Host arithmetic: no driver call, no allocation.
   * Ownership: nothing changes hands; desc is borrowed for the call.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits.
   * Errors:    INVALID_ARGUMENT for a descriptor outside the plan's class.
   * Since:     0.1, required of a plugin that sets BP_PLAN_SIZED_WORKSPACE. */
  bp_status (*plan_workspace)(bp_device* device, bp_plan* plan, const bp_op_desc* desc, uint64_t* out_bytes,
                              bp_error* error);

  /* The address by which the device's own code reaches the first byte of `buffer`, where memory has such: another library's
   * kernels and a DLTensor's `data` take it. It differs from that of every byte of the device's other living buffers.
   * Ownership: the address is borrowed from the buffer until buffer_destroy.
   * Threads:   any, concurrently.
   * Stream:    synchronous; never waits for device work.
   * Errors:    UNSUPPORTED where buffers have no address; DEVICE_LOST.
   * Since:     0.2, optional; required with BP_CAP_PROCESS_ADDRESSES. */
  bp_status (*buffer_address)(bp_device* device, bp_buffer* buffer, uint64_t* out, bp_error* error);
} bp_device_api;
#define BP_DEVICE_API_MIN_SIZE 176u
BP_FROZEN_MIN(bp_device_api, BP_DEVICE_API_MIN_SIZE);

#endif
