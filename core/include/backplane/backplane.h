/* SPDX-License-Identifier: Apache-2.0 */
/* The host API for frameworks. Link libbackplane; backplane.hpp is its C++20 interface.
 *
 * Handles   Opaque values, not addresses. Each create returns one reference, which the release
 *           function of that object ends. A handle keeps its parents alive (buffer, stream, event
 *           -> device -> plugin -> registry), so handles may be released in any order. A call with
 *           a released or foreign handle returns INVALID_ARGUMENT. Releasing null does nothing.
 * Errors    Every fallible call returns bp_status and fills the caller's bp_error: call, cause,
 *           remedy. On failure nothing was changed or enqueued, and outputs are null or zero.
 *           bp_error may be null.
 * Threads   Any thread may call any function concurrently. A stream takes one call at a time,
 *           without thread affinity; the caller ensures this, unless the stream is
 *           BPH_STREAM_SHARED. A handle must not be released while another thread's call uses it.
 * Stream    Calls that take a stream enqueue and return, unless their comment states that they
 *           wait.
 * Structs   As in the plugin ABI: struct_size comes first and is at least BPH_*_MIN_SIZE. Inputs
 *           with non-zero bytes beyond the part that this library knows are UNSUPPORTED, and so is
 *           a `reserved` that is not 0. Zero means the default. A struct_size above BP_STRUCT_LIMIT
 *           is INVALID_ARGUMENT, and no byte beyond it is read.
 * Flags     An unknown bit is UNSUPPORTED. A function later than 0.2 states Since
 *           (docs/spec/growth.md).
 * fork      A child must not use objects that its parent opened: such calls return UNAVAILABLE.
 * Exit      The process may exit at any moment, with everything alive. This library has no
 *           destructors that run at exit. */
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

/* ---- This library ---------------------------------------------------------------------------- */

/* Package version of the loaded library, "major.minor.patch". The string is static. */
BPH_API const char* bph_version(void);
/* ABI version of the loaded library, major << 16 | minor. */
BPH_API uint32_t bph_abi_version(void);
/* Returns "OK", "INVALID_ARGUMENT", ...; "INTERNAL" for an unknown number. The string is static. */
BPH_API const char* bph_status_name(bp_status status);

/* One row of ops.def. Role: output. Strings are static. */
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
  uint32_t scalars_min; /* the number at the operator's introduction */
  uint32_t scalars_max;
  uint32_t scalar_dtype; /* 0: the first output's dtype */
  uint32_t shape_rule;   /* BP_SHAPE_* */
  uint32_t dtype_rule;   /* BP_RULE_* */
  uint32_t profile;      /* BP_PROFILE_* */
  uint64_t dtypes;       /* mask of BP_DTYPE_BIT */
  uint32_t since;        /* the ABI version that introduced the operator */
  uint32_t reserved;
} bph_op_info;
#define BPH_OP_INFO_MIN_SIZE 104u
BP_FROZEN_MIN(bph_op_info, BPH_OP_INFO_MIN_SIZE);
/* The row of `op`. Errors: UNSUPPORTED for an id that this library does not know. */
BPH_API bp_status bph_op_by_id(uint32_t op, bph_op_info* out, bp_error* error);
/* The row named `name`. Errors: INVALID_ARGUMENT with similar names. */
BPH_API bp_status bph_op_by_name(const char* name, bph_op_info* out, bp_error* error);
/* The row `index` in order of id. Errors: INVALID_ARGUMENT past the last row. */
BPH_API bp_status bph_op_by_index(uint32_t index, bph_op_info* out, bp_error* error);
/* Bytes of one element, 0 for an unknown dtype. */
BPH_API uint32_t bph_dtype_bytes(uint32_t dtype);
/* Returns "f32", ...; null for an unknown dtype. The string is static. */
BPH_API const char* bph_dtype_name(uint32_t dtype);
/* Returns the dtype of that name; 0 if there is none. */
BPH_API uint32_t bph_dtype_by_name(const char* name);

/* Returns a number as the bits of an immediate or scalar of `dtype`, by the rules of the operator
 * cast. */
BPH_API uint64_t bph_scalar_from_f64(uint32_t dtype, double value);
BPH_API uint64_t bph_scalar_from_i64(uint32_t dtype, int64_t value);

/* ---- Registry: finding and loading plugins --------------------------------------------------- */

/* Search only search_path, not the directories of the user and the system. */
#define BPH_REGISTRY_NO_DEFAULT_PATHS 1u

/* Role: input. For a null string the environment's value applies, or else the default. */
typedef struct bph_registry_desc {
  uint32_t struct_size;
  uint32_t flags; /* BPH_REGISTRY_* */
  /* Directories or manifests, separated by ':', searched first; null: BACKPLANE_PLUGIN_PATH. */
  const char* search_path;
  const char* layers;      /* names, separated by ','; null: BACKPLANE_LAYERS */
  const char* config_file; /* null: $XDG_CONFIG_HOME/backplane/config.json if it exists */
  /* Null: warnings and errors go to stderr. */
  void (*log)(void* context, int32_t level, const char* message);
  void* log_context;
  const char* faults; /* rules of the layer `fault` (docs/layers.md); null: BACKPLANE_FAULT */
  const char* trace;  /* file of the layer `trace`, "%p" is the process id; null: BACKPLANE_TRACE */
} bph_registry_desc;
#define BPH_REGISTRY_DESC_MIN_SIZE 64u
BP_FROZEN_MIN(bph_registry_desc, BPH_REGISTRY_DESC_MIN_SIZE);

/* Searches and reads manifests; opens no library. A bad manifest does not fail this call; it
 * becomes a candidate that states the reason.
 * Errors: INVALID_ARGUMENT (flags, unknown layer, malformed faults or config file),
 * OUT_OF_MEMORY. */
BPH_API bp_status bph_registry_create(const bph_registry_desc* desc, bph_registry** out, bp_error* error);
BPH_API void bph_registry_release(bph_registry* registry);

/* A location where a plugin was searched or found. Role: output. */
typedef struct bph_candidate {
  uint32_t struct_size;
  bp_status status;      /* OK: usable as far as it was examined */
  uint32_t loaded;       /* 1 if the library was opened and negotiated */
  uint32_t shadowed;     /* 1 if an earlier candidate has the same name; load it by path */
  uint32_t device_count; /* known once loaded */
  uint32_t reserved;
  char name[64];    /* empty if the manifest does not state it */
  char version[64]; /* empty until loaded */
  char rule[64];    /* the rule that decided the status, e.g. "manifest.json", "abi.range" */
  char side[16];    /* the side that must change: "plugin", "host", "user", "system"; or empty */
  char origin[32];  /* "search_path", "user", "system", "explicit" */
  char manifest[1024];
  char library[1024];
  char message[1024]; /* the defect and the remedy; empty if there is none */
} bph_candidate;

/* Number of candidates, in search order. */
BPH_API bp_status bph_registry_candidate_count(bph_registry* registry, uint32_t* out, bp_error* error);
/* Candidate `index`. Errors: INVALID_ARGUMENT past the count. */
BPH_API bp_status bph_registry_candidate(bph_registry* registry, uint32_t index, bph_candidate* out, bp_error* error);
/* Loads every candidate to complete its fields. A failure is recorded in its candidate. Loaded
 * plugins stay loaded until the registry ends. */
BPH_API bp_status bph_registry_examine(bph_registry* registry, bp_error* error);

/* Loads a plugin by name, or by the path of a library or manifest; a path contains '/'. A second
 * load returns the same instance. Starts no driver.
 * Errors: UNAVAILABLE (not found; the message lists the searched directories), ABI_MISMATCH,
 *         INVALID_ARGUMENT (a violated rule; the message has file, rule and remedy),
 *         OUT_OF_MEMORY. */
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
/* Number of devices. May start the driver. Errors: UNAVAILABLE with the reason if there is none. */
BPH_API bp_status bph_plugin_device_count(bph_plugin* plugin, uint32_t* out, bp_error* error);
/* The properties of device `index`, without opening it. Errors: INVALID_ARGUMENT past the count,
 * UNAVAILABLE. */
BPH_API bp_status bph_plugin_device_info(bph_plugin* plugin, uint32_t index, bp_device_info* out, bp_error* error);

/* ---- Device ---------------------------------------------------------------------------------- */

/* Behaviour if a device lacks a primitive. */
#define BPH_FALLBACK_ERROR 0u /* UNSUPPORTED; the message states how to allow a fallback */
/* The operator runs on the fallback device with explicit copies. This is counted, and logged once
 * per operator. */
#define BPH_FALLBACK_WARN 1u
#define BPH_FALLBACK_ALLOW 2u /* the same, but only counted */

/* The framework's own allocator, for core's temporaries and for bph_buffer_create. Role: table.
 * Core calls its functions from any thread. It then holds no lock, except that of a
 * BPH_STREAM_SHARED stream whose call needs the memory. */
typedef struct bph_allocator {
  uint32_t struct_size;
  uint32_t reserved;
  void* context;
  /* Returns a buffer that was created with BPH_BUFFER_RAW. At `*out_offset` it has `bytes` free
   * bytes, aligned to `alignment`, for use in the order of `stream` (null: immediately). Core
   * borrows the buffer until release. */
  bp_status (*allocate)(void* context, bph_device* device, uint32_t kind, uint64_t bytes, uint64_t alignment,
                        bph_stream* stream, bph_buffer** out_buffer, uint64_t* out_offset, bp_error* error);
  /* The allocated bytes are free again in the order of `stream`. */
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
  uint32_t native_composites;     /* 0: as BACKPLANE_NATIVE states, by default on; 1: on; 2: off */
  const bph_allocator* allocator; /* null: core's allocator; borrowed until the device closes */
  const char* options;            /* options of the plugin, "key=value;key=value"; null: none */
} bph_device_desc;
#define BPH_DEVICE_DESC_MIN_SIZE 40u
BP_FROZEN_MIN(bph_device_desc, BPH_DEVICE_DESC_MIN_SIZE);

/* Opens a device by "plugin:index" or "plugin" (index 0). Null: BACKPLANE_DEVICE, then the config
 * file's order, then the alphabetically first plugin that has a device. Opens are independent.
 * Errors: UNAVAILABLE (no such plugin or device; the message lists the candidates), those of
 *         bph_plugin_load. */
BPH_API bp_status bph_device_open(bph_registry* registry, const char* name, const bph_device_desc* desc,
                                  bph_device** out, bp_error* error);
/* Opens device `index` of a loaded plugin. */
BPH_API bp_status bph_plugin_device_open(bph_plugin* plugin, uint32_t index, const bph_device_desc* desc,
                                         bph_device** out, bp_error* error);
/* The device closes when its last stream, event and buffer has been released. */
BPH_API void bph_device_release(bph_device* device);
BPH_API bp_status bph_device_get_info(bph_device* device, bp_device_info* out, bp_error* error);
/* "plugin:index". Writes at most `size` bytes, including the NUL; INVALID_ARGUMENT if the name does
 * not fit. */
BPH_API bp_status bph_device_name(bph_device* device, char* out, uint64_t size, bp_error* error);
BPH_API bp_status bph_device_memory_info(bph_device* device, uint32_t kind, bp_memory_info* out, bp_error* error);
/* Returns a table of an optional interface of the plugin, without layers, and the plugin's device
 * handle, which the table's functions take. Both are borrowed until the device closes. Errors:
 * UNSUPPORTED. */
BPH_API bp_status bph_device_get_interface(bph_device* device, const char* name, uint32_t version,
                                           const void** out_table, bp_device** out_device, bp_error* error);

/* Counters since the device was opened. Role: output. */
typedef struct bph_stats {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t executions;
  uint64_t plan_hits;       /* executions whose exact descriptor was known */
  uint64_t plan_class_hits; /* new descriptors served by an existing any-size plan */
  uint64_t plans_created;   /* calls of the plugin's plan_create that made a plan */
  uint64_t plans_evicted;
  uint64_t plan_entries;    /* current number */
  uint64_t staged_operands; /* operands copied to or from dense temporaries for their plan */
  uint64_t staged_bytes;
  uint64_t host_staged_copies; /* copy_in and copy_out that went through a host buffer */
  uint64_t host_staged_bytes;
  uint64_t fallback_executions;
  uint64_t fallback_bytes;
  uint64_t allocations;        /* bph_buffer_create, and temporaries */
  uint64_t allocations_cached; /* allocations that were served without the plugin */
  uint64_t bytes_in_use;       /* of all memory kinds */
  uint64_t bytes_in_use_peak;
  uint64_t bytes_reserved; /* allocated from the plugin */
  uint64_t bytes_reserved_peak;
  uint64_t trims;
  uint64_t out_of_memory_retries; /* allocations that waited or trimmed before their result */
  uint64_t workspace_bytes;       /* current sum over streams, with composites' temporaries */
  uint64_t decomposed_executions; /* composites that ran as primitives */
  uint64_t plans_specialized;     /* those of plans_created that were made for a recurring size */
  uint64_t plugin_faults;         /* INVALID_ARGUMENT of plan_create for a validated descriptor */
} bph_stats;
BPH_API bp_status bph_device_stats(bph_device* device, bph_stats* out, bp_error* error);

/* Returns cached memory to the plugin, and destroys cached plans if `plans` is 1. Does not wait,
 * and keeps memory that pending work uses. `out_bytes` (may be null) receives the number of
 * returned bytes. */
BPH_API bp_status bph_device_trim(bph_device* device, uint32_t plans, uint64_t* out_bytes, bp_error* error);

/* ---- Buffers --------------------------------------------------------------------------------- */

/* Allocates directly from the plugin, without the cache, for a framework that has its own
 * allocator. */
#define BPH_BUFFER_RAW 1u

/* Role: input. */
typedef struct bph_buffer_desc {
  uint32_t struct_size;
  uint32_t kind;      /* BP_MEMORY_* */
  uint64_t bytes;     /* 0 is legal: a buffer without memory */
  uint64_t alignment; /* bytes, a power of two; 0: the device's own */
  uint32_t flags;     /* BPH_BUFFER_* */
  uint32_t reserved;
  /* The stream that will use the buffer; bph_buffer_record names further streams. If null, the
   * memory is reused only after all streams have finished their current work. */
  bph_stream* stream;
} bph_buffer_desc;
#define BPH_BUFFER_DESC_MIN_SIZE 40u
BP_FROZEN_MIN(bph_buffer_desc, BPH_BUFFER_DESC_MIN_SIZE);

/* Allocates memory from the caching allocator. Contents are undefined.
 * Stream: never waits, unless memory is exhausted. It then trims, waits for pending work, and
 *         counts both.
 * Errors: OUT_OF_MEMORY with the requested, used, reserved and free bytes; UNSUPPORTED kind;
 *         INVALID_ARGUMENT.
 * Since:  0.1. */
BPH_API bp_status bph_buffer_create(bph_device* device, const bph_buffer_desc* desc, bph_buffer** out, bp_error* error);

/* Memory that the caller owns. Role: input. */
typedef struct bph_import_desc {
  uint32_t struct_size;
  uint32_t type;    /* BP_IMPORT_* */
  uint64_t address; /* BP_IMPORT_HOST: a host address; BP_IMPORT_DEVICE: an address of the device */
  uint64_t bytes;   /* 0 is legal and makes a buffer without memory */
  uint32_t flags;   /* 0 */
  uint32_t reserved;
  /* May be null. Called once, from any thread and without a lock, when this library and the device
   * no longer use the memory; never if the import fails. */
  void (*release)(void* context);
  void* context;
  bph_stream* stream; /* as bph_buffer_desc.stream */
} bph_import_desc;
#define BPH_IMPORT_DESC_MIN_SIZE 56u
BP_FROZEN_MIN(bph_import_desc, BPH_IMPORT_DESC_MIN_SIZE);

/* Creates a buffer over memory that the caller owns. The buffer's kind is HOST or SHARED for
 * BP_IMPORT_HOST, and DEVICE for BP_IMPORT_DEVICE; see bph_buffer_get_info.
 * Errors: UNSUPPORTED if the plugin does not import such memory; INVALID_ARGUMENT. On failure
 *         `release` is not called.
 * Since:  0.2. */
BPH_API bp_status bph_buffer_import(bph_device* device, const bph_import_desc* desc, bph_buffer** out, bp_error* error);
/* Ends the caller's reference; legal while work that uses the buffer is pending. The memory is
 * reused in the order of the buffer's stream, after the recorded work of the streams named by
 * bph_buffer_record. */
BPH_API void bph_buffer_release(bph_buffer* buffer);
/* States that `stream`, which is not the buffer's own stream, also uses the buffer. */
BPH_API bp_status bph_buffer_record(bph_buffer* buffer, bph_stream* stream, bp_error* error);
/* Returns the host address of a HOST or SHARED buffer, borrowed until release. The host may read
 * and write bytes that no pending work uses, even while work uses other bytes. In a SHARED buffer
 * these may be any bytes; in a HOST buffer, whole blocks of 256 bytes, counted from the buffer's
 * start. Errors: UNSUPPORTED for device memory. */
BPH_API bp_status bph_buffer_map(bph_buffer* buffer, void** out, bp_error* error);

/* Flag of bph_buffer_info: the device's kernels can use `address`. */
#define BPH_BUFFER_ADDRESS_NATIVE 1u

/* Role: output. */
typedef struct bph_buffer_info {
  uint32_t struct_size;
  uint32_t kind;
  uint64_t bytes;
  uint64_t plugin_offset;   /* offset in bytes of this buffer in the plugin's buffer */
  bp_buffer* plugin_buffer; /* for an optional interface of the plugin; null if empty */
  /* The address of byte 0; 0 if the buffer has no bytes. While the buffer lives, [address, address
   * + bytes) overlaps no other living buffer and no other memory of the process. HOST and SHARED
   * memory have the address of the mapping. DEVICE memory has the device's address if that is
   * unique, otherwise an address in reserved pages that cannot be read. */
  uint64_t address;
  uint32_t flags; /* BPH_BUFFER_ADDRESS_* */
  uint32_t reserved;
} bph_buffer_info;
#define BPH_BUFFER_INFO_MIN_SIZE 48u
BP_FROZEN_MIN(bph_buffer_info, BPH_BUFFER_INFO_MIN_SIZE);
BPH_API bp_status bph_buffer_get_info(bph_buffer* buffer, bph_buffer_info* out, bp_error* error);
/* Finds the living buffer of any device whose range contains `address`, and the offset in that
 * buffer. Finds only imported buffers, and buffers whose address bph_buffer_get_info or
 * bph_buffer_map returned. Both handles are borrowed from their owners. Any thread may call it; it
 * takes no lock that an enqueue holds around a plugin call.
 * Errors: INVALID_ARGUMENT for an address that is in no buffer.
 * Since:  0.2. */
BPH_API bp_status bph_buffer_from_address(uint64_t address, bph_device** out_device, bph_buffer** out_buffer,
                                          uint64_t* out_offset, bp_error* error);

/* ---- Streams and events ---------------------------------------------------------------------- */

#define BPH_STREAM_SHARED 1u   /* several threads may call; each call locks the stream */
#define BPH_STREAM_EXTERNAL 2u /* other code may enqueue on plugin_stream */

/* Role: input; null means all defaults. */
typedef struct bph_stream_desc {
  uint32_t struct_size;
  int32_t priority; /* 0 normal, positive more urgent; a hint */
  uint32_t flags;   /* BPH_STREAM_* */
  uint32_t reserved;
} bph_stream_desc;
#define BPH_STREAM_DESC_MIN_SIZE 16u
BP_FROZEN_MIN(bph_stream_desc, BPH_STREAM_DESC_MIN_SIZE);

/* Creates a stream.
 * SHARED    Calls from several threads exclude each other by the stream's lock. A call waits for
 *           the lock, not for the device. A wait does not hold the lock, so it does not block
 *           enqueues, unless its comment states otherwise or memory is exhausted. Log lines of the
 *           calling thread, and releases of imported memory, reach their callbacks after the lock
 *           is released. A log callback on another thread must not wait for a thread that waits for
 *           the lock: release a global lock, such as Python's, before the call.
 * EXTERNAL  Other code may enqueue work that this library does not count. Memory that was released
 *           in this stream's order is therefore reused only after an event that is recorded after
 *           the release. The caller ensures that no code enqueues on plugin_stream during a call on
 *           the stream.
 * Errors: UNSUPPORTED flags; OUT_OF_MEMORY.
 * Since:  0.2, in place of a positional priority. */
BPH_API bp_status bph_stream_create(bph_device* device, const bph_stream_desc* desc, bph_stream** out, bp_error* error);
/* Legal while work is pending; the stream ends after its work. */
BPH_API void bph_stream_release(bph_stream* stream);
/* Waits for all work that was enqueued so far; `timeout_ns` is as for BP_WAIT_FOREVER in device.h.
 * Errors: TIMEOUT; EXECUTION_FAILED; DEVICE_LOST. */
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
/* Any thread; does not lock the stream. Since: 0.2. */
BPH_API bp_status bph_stream_get_info(bph_stream* stream, bph_stream_info* out, bp_error* error);

/* Calls `enqueue` once, on this thread, with the stream's lock. The callback enqueues on
 * `plugin_stream` through the plugin's own interfaces. This library counts that as one enqueue;
 * buffers obey the rules of bph_execute. Inside the callback, enqueues on this stream and waits for
 * it return INVALID_ARGUMENT; bph_buffer_create and bph_buffer_release are legal. Other streams are
 * legal, but two callbacks that use each other's SHARED stream deadlock.
 * Errors: the status that `enqueue` returns (EXECUTION_FAILED fails the stream); INVALID_ARGUMENT;
 *         EXECUTION_FAILED; DEVICE_LOST.
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
  uint32_t flags; /* BP_EVENT_* */
  /* Borrowed until release. Do not record it concurrently with bph_event_record. */
  bp_event* plugin_event;
} bph_event_info;
#define BPH_EVENT_INFO_MIN_SIZE 16u
BP_FROZEN_MIN(bph_event_info, BPH_EVENT_INFO_MIN_SIZE);
/* Since: 0.2. */
BPH_API bp_status bph_event_get_info(bph_event* event, bph_event_info* out, bp_error* error);

/* ---- Copies ---------------------------------------------------------------------------------- */

#define BPH_COPY_SOURCE_FREE 1u /* bph_copy_in: after it returns, `src` may change */
#define BPH_COPY_ENQUEUE 2u     /* bph_copy_out: no wait; `dst` is borrowed until the copy ends */

/* Copies between two buffers of the stream's device. One of them may be a HOST buffer of another
 * open device, of any plugin; the call records it on the stream, like bph_buffer_record. The device
 * imports such a buffer, or copies it as pageable memory. If the plugin supports neither, this
 * library waits for the stream, stages the copy and counts it. `flags` is 0.
 * Errors: INVALID_ARGUMENT for overlap, for HOST to HOST, which the caller does itself, and for
 *         DEVICE or SHARED memory of another device; UNSUPPORTED flags.
 * Since:  0.2 with flags and foreign HOST buffers. */
BPH_API bp_status bph_copy(bph_stream* stream, bph_buffer* dst, uint64_t dst_offset, bph_buffer* src,
                           uint64_t src_offset, uint64_t bytes, uint32_t flags, bp_error* error);
/* Copies from pageable host memory, which is borrowed until the stream has executed the copy. With
 * BPH_COPY_SOURCE_FREE the caller may change the source when the call returns. If the device has
 * HOST memory, the call then stages up to 4 MiB without a wait, and counts that; otherwise it waits
 * for this copy. If the plugin has no slot for pageable memory, every copy is staged and the source
 * is free when the call returns. Staging beyond 4 MiB waits for earlier chunks, unless the stream
 * is SHARED and memory suffices for the whole copy. Staging to a HOST buffer waits for the stream.
 * Errors: INVALID_ARGUMENT; UNSUPPORTED flags.
 * Since:  0.2 with flags. */
BPH_API bp_status bph_copy_in(bph_stream* stream, bph_buffer* dst, uint64_t dst_offset, const void* src, uint64_t bytes,
                              uint32_t flags, bp_error* error);
/* Copies to pageable host memory, and waits for that copy. With BPH_COPY_ENQUEUE it returns once
 * the copy is enqueued. If the plugin has no slot for pageable memory, this library stages and
 * waits instead.
 * Errors: INVALID_ARGUMENT; UNSUPPORTED flags.
 * Since:  0.2 with flags. */
BPH_API bp_status bph_copy_out(bph_stream* stream, void* dst, bph_buffer* src, uint64_t src_offset, uint64_t bytes,
                               uint32_t flags, bp_error* error);
/* Copies between buffers of two streams, whose devices and plugins may differ. The copy follows all
 * earlier work of both streams and precedes their later work. On one device, events order the copy
 * without a wait. Between devices the copy goes through HOST memory, which the target's stats
 * count, and the host waits for src_stream. The host also waits for dst_stream if dst is HOST or
 * the copy exceeds 4 MiB. `flags` is 0.
 * Errors: as bph_copy; INVALID_ARGUMENT if both streams are the same.
 * Since:  0.2. */
BPH_API bp_status bph_copy_across(bph_stream* dst_stream, bph_buffer* dst, uint64_t dst_offset, bph_stream* src_stream,
                                  bph_buffer* src, uint64_t src_offset, uint64_t bytes, uint32_t flags,
                                  bp_error* error);

/* ---- Operators ------------------------------------------------------------------------------- */

/* A view of a buffer. Role: input, and an array element, so it never grows. Strides are in
 * elements. Inputs may have zero, negative and overlapping strides. Entries at and beyond rank are
 * ignored. */
typedef struct bph_tensor {
  bph_buffer* buffer; /* null: an immediate (BPH_TENSOR_IMMEDIATE), or a view of zero elements */
  uint64_t offset;    /* bytes to element 0 */
  uint64_t immediate; /* the value's bits in the view's dtype; see bph_scalar_from_f64 */
  uint16_t dtype;     /* 0: an optional operand that is absent */
  uint8_t rank;
  uint8_t flags; /* BPH_TENSOR_* */
  /* Only for bph_device_supports, for an output without a buffer: 1 + the index of the input that
   * the output overlays. Otherwise 0. */
  uint16_t alias;
  uint8_t hints;    /* BP_DESC_HINTS >> 8, passed to the plugin */
  uint8_t reserved; /* 0 */
  int64_t shape[BP_MAX_RANK];
  int64_t strides[BP_MAX_RANK];
} bph_tensor;
BP_STATIC_ASSERT(sizeof(bph_tensor) == 160, "bph_tensor is frozen");
#define BPH_TENSOR_IMMEDIATE 1u /* input: every element is `immediate`; strides are ignored */

/* DLPack 1.x: tensors are shared, never copied. A tensor that cannot be shared is UNSUPPORTED. */
struct DLManagedTensorVersioned; /* from dlpack.h */

/* Exports a view to another library. Later work of `consumer` sees all work that `producer` has
 * enqueued: on one device through an event; otherwise the call waits for `producer`. A null
 * producer means that no work is pending. A null consumer is a stream outside this library, so the
 * call waits. The memory lives until the handle has been released and the deleter has run. The
 * consumer calls the deleter once, from any thread, when it no longer uses the memory.
 * Errors: UNSUPPORTED for an immediate, a dtype that DLPack lacks, and memory without an address
 *         that other libraries can use; INVALID_ARGUMENT for a view that exceeds its buffer.
 * Since:  0.2. */
BPH_API bp_status bph_dlpack_export(const bph_tensor* tensor, bph_stream* producer, bph_stream* consumer,
                                    struct DLManagedTensorVersioned** out, bp_error* error);
/* Imports a view of another library's memory. The caller releases `out->buffer`; the deleter then
 * runs like bph_import_desc.release. `consumer` is as bph_import_desc.stream; the producer must
 * have ordered its work before it. On failure the caller keeps the managed tensor.
 * Errors: UNSUPPORTED for a major version, a device, a dtype, read-only memory, more than
 *         BP_MAX_RANK dimensions, and memory that the plugin does not import; INVALID_ARGUMENT.
 * Since:  0.2. */
BPH_API bp_status bph_dlpack_import(bph_device* device, struct DLManagedTensorVersioned* managed, bph_stream* consumer,
                                    bph_tensor* out, bp_error* error);

/* One eager call. Role: input. */
typedef struct bph_call {
  uint32_t struct_size;
  uint32_t op;    /* BP_OP_* */
  uint64_t flags; /* BP_OP_FLAG_* except DEVICE_SCALARS, and BPH_CALL_* */
  const void* attributes;
  const bph_tensor* inputs;
  const bph_tensor* outputs;
  const uint64_t* scalars; /* bits in the operator's scalar dtype */
  uint32_t input_count;
  uint32_t output_count;
  uint32_t scalar_count;
  uint32_t hints; /* BP_HINT_*, passed to the plugin; part of the plan cache's key */
} bph_call;
#define BPH_CALL_MIN_SIZE 64u
BP_FROZEN_MIN(bph_call, BPH_CALL_MIN_SIZE);
#define BPH_CALL_NO_NATIVE (1ull << 32) /* decompose a composite even if it is native */

/* Validates the call, finds or makes the plan, and enqueues. With a known descriptor the call
 * allocates nothing, except at the third use if the plan has BP_PLAN_SPECIALIZABLE. A decomposed
 * composite and staged operands take several enqueues. If a later enqueue fails, the earlier ones
 * remain enqueued.
 * Errors: INVALID_ARGUMENT (with the wrong values), UNSUPPORTED (with operator, dtypes and device),
 *         OUT_OF_MEMORY, EXECUTION_FAILED, DEVICE_LOST, UNAVAILABLE (a fallback device that cannot
 *         be opened). */
BPH_API bp_status bph_execute(bph_stream* stream, const bph_call* call, bp_error* error);

/* The path of a call. */
#define BPH_PATH_NATIVE 1u     /* the plugin's own operator */
#define BPH_PATH_DECOMPOSED 2u /* primitives of the plugin; plan flags are 0 */
#define BPH_PATH_FALLBACK 3u   /* the fallback device, which the other fields describe */

/* The effect of bph_execute. Role: output. */
typedef struct bph_support {
  uint32_t struct_size;
  uint32_t plan_flags;   /* BP_PLAN_* */
  uint32_t stage_inputs; /* masks of operands that core would stage, including overlaid inputs */
  uint32_t stage_outputs;
  /* DECOMPOSED: bytes of the temporaries. BP_WORKSPACE_UNKNOWN with BP_PLAN_FACTS_UNKNOWN. */
  uint64_t workspace_bytes;
  uint32_t path; /* BPH_PATH_* */
  uint32_t reserved;
} bph_support;
/* Returns the effect of a call without executing it and without making a plan. Views need shapes,
 * strides and dtypes; buffers may be null. Without buffers the result assumes full alignment, and
 * `alias` names the input that an output overlays. Results are cached: a descriptor that was
 * executed or queried before causes no plugin call.
 * Errors: UNSUPPORTED, naming what is missing; INVALID_ARGUMENT as bph_execute; UNAVAILABLE (the
 *         fallback device). */
BPH_API bp_status bph_device_supports(bph_device* device, const bph_call* call, bph_support* out, bp_error* error);

#ifdef __cplusplus
}
#endif
#endif
