/* SPDX-License-Identifier: Apache-2.0 */
/* The host API: what a framework calls. Link libbackplane; the C++20 face of it is backplane.hpp.
 *
 * Handles   Opaque values, not addresses. Each create gives one reference to the caller, which the release of that noun
 *           ends. A handle keeps its parents alive (buffer, stream, event -> device -> plugin -> registry), so the order of
 *           release is free. A released or foreign handle is answered INVALID_ARGUMENT. Releasing null does nothing.
 * Errors    Every fallible call returns bp_status and fills the caller's bp_error (who, what, why, what to do); on failure
 *           nothing was changed or enqueued and outputs are null or zero. bp_error may be null.
 * Threads   Everything from any thread at once, but a stream: one call at a time (the caller's duty), without thread
 *           affinity; BPH_STREAM_SHARED lifts that. Releasing a handle while another thread's call uses it is a caller's error.
 * Stream    Calls that take a stream enqueue and return, unless they say that they wait.
 * Structs   As in the plugin ABI: struct_size first, at least BPH_*_MIN_SIZE. Inputs with non-zero bytes beyond what this
 *           library knows are UNSUPPORTED, and so is a `reserved` that is not 0; a zeroed rest means the default. A struct_size
 *           above BP_STRUCT_LIMIT is INVALID_ARGUMENT, and nothing behind it is read.
 * Flags     A bit that the function does not know is UNSUPPORTED. What is later than 0.2 says Since (docs/spec/growth.md).
 * fork      A child may call nothing of what its parent opened: such calls are answered UNAVAILABLE.
 * Exit      Safe at any moment, with everything alive; nothing runs in destructors of this library. */
#ifndef BACKPLANE_BACKPLANE_H
#define BACKPLANE_BACKPLANE_H

#include <backplane/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define BPH_API
#else
#define BPH_API __attribute__((visibility("default")))
#endif

typedef struct bph_registry bph_registry;
typedef struct bph_plugin bph_plugin;
typedef struct bph_device bph_device;
typedef struct bph_stream bph_stream;
typedef struct bph_event bph_event;
typedef struct bph_buffer bph_buffer;

/* ---- This library -------------------------------------------------------------------------------------------------- */

/* Package version of the loaded library, "major.minor.patch"; static. */
BPH_API const char* bph_version(void);
/* ABI version that the loaded library speaks, major << 16 | minor. */
BPH_API uint32_t bph_abi_version(void);
/* "OK", "INVALID_ARGUMENT", ...; "INTERNAL" for a number that it does not know; static. */
BPH_API const char* bph_status_name(bp_status status);

/* One row of ops.def. Role: output; strings are static. */
typedef struct bph_op_info {
  uint32_t struct_size;
  uint32_t op;
  const char* name;
  const char* doc;
  const char* accuracy;
  const char* attributes;   /* stem of the attribute struct, "no" if none */
  uint32_t attribute_bytes; /* 0 if none */
  uint32_t kind;            /* BP_KIND_* */
  uint32_t inputs_min, inputs_max, outputs_min, outputs_max;
  uint32_t scalars_min; /* a call gives at least these: what the operator had when it was introduced */
  uint32_t scalars_max;
  uint32_t scalar_dtype; /* 0: the first output's */
  uint32_t shape_rule;   /* BP_SHAPE_* */
  uint32_t dtype_rule;   /* BP_RULE_* */
  uint32_t profile;      /* BP_PROFILE_* */
  uint64_t dtypes;       /* mask of BP_DTYPE_BIT */
  uint32_t since;        /* ABI version that introduced it */
  uint32_t reserved;
} bph_op_info;
#define BPH_OP_INFO_MIN_SIZE 104u
BP_FROZEN_MIN(bph_op_info, BPH_OP_INFO_MIN_SIZE);
/* The row of `op`. Errors: UNSUPPORTED for an id that is no operator of this library. */
BPH_API bp_status bph_op_by_id(uint32_t op, bph_op_info* out, bp_error* error);
/* The row named `name`. Errors: INVALID_ARGUMENT with the nearest names. */
BPH_API bp_status bph_op_by_name(const char* name, bph_op_info* out, bp_error* error);
/* The row `index` in order of id. Errors: INVALID_ARGUMENT past the last row. */
BPH_API bp_status bph_op_by_index(uint32_t index, bph_op_info* out, bp_error* error);
/* Bytes of one element, 0 for an unknown dtype. */
BPH_API uint32_t bph_dtype_bytes(uint32_t dtype);
/* "f32", ...; null for an unknown dtype; static. */
BPH_API const char* bph_dtype_name(uint32_t dtype);
/* The dtype of that name, 0 if none. */
BPH_API uint32_t bph_dtype_by_name(const char* name);

/* A number as the bits of an immediate or scalar of `dtype`, by the cast rules of the operator table. */
BPH_API uint64_t bph_scalar_from_f64(uint32_t dtype, double value);
BPH_API uint64_t bph_scalar_from_i64(uint32_t dtype, int64_t value);

/* ---- Registry: finding and loading plugins -------------------------------------------------------------------------- */

#define BPH_REGISTRY_NO_DEFAULT_PATHS 1u /* search search_path only, not the user's and the system's directories */

/* Role: input. Null strings mean the environment's value, then the default. */
typedef struct bph_registry_desc {
  uint32_t struct_size;
  uint32_t flags;          /* BPH_REGISTRY_* */
  const char* search_path; /* directories or manifests, ':' between; null: BACKPLANE_PLUGIN_PATH. Searched first */
  const char* layers;      /* names, ',' between; null: BACKPLANE_LAYERS. An unknown layer is an error */
  const char* config_file; /* null: $XDG_CONFIG_HOME/backplane/config.json if it exists */
  void (*log)(void* context, int32_t level, const char* message); /* null: warnings and errors go to stderr */
  void* log_context;
  const char* faults; /* what the layer `fault` does (docs/layers.md); null: BACKPLANE_FAULT */
  const char* trace;  /* the file that the layer `trace` writes, "%p" the process id; null: BACKPLANE_TRACE */
} bph_registry_desc;
#define BPH_REGISTRY_DESC_MIN_SIZE 64u
BP_FROZEN_MIN(bph_registry_desc, BPH_REGISTRY_DESC_MIN_SIZE);

/* Searches and reads manifests; opens no library. A bad manifest is a candidate with its reason, never an error here.
 * Errors: INVALID_ARGUMENT (flags, unknown layer, malformed faults or config file), OUT_OF_MEMORY. */
BPH_API bp_status bph_registry_create(const bph_registry_desc* desc, bph_registry** out, bp_error* error);
BPH_API void bph_registry_release(bph_registry* registry);

/* One place where a plugin was looked for or found. Role: output. */
typedef struct bph_candidate {
  uint32_t struct_size;
  bp_status status;      /* OK: usable as far as it was examined */
  uint32_t loaded;       /* 1 if the library was opened and negotiated */
  uint32_t shadowed;     /* 1 if an earlier candidate has the same name; this one is reached by path only */
  uint32_t device_count; /* known once loaded */
  uint32_t reserved;
  char name[64];    /* empty if the manifest does not say */
  char version[64]; /* empty until loaded */
  char rule[64];    /* the rule that decided the status, e.g. "manifest.json", "abi.range", "table.required_slot" */
  char side[16];    /* which side must change: "plugin", "host", "user", "system"; empty if none */
  char origin[32];  /* "search_path", "user", "system", "explicit" */
  char manifest[1024];
  char library[1024];
  char message[1024]; /* what is wrong and the remedy; empty if nothing is */
} bph_candidate;

/* Number of candidates, in search order. */
BPH_API bp_status bph_registry_candidate_count(bph_registry* registry, uint32_t* out, bp_error* error);
/* Candidate `index`. Errors: INVALID_ARGUMENT past the count. */
BPH_API bp_status bph_registry_candidate(bph_registry* registry, uint32_t index, bph_candidate* out, bp_error* error);
/* Loads every candidate, to fill in what is only known then; failures are recorded in the candidate. Loaded ones stay
 * loaded until the registry ends. */
BPH_API bp_status bph_registry_examine(bph_registry* registry, bp_error* error);

/* Loads a plugin by name, or by the path of a library or manifest (whatever contains '/'). Loading the same again gives the
 * same instance. Starts no driver.
 * Errors: UNAVAILABLE (not found, with the places searched), ABI_MISMATCH, INVALID_ARGUMENT (a rule is broken: the message
 * names file, rule and remedy), OUT_OF_MEMORY. */
BPH_API bp_status bph_plugin_load(bph_registry* registry, const char* name_or_path, bph_plugin** out, bp_error* error);
BPH_API void bph_plugin_release(bph_plugin* plugin);

/* Role: output. */
typedef struct bph_plugin_info {
  uint32_t struct_size;
  uint32_t abi_version;
  uint32_t abi_version_min;
  uint32_t build_flags; /* BP_BUILD_* */
  char name[64];
  char version[64];
  char library[1024];
} bph_plugin_info;
BPH_API bp_status bph_plugin_get_info(bph_plugin* plugin, bph_plugin_info* out, bp_error* error);
/* Number of devices. May start the driver. Errors: UNAVAILABLE with why there is none. */
BPH_API bp_status bph_plugin_device_count(bph_plugin* plugin, uint32_t* out, bp_error* error);
/* What device `index` says of itself, unopened. Errors: INVALID_ARGUMENT past the count, UNAVAILABLE. */
BPH_API bp_status bph_plugin_device_info(bph_plugin* plugin, uint32_t index, bp_device_info* out, bp_error* error);

/* ---- Device --------------------------------------------------------------------------------------------------------- */

/* What happens when a device lacks a primitive. */
#define BPH_FALLBACK_ERROR 0u /* UNSUPPORTED, with what is missing and how to allow a fallback */
#define BPH_FALLBACK_WARN \
  1u /* runs on the fallback device with explicit copies; counted, and logged once an operator */
#define BPH_FALLBACK_ALLOW 2u /* the same, counted only */

/* Role: of the framework's own allocator: device memory for core's temporaries and for bph_buffer_create. Every function is
 * called from any thread, without a lock held but the turn of a BPH_STREAM_SHARED stream whose call wants the memory. */
typedef struct bph_allocator {
  uint32_t struct_size;
  uint32_t reserved;
  void* context;
  /* `*out_buffer` was made by bph_buffer_create with BPH_BUFFER_RAW; `*out_offset` bytes into it lie `bytes` free bytes,
   * aligned to `alignment`, usable in the order of `stream` (null: at once). Core borrows the buffer until release. */
  bp_status (*allocate)(void* context, bph_device* device, uint32_t kind, uint64_t bytes, uint64_t alignment,
                        bph_stream* stream, bph_buffer** out_buffer, uint64_t* out_offset, bp_error* error);
  /* What was allocated is free again in the order of `stream`. */
  void (*release)(void* context, bph_buffer* buffer, uint64_t offset, uint64_t bytes, bph_stream* stream);
} bph_allocator;
#define BPH_ALLOCATOR_MIN_SIZE 32u
BP_FROZEN_MIN(bph_allocator, BPH_ALLOCATOR_MIN_SIZE);

/* Role: input; null means all defaults. */
typedef struct bph_device_desc {
  uint32_t struct_size;
  uint32_t fallback;              /* BPH_FALLBACK_* */
  const char* fallback_device;    /* null: "reference:0" */
  uint32_t plan_cache_entries;    /* bound of the plan cache; 0: 4096 */
  uint32_t native_composites;     /* 0: as BACKPLANE_NATIVE says, on by default; 1 on; 2 off */
  const bph_allocator* allocator; /* null: core's caching allocator; borrowed until the device closes */
  const char* options;            /* the plugin's own, "key=value;key=value"; null: none */
} bph_device_desc;
#define BPH_DEVICE_DESC_MIN_SIZE 40u
BP_FROZEN_MIN(bph_device_desc, BPH_DEVICE_DESC_MIN_SIZE);

/* Opens a device by "plugin:index" or "plugin" (index 0). Null: BACKPLANE_DEVICE, else the config file's order, else the
 * alphabetically first plugin that has a device. Each open is its own.
 * Errors: UNAVAILABLE (nothing of that name, or no device: the message lists what was found), those of bph_plugin_load. */
BPH_API bp_status bph_device_open(bph_registry* registry, const char* name, const bph_device_desc* desc,
                                  bph_device** out, bp_error* error);
/* Opens device `index` of a loaded plugin. */
BPH_API bp_status bph_plugin_device_open(bph_plugin* plugin, uint32_t index, const bph_device_desc* desc,
                                         bph_device** out, bp_error* error);
/* The device closes when its last stream, event and buffer is gone. */
BPH_API void bph_device_release(bph_device* device);
BPH_API bp_status bph_device_get_info(bph_device* device, bp_device_info* out, bp_error* error);
/* "plugin:index". Writes at most `size` bytes with the NUL; INVALID_ARGUMENT if it does not fit. */
BPH_API bp_status bph_device_name(bph_device* device, char* out, uint64_t size, bp_error* error);
BPH_API bp_status bph_device_memory_info(bph_device* device, uint32_t kind, bp_memory_info* out, bp_error* error);
/* A table of an optional interface of the plugin's, or UNSUPPORTED. Unlayered; borrowed until the device closes. Beside it
 * the plugin's own device handle, which its functions take. */
BPH_API bp_status bph_device_get_interface(bph_device* device, const char* name, uint32_t version,
                                           const void** out_table, bp_device** out_device, bp_error* error);

/* Counters since the device was opened. Role: output. */
typedef struct bph_stats {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t executions;
  uint64_t plan_hits;       /* executions whose exact descriptor was known */
  uint64_t plan_class_hits; /* new descriptors served by an any-size plan that was there */
  uint64_t plans_created;   /* calls of the plugin's plan_create that made a plan */
  uint64_t plans_evicted;
  uint64_t plan_entries;    /* now */
  uint64_t staged_operands; /* operands copied to or from dense temporaries because the plan asked for it */
  uint64_t staged_bytes;
  uint64_t host_staged_copies; /* copy_in and copy_out that went through a host buffer */
  uint64_t host_staged_bytes;
  uint64_t fallback_executions;
  uint64_t fallback_bytes;
  uint64_t allocations;        /* bph_buffer_create, and temporaries */
  uint64_t allocations_cached; /* of those, served without the plugin */
  uint64_t bytes_in_use;       /* of all kinds */
  uint64_t bytes_in_use_peak;
  uint64_t bytes_reserved; /* held from the plugin */
  uint64_t bytes_reserved_peak;
  uint64_t trims;
  uint64_t out_of_memory_retries; /* allocations that waited or trimmed, then succeeded or failed */
  uint64_t workspace_bytes;       /* now, over all streams, temporaries of decomposed composites included */
  uint64_t decomposed_executions; /* composites that ran as primitives */
  uint64_t plans_specialized;     /* of plans_created: for sizes that recurred, in place of a plan for any size */
  uint64_t plugin_faults;         /* plan_create answered INVALID_ARGUMENT to a descriptor that core has checked */
} bph_stats;
BPH_API bp_status bph_device_stats(bph_device* device, bph_stats* out, bp_error* error);

/* Gives cached memory back to the plugin, and forgets cached plans if `plans` is 1. Waits for nothing: what is pending
 * stays. `out_bytes` (may be null): bytes given back. */
BPH_API bp_status bph_device_trim(bph_device* device, uint32_t plans, uint64_t* out_bytes, bp_error* error);

/* ---- Buffers -------------------------------------------------------------------------------------------------------- */

#define BPH_BUFFER_RAW 1u /* straight from the plugin, uncached: for a framework that has its own allocator */

/* Role: input. */
typedef struct bph_buffer_desc {
  uint32_t struct_size;
  uint32_t kind;      /* BP_MEMORY_* */
  uint64_t bytes;     /* 0 is legal: a buffer without memory */
  uint64_t alignment; /* bytes, a power of two; 0: the device's own */
  uint32_t flags;     /* BPH_BUFFER_* */
  uint32_t reserved;
  bph_stream*
      stream; /* the stream that will use it first and, unless recorded otherwise, alone; null: none, which makes the
                       * memory reusable only after all streams passed */
} bph_buffer_desc;
#define BPH_BUFFER_DESC_MIN_SIZE 40u
BP_FROZEN_MIN(bph_buffer_desc, BPH_BUFFER_DESC_MIN_SIZE);

/* Memory from the caching allocator. Contents are undefined.
 * Stream: never waits, unless memory has run out: then it trims, waits for pending work, and counts both.
 * Errors: OUT_OF_MEMORY with asked, in use, reserved and free bytes; UNSUPPORTED kind; INVALID_ARGUMENT.
 * Since:  0.1. */
BPH_API bp_status bph_buffer_create(bph_device* device, const bph_buffer_desc* desc, bph_buffer** out, bp_error* error);

/* Memory that the caller owns. Role: input. */
typedef struct bph_import_desc {
  uint32_t struct_size;
  uint32_t type;    /* BP_IMPORT_* */
  uint64_t address; /* BP_IMPORT_HOST: the host's; BP_IMPORT_DEVICE: as a buffer's native address of this device */
  uint64_t bytes;   /* 0 is legal and makes a buffer without memory */
  uint32_t flags;   /* 0 */
  uint32_t reserved;
  void (*release)(
      void* context); /* null: none. Called once, from any thread and without a lock held, when this library and
                                   * the device are done with the memory; never if the import fails */
  void* context;
  bph_stream* stream; /* as bph_buffer_desc.stream */
} bph_import_desc;
#define BPH_IMPORT_DESC_MIN_SIZE 56u
BP_FROZEN_MIN(bph_import_desc, BPH_IMPORT_DESC_MIN_SIZE);

/* A buffer over memory that the caller owns: HOST or SHARED for BP_IMPORT_HOST, DEVICE for BP_IMPORT_DEVICE; see its info.
 * Errors: UNSUPPORTED if the plugin takes no such memory; INVALID_ARGUMENT. On failure `release` is not called.
 * Since:  0.2. */
BPH_API bp_status bph_buffer_import(bph_device* device, const bph_import_desc* desc, bph_buffer** out, bp_error* error);
/* Ends the caller's reference; legal while work that uses it is pending. The memory is used again in the order of its
 * stream, and after the streams that bph_buffer_record named have passed. */
BPH_API void bph_buffer_release(bph_buffer* buffer);
/* Says that `stream`, another than the buffer's own, uses the buffer too. */
BPH_API bp_status bph_buffer_record(bph_buffer* buffer, bph_stream* stream, bp_error* error);
/* The host address of a HOST or SHARED buffer, borrowed until release. The host may read and write at any time, whatever
 * pending work does with the rest: in a SHARED buffer any bytes that no pending work uses, in a HOST buffer whole blocks of 256
 * bytes (counted from its start) that no pending work uses. Errors: UNSUPPORTED for device memory. */
BPH_API bp_status bph_buffer_map(bph_buffer* buffer, void** out, bp_error* error);

#define BPH_BUFFER_ADDRESS_NATIVE 1u /* bph_buffer_info.flags: `address` is the device's own, good for its kernels */

/* Role: output. */
typedef struct bph_buffer_info {
  uint32_t struct_size;
  uint32_t kind;
  uint64_t bytes;
  uint64_t plugin_offset;   /* bytes from the plugin's buffer to this one's start */
  bp_buffer* plugin_buffer; /* for an optional interface of the plugin's; null if empty */
  uint64_t address; /* of byte 0; 0 for no bytes. A number that is unique while the buffer lives: [address, address +
                             * bytes) meets no other living buffer and no other memory of the process. It is the mapping's for
                             * HOST and SHARED, the device's own where that keeps to the rule, else of reserved pages that
                             * nobody may read */
  uint32_t flags;   /* BPH_BUFFER_ADDRESS_* */
  uint32_t reserved;
} bph_buffer_info;
#define BPH_BUFFER_INFO_MIN_SIZE 48u
BP_FROZEN_MIN(bph_buffer_info, BPH_BUFFER_INFO_MIN_SIZE);
BPH_API bp_status bph_buffer_get_info(bph_buffer* buffer, bph_buffer_info* out, bp_error* error);
/* Finds the live buffer of any device whose range contains `address`, and the offset in it. It finds imported buffers, and those
 * whose address bph_buffer_get_info or bph_buffer_map returned. Both handles are borrowed from their owners. Any thread; takes no
 * lock that an enqueue holds around a plugin call.
 * Errors: INVALID_ARGUMENT for an address in no buffer.
 * Since:  0.2. */
BPH_API bp_status bph_buffer_from_address(uint64_t address, bph_device** out_device, bph_buffer** out_buffer,
                                          uint64_t* out_offset, bp_error* error);

/* ---- Streams and events --------------------------------------------------------------------------------------------- */

#define BPH_STREAM_SHARED 1u   /* any threads at once: this library orders their calls, one turn each */
#define BPH_STREAM_EXTERNAL 2u /* others may enqueue on plugin_stream, unseen */

/* Role: input; null means all defaults. */
typedef struct bph_stream_desc {
  uint32_t struct_size;
  int32_t priority; /* 0 normal, positive more urgent; a hint */
  uint32_t flags;   /* BPH_STREAM_* */
  uint32_t reserved;
} bph_stream_desc;
#define BPH_STREAM_DESC_MIN_SIZE 16u
BP_FROZEN_MIN(bph_stream_desc, BPH_STREAM_DESC_MIN_SIZE);

/* SHARED    Calls from several threads take turns. A call waits for its turn, not for the device. A wait holds no turn, so it
 *           does not block enqueues; exceptions are stated at their function, and at running out of memory. Log lines of the
 *           calling thread, and releases of imported memory, reach their callbacks after the turn ends. A log callback on
 *           another thread must not wait for a thread that waits for a turn: release a lock such as Python's before you call.
 * EXTERNAL  Others may enqueue work that this library does not count. It therefore reuses memory that was released in this
 *           stream's order only after an event that it recorded after the release. The caller ensures that nobody enqueues
 *           on plugin_stream during a call on the stream.
 * Errors: UNSUPPORTED flags; OUT_OF_MEMORY.
 * Since:  0.2, in place of a positional priority. */
BPH_API bp_status bph_stream_create(bph_device* device, const bph_stream_desc* desc, bph_stream** out, bp_error* error);
/* Legal while work is pending: the work runs to its end, and the stream ends behind it. */
BPH_API void bph_stream_release(bph_stream* stream);
/* Waits for all work enqueued so far; `timeout_ns` as in device.h. Errors: TIMEOUT; EXECUTION_FAILED; DEVICE_LOST. */
BPH_API bp_status bph_stream_wait(bph_stream* stream, uint64_t timeout_ns, bp_error* error);

/* Role: output. */
typedef struct bph_stream_info {
  uint32_t struct_size;
  int32_t priority;
  uint32_t flags; /* BPH_STREAM_* */
  uint32_t reserved;
  bp_stream* plugin_stream; /* borrowed until release; null without BPH_STREAM_EXTERNAL */
} bph_stream_info;
#define BPH_STREAM_INFO_MIN_SIZE 24u
BP_FROZEN_MIN(bph_stream_info, BPH_STREAM_INFO_MIN_SIZE);
/* Any thread; takes no turn. Since: 0.2. */
BPH_API bp_status bph_stream_get_info(bph_stream* stream, bph_stream_info* out, bp_error* error);

/* Calls `enqueue` once, on this thread, in the stream's turn. The callback enqueues on `plugin_stream` through the plugin's own
 * interfaces. This library counts that as one enqueue; buffers obey the rules of bph_execute. Inside the callback, enqueueing on
 * this stream or waiting for it is INVALID_ARGUMENT; bph_buffer_create and bph_buffer_release are legal. Other streams are legal
 * too, but two callbacks that use each other's SHARED stream deadlock.
 * Errors: what `enqueue` answers (EXECUTION_FAILED fails the stream); INVALID_ARGUMENT; EXECUTION_FAILED; DEVICE_LOST.
 * Since:  0.2. */
BPH_API bp_status bph_stream_enqueue(bph_stream* stream,
                                     bp_status (*enqueue)(void* context, bp_device* plugin_device,
                                                          bp_stream* plugin_stream, bp_error* error),
                                     void* context, bp_error* error);

BPH_API bp_status bph_event_create(bph_device* device, uint32_t flags, bph_event** out, bp_error* error);
BPH_API void bph_event_release(bph_event* event);
BPH_API bp_status bph_event_record(bph_event* event, bph_stream* stream, bp_error* error);
/* Waits on the host. Errors: TIMEOUT; EXECUTION_FAILED; DEVICE_LOST. */
BPH_API bp_status bph_event_wait(bph_event* event, uint64_t timeout_ns, bp_error* error);
/* Later work of `stream` starts after the event's latest record. */
BPH_API bp_status bph_stream_wait_event(bph_stream* stream, bph_event* event, bp_error* error);
/* Errors: NOT_READY; INVALID_ARGUMENT without timing; UNSUPPORTED. */
BPH_API bp_status bph_event_elapsed(bph_event* begin, bph_event* end, int64_t* out_ns, bp_error* error);

/* Role: output. */
typedef struct bph_event_info {
  uint32_t struct_size;
  uint32_t flags;         /* BP_EVENT_* */
  bp_event* plugin_event; /* borrowed until release; whoever records it does so in turn with bph_event_record */
} bph_event_info;
#define BPH_EVENT_INFO_MIN_SIZE 16u
BP_FROZEN_MIN(bph_event_info, BPH_EVENT_INFO_MIN_SIZE);
/* Since: 0.2. */
BPH_API bp_status bph_event_get_info(bph_event* event, bph_event_info* out, bp_error* error);

/* ---- Copies --------------------------------------------------------------------------------------------------------- */

#define BPH_COPY_SOURCE_FREE 1u /* bph_copy_in: `src` may be changed as soon as the call returns */
#define BPH_COPY_ENQUEUE 2u     /* bph_copy_out: need not wait; `dst` is borrowed until the stream has passed */

/* Copies between two buffers of the stream's device. One of them may be a HOST buffer of another open device, of any plugin; it
 * is recorded on the stream as by bph_buffer_record. The device imports such a buffer, or else copies it as pageable memory. If
 * the plugin supports neither, this library waits for the stream, stages the copy and counts it. `flags` is 0.
 * Errors: INVALID_ARGUMENT for overlap, for HOST to HOST, which the caller does itself, and for DEVICE or SHARED memory of
 *         another device; UNSUPPORTED flags.
 * Since:  0.2 with flags and foreign HOST buffers. */
BPH_API bp_status bph_copy(bph_stream* stream, bph_buffer* dst, uint64_t dst_offset, bph_buffer* src,
                           uint64_t src_offset, uint64_t bytes, uint32_t flags, bp_error* error);
/* Copies from pageable host memory, which is borrowed until the stream has passed. With BPH_COPY_SOURCE_FREE the caller may change
 * it at return: a device with HOST memory stages up to 4 MiB without a wait, counted; otherwise the call waits for this copy. If
 * the plugin has no slot for pageable memory, every copy is staged and the source is free at return. Staging beyond 4 MiB waits
 * for earlier chunks, unless the stream is SHARED and memory suffices for the whole. Staging to a HOST buffer waits for the
 * stream.
 * Errors: INVALID_ARGUMENT; UNSUPPORTED flags.
 * Since:  0.2 with flags. */
BPH_API bp_status bph_copy_in(bph_stream* stream, bph_buffer* dst, uint64_t dst_offset, const void* src, uint64_t bytes,
                              uint32_t flags, bp_error* error);
/* Copies to pageable host memory, and waits for that copy. With BPH_COPY_ENQUEUE it returns once the copy is enqueued; if the
 * plugin has no slot for pageable memory, this library stages and waits all the same.
 * Errors: INVALID_ARGUMENT; UNSUPPORTED flags.
 * Since:  0.2 with flags. */
BPH_API bp_status bph_copy_out(bph_stream* stream, void* dst, bph_buffer* src, uint64_t src_offset, uint64_t bytes,
                               uint32_t flags, bp_error* error);
/* Copies between buffers of two streams, whose devices and plugins may differ. The copy follows all earlier work of both streams
 * and precedes their later work. On one device, events order it without a wait. Between devices it goes through HOST memory,
 * counted in the target's stats, and the host waits for src_stream. It also waits for dst_stream if dst is HOST or the copy
 * exceeds 4 MiB. `flags` is 0.
 * Errors: as bph_copy; INVALID_ARGUMENT if the streams are one.
 * Since:  0.2. */
BPH_API bp_status bph_copy_across(bph_stream* dst_stream, bph_buffer* dst, uint64_t dst_offset, bph_stream* src_stream,
                                  bph_buffer* src, uint64_t src_offset, uint64_t bytes, uint32_t flags,
                                  bp_error* error);

/* ---- Operators ------------------------------------------------------------------------------------------------------ */

/* A view of a buffer. Role: input, array element: never grows. Strides are in elements and may be 0, negative or overlap on
 * inputs; entries at and beyond rank are ignored. */
typedef struct bph_tensor {
  bph_buffer* buffer; /* null: an immediate (BPH_TENSOR_IMMEDIATE), or a view of zero elements */
  uint64_t offset;    /* bytes to element 0 */
  uint64_t immediate; /* the value's bits in its dtype; see bph_scalar_from_f64 */
  uint16_t dtype;     /* 0: an optional operand that is absent */
  uint8_t rank;
  uint8_t flags; /* BPH_TENSOR_* */
  /* Only for bph_device_supports, for an output without a buffer: 1 + index of the input that it overlays; else 0. */
  uint16_t alias;
  uint8_t hints;    /* BP_DESC_HINTS >> 8: passed to the plugin unread */
  uint8_t reserved; /* 0 */
  int64_t shape[BP_MAX_RANK];
  int64_t strides[BP_MAX_RANK];
} bph_tensor;
BP_STATIC_ASSERT(sizeof(bph_tensor) == 160, "bph_tensor is frozen");
#define BPH_TENSOR_IMMEDIATE 1u /* input: every element is `immediate`; strides are ignored */

/* DLPack 1.x: tensors are shared, never copied. A tensor that cannot be shared is UNSUPPORTED. */
struct DLManagedTensorVersioned; /* of dlpack.h */

/* Exports a view to another library. Later work of `consumer` sees all work that `producer` has enqueued: on one device through an
 * event; otherwise the call waits for `producer`. A null producer means that nothing is pending. A null consumer is a stream
 * outside this library, so the call waits. The memory lives until the handle is released and the deleter has run. The consumer
 * calls the deleter once, from any thread, when it no longer uses the memory.
 * Errors: UNSUPPORTED for an immediate, a dtype that DLPack lacks, and memory without an address that others can use;
 *         INVALID_ARGUMENT for a view that its buffer does not hold.
 * Since:  0.2. */
BPH_API bp_status bph_dlpack_export(const bph_tensor* tensor, bph_stream* producer, bph_stream* consumer,
                                    struct DLManagedTensorVersioned** out, bp_error* error);
/* Imports a view of another library's memory. The caller releases `out->buffer`; then the deleter runs as bph_import_desc.release
 * does. `consumer` is as bph_import_desc.stream; the producer must have ordered its work before it. On failure the caller keeps the
 * managed tensor.
 * Errors: UNSUPPORTED major version, device, dtype, read-only memory, more than BP_MAX_RANK dimensions, memory that the plugin
 *         does not take; INVALID_ARGUMENT.
 * Since:  0.2. */
BPH_API bp_status bph_dlpack_import(bph_device* device, struct DLManagedTensorVersioned* managed, bph_stream* consumer,
                                    bph_tensor* out, bp_error* error);

/* One eager call. Role: input. */
typedef struct bph_call {
  uint32_t struct_size;
  uint32_t op;    /* BP_OP_* */
  uint64_t flags; /* BP_OP_FLAG_* but DEVICE_SCALARS, and BPH_CALL_* */
  const void* attributes;
  const bph_tensor* inputs;
  const bph_tensor* outputs;
  const uint64_t* scalars; /* bits in the operator's scalar dtype */
  uint32_t input_count;
  uint32_t output_count;
  uint32_t scalar_count;
  uint32_t hints; /* BP_HINT_*: passed to the plugin unread; part of the plan cache's key */
} bph_call;
#define BPH_CALL_MIN_SIZE 64u
BP_FROZEN_MIN(bph_call, BPH_CALL_MIN_SIZE);
#define BPH_CALL_NO_NATIVE (1ull << 32) /* a composite is decomposed even if the plugin has it */

/* Validates, finds or makes the plan, and enqueues. With a known descriptor it allocates nothing, but at the third use of one whose plan says
 * BP_PLAN_SPECIALIZABLE. A composite as primitives and staged operands take several enqueues: if a later one fails, what went before is enqueued.
 * Errors: INVALID_ARGUMENT (what is wrong, with the numbers), UNSUPPORTED (operator, dtypes and device), OUT_OF_MEMORY,
 * EXECUTION_FAILED, DEVICE_LOST, UNAVAILABLE (a fallback device that cannot be opened). */
BPH_API bp_status bph_execute(bph_stream* stream, const bph_call* call, bp_error* error);

/* Which way a call goes. */
#define BPH_PATH_NATIVE 1u     /* the plugin's own operator */
#define BPH_PATH_DECOMPOSED 2u /* as primitives of the plugin: plan flags are 0 */
#define BPH_PATH_FALLBACK 3u   /* on the fallback device, whose answer the rest is */

/* What bph_execute would do. Role: output. */
typedef struct bph_support {
  uint32_t struct_size;
  uint32_t plan_flags;   /* BP_PLAN_* */
  uint32_t stage_inputs; /* masks of operands that core would stage, overlaid inputs included */
  uint32_t stage_outputs;
  uint64_t workspace_bytes; /* DECOMPOSED: of its temporaries. BP_WORKSPACE_UNKNOWN with BP_PLAN_FACTS_UNKNOWN */
  uint32_t path;            /* BPH_PATH_* */
  uint32_t reserved;
} bph_support;
/* Asks without executing and without making a plan. Views need shapes, strides and dtypes; buffers may be null. Without buffers
 * the answer assumes full alignment, and `alias` names the input that an output overlays. Answers are cached: a descriptor that
 * was executed or asked before causes no plugin call.
 * Errors: UNSUPPORTED with what is missing; INVALID_ARGUMENT as bph_execute; UNAVAILABLE (the fallback device). */
BPH_API bp_status bph_device_supports(bph_device* device, const bph_call* call, bph_support* out, bp_error* error);

#ifdef __cplusplus
}
#endif
#endif
