/* SPDX-License-Identifier: Apache-2.0 */
/* The host API for frameworks. Link libbackplane; backplane.hpp is its C++20 interface.
 *
 * Handles   Handles are opaque values, not addresses. Each create function returns one reference,
 *           and the object's release function releases it. A handle keeps its parents alive
 *           (buffer, stream, event, graph -> device -> plugin -> registry), so handles may be
 *           released in any order. A call with a released or foreign handle returns
 *           INVALID_ARGUMENT. Releasing a null handle does nothing.
 * Errors    Every call that can fail returns bp_status. A failed call fills the caller's bp_error,
 *           whose message states the call, the cause and the remedy. A failed call sets its outputs
 *           to null or zero. It changes and enqueues nothing, unless the function's comment states
 *           otherwise. bp_error may be null.
 * Threads   Any thread may call any function concurrently. Only one thread at a time may call
 *           functions of a stream, unless the stream has BPH_STREAM_SHARED. A handle must not be
 *           released while a call of another thread uses the handle.
 * Stream    A call with a stream parameter enqueues work and returns without waiting for the work,
 *           unless the function's comment states that it waits.
 * Structs   As in the plugin ABI, struct_size is the first field and is at least BPH_*_MIN_SIZE. A
 *           call returns UNSUPPORTED if `reserved` of an input struct is not 0, or if the struct
 *           has a nonzero byte beyond the fields that this library knows. A zero field means the
 *           default. A struct_size above BP_STRUCT_LIMIT is INVALID_ARGUMENT, and the library reads
 *           no byte beyond this limit.
 * Flags     An unknown bit is UNSUPPORTED, unless a comment states otherwise.
 * Since     The comment of a function that was added after 0.2 states the version that added it
 *           (docs/spec/growth.md).
 * fork      A child process must not use objects that its parent opened. Calls with such objects
 *           return UNAVAILABLE.
 * Exit      The process may exit at any moment, even while objects are alive. This library has no
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
typedef struct bph_graph bph_graph;
typedef struct bph_semaphore bph_semaphore;

/* ---- This library ---------------------------------------------------------------------------- */

/* Returns the package version of the loaded library, "major.minor.patch". The string is static. */
BPH_API const char* bph_version(void);
/* Returns the ABI version of the loaded library, major << 16 | minor. */
BPH_API uint32_t bph_abi_version(void);
/* Returns the name of a status, such as "OK". An unknown number gives "INTERNAL". The string is
 * static. */
BPH_API const char* bph_status_name(bp_status status);

/* One row of ops.def. Role: output. Strings are static. */
typedef struct bph_op_info {
  uint32_t struct_size;
  uint32_t op;
  const char* name;
  const char* doc;
  const char* accuracy;
  /* STEM in the name bp_STEM_attributes of the operator's attribute struct, or "no". */
  const char* attributes;
  uint32_t attribute_bytes; /* size of the attribute struct, or 0 */
  uint32_t kind;            /* BP_KIND_* */
  uint32_t inputs_min, inputs_max, outputs_min, outputs_max;
  uint32_t scalars_min; /* number of scalars in version `since` */
  uint32_t scalars_max;
  uint32_t scalar_dtype; /* 0 means the first output's dtype */
  uint32_t shape_rule;   /* BP_SHAPE_* */
  uint32_t dtype_rule;   /* BP_RULE_* */
  uint32_t profile;      /* BP_PROFILE_* */
  uint64_t dtypes;       /* mask of BP_DTYPE_BIT */
  uint32_t since;        /* the ABI version that introduced the operator */
  uint32_t reserved;
} bph_op_info;
#define BPH_OP_INFO_MIN_SIZE 104u
BP_FROZEN_MIN(bph_op_info, BPH_OP_INFO_MIN_SIZE);
/* Returns the row of operator `op`. Errors: UNSUPPORTED for an id that this library does not
 * know. */
BPH_API bp_status bph_op_by_id(uint32_t op, bph_op_info* out, bp_error* error);
/* Returns the row of the operator `name`. Errors: INVALID_ARGUMENT for an unknown name; the message
 * lists similar names. */
BPH_API bp_status bph_op_by_name(const char* name, bph_op_info* out, bp_error* error);
/* Returns row `index` in the order of ids. Errors: INVALID_ARGUMENT past the last row. */
BPH_API bp_status bph_op_by_index(uint32_t index, bph_op_info* out, bp_error* error);
/* Returns the bytes of one element, or 0 for an unknown dtype. */
BPH_API uint32_t bph_dtype_bytes(uint32_t dtype);
/* Returns the static name of a dtype, such as "f32". Returns null for an unknown dtype. */
BPH_API const char* bph_dtype_name(uint32_t dtype);
/* Returns the dtype with this name, or 0 if there is none. */
BPH_API uint32_t bph_dtype_by_name(const char* name);

/* Converts a number to the bits of an immediate or scalar of `dtype`, by the rules of the operator
 * cast. */
BPH_API uint64_t bph_scalar_from_f64(uint32_t dtype, double value);
BPH_API uint64_t bph_scalar_from_i64(uint32_t dtype, int64_t value);

/* ---- Registry: finding and loading plugins --------------------------------------------------- */

/* The registry searches only search_path, not the directories of the user and the system. */
#define BPH_REGISTRY_NO_DEFAULT_PATHS 1u

/* Parameters of bph_registry_create. Role: input. A null string means the value of the environment
 * variable that the field's comment names, or else the default. */
typedef struct bph_registry_desc {
  uint32_t struct_size;
  uint32_t flags; /* BPH_REGISTRY_* */
  /* Directories or manifests, separated by ':', which are searched first. Null means
   * BACKPLANE_PLUGIN_PATH. */
  const char* search_path;
  const char* layers;      /* names separated by ','; null means BACKPLANE_LAYERS */
  const char* config_file; /* null means $XDG_CONFIG_HOME/backplane/config.json if it exists */
  /* If null, warnings and errors go to stderr. */
  void (*log)(void* context, int32_t level, const char* message);
  void* log_context;
  const char* faults; /* fault rules (docs/layers.md); null means BACKPLANE_FAULT */
  /* File name for the layer `trace`; "%p" in the name becomes the process id. Null means
   * BACKPLANE_TRACE. */
  const char* trace;
} bph_registry_desc;
#define BPH_REGISTRY_DESC_MIN_SIZE 64u
BP_FROZEN_MIN(bph_registry_desc, BPH_REGISTRY_DESC_MIN_SIZE);

/* Searches for manifests and reads them, but opens no library. A bad manifest does not fail this
 * call: the manifest becomes a candidate that states the reason.
 * Errors: INVALID_ARGUMENT (flags, unknown layer, malformed faults or config file),
 * OUT_OF_MEMORY. */
BPH_API bp_status bph_registry_create(const bph_registry_desc* desc, bph_registry** out, bp_error* error);
BPH_API void bph_registry_release(bph_registry* registry);

/* A location at which core looked for a plugin or found one. Role: output. */
typedef struct bph_candidate {
  uint32_t struct_size;
  bp_status status; /* OK if no defect was found so far */
  uint32_t loaded;  /* 1 if the library was opened and its ABI version accepted */
  /* 1 if an earlier candidate with an accepted manifest has the same name. A shadowed candidate can
   * be loaded only by path. */
  uint32_t shadowed;
  uint32_t device_count; /* last result of bph_plugin_device_count; 0 before the first call */
  uint32_t reserved;
  char name[64];    /* empty if the manifest does not state a name */
  char version[64]; /* empty until the plugin is loaded */
  char rule[64];    /* the rule that decided the status, such as "manifest.json" or "abi.range" */
  char side[16];    /* who must fix the defect: "plugin", "host", "user", "system"; or empty */
  char origin[32];  /* "search_path", "user", "system" or "explicit" */
  char manifest[1024];
  char library[1024];
  char message[1024]; /* the defect and the remedy; empty if there is no defect */
} bph_candidate;

/* Returns the number of candidates. */
BPH_API bp_status bph_registry_candidate_count(bph_registry* registry, uint32_t* out, bp_error* error);
/* Returns candidate `index` in search order. Errors: INVALID_ARGUMENT past the count. */
BPH_API bp_status bph_registry_candidate(bph_registry* registry, uint32_t index, bph_candidate* out, bp_error* error);
/* Loads every candidate, and fills in the candidate's fields. A failure is recorded in the
 * candidate. The registry keeps loaded plugins loaded until its handle is released. */
BPH_API bp_status bph_registry_examine(bph_registry* registry, bp_error* error);

/* Loads a plugin by name, or by the path of a library or manifest; a path contains '/'. A second
 * load of a plugin returns the same instance. Starts no driver.
 * Errors: UNAVAILABLE (not found; the message lists the searched directories), ABI_MISMATCH,
 *         INVALID_ARGUMENT (the plugin violates a rule; the message states file, rule and remedy),
 *         OUT_OF_MEMORY. */
BPH_API bp_status bph_plugin_load(bph_registry* registry, const char* name_or_path, bph_plugin** out, bp_error* error);
BPH_API void bph_plugin_release(bph_plugin* plugin);

/* Properties of a loaded plugin. Role: output. */
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
/* Returns the number of devices. May start the driver. Errors: UNAVAILABLE, with the reason, if
 * there is no device. */
BPH_API bp_status bph_plugin_device_count(bph_plugin* plugin, uint32_t* out, bp_error* error);
/* Returns the properties of device `index`, without opening it. Errors: INVALID_ARGUMENT past the
 * count, UNAVAILABLE. */
BPH_API bp_status bph_plugin_device_info(bph_plugin* plugin, uint32_t index, bp_device_info* out, bp_error* error);

/* ---- Device ---------------------------------------------------------------------------------- */

/* Values of bph_device_desc.fallback: the behaviour if a device lacks a primitive. */

/* The call returns UNSUPPORTED, and its message states how to allow a fallback. */
#define BPH_FALLBACK_ERROR 0u
/* Core copies the operands to the fallback device, runs the operator there, and copies the results
 * back. Core counts every fallback, and logs a device's first fallback of each operator. */
#define BPH_FALLBACK_WARN 1u
#define BPH_FALLBACK_ALLOW 2u /* the same as BPH_FALLBACK_WARN, but core does not log */

/* An allocator of the framework, which core uses for temporaries and for bph_buffer_create. Role:
 * table. Core calls the functions from any thread. During such a call core holds at most one lock:
 * the lock of the BPH_STREAM_SHARED stream that needs the memory. */
typedef struct bph_allocator {
  uint32_t struct_size;
  uint32_t reserved;
  void* context;
  /* Returns a buffer that was created with BPH_BUFFER_RAW. At `*out_offset` the buffer has `bytes`
   * free bytes, aligned to `alignment`. Core uses these bytes in later work of `stream`. If
   * `stream` is null, core may use the bytes immediately, from the host and on any stream. Core
   * borrows the buffer until `release`. */
  bp_status (*allocate)(void* context, bph_device* device, uint32_t kind, uint64_t bytes, uint64_t alignment,
                        bph_stream* stream, bph_buffer** out_buffer, uint64_t* out_offset, bp_error* error);
  /* Frees the allocated bytes, which earlier work of `stream` may still use. Later work of `stream`
   * may reuse the bytes at once. If `stream` is null, no work uses the bytes any more. */
  void (*release)(void* context, bph_buffer* buffer, uint64_t offset, uint64_t bytes, bph_stream* stream);
} bph_allocator;
#define BPH_ALLOCATOR_MIN_SIZE 32u
BP_FROZEN_MIN(bph_allocator, BPH_ALLOCATOR_MIN_SIZE);

/* Parameters of bph_device_open. Role: input; a null pointer means all defaults. */
typedef struct bph_device_desc {
  uint32_t struct_size;
  uint32_t fallback;           /* BPH_FALLBACK_* */
  const char* fallback_device; /* null means "reference:0" */
  uint32_t plan_cache_entries; /* maximum number of entries; 0 means 4096 */
  /* Use of native composites: 1 means on, 2 means off, and 0 means the value of BACKPLANE_NATIVE,
   * which is on by default. */
  uint32_t native_composites;
  /* Null means core's allocator. The table is borrowed until the device closes. */
  const bph_allocator* allocator;
  const char* options; /* "key=value;key=value" for the plugin, or null */
} bph_device_desc;
#define BPH_DEVICE_DESC_MIN_SIZE 40u
BP_FROZEN_MIN(bph_device_desc, BPH_DEVICE_DESC_MIN_SIZE);

/* Opens a device by the name "plugin:index" or "plugin" (index 0). If `name` is null,
 * BACKPLANE_DEVICE applies, or else the order in the config file, or else the alphabetically first
 * plugin that has a device. Each call opens an independent device.
 * Errors: UNAVAILABLE (no such plugin or device; the message lists the candidates), and the errors
 *         of bph_plugin_load. */
BPH_API bp_status bph_device_open(bph_registry* registry, const char* name, const bph_device_desc* desc,
                                  bph_device** out, bp_error* error);
/* Opens device `index` of a loaded plugin. */
BPH_API bp_status bph_plugin_device_open(bph_plugin* plugin, uint32_t index, const bph_device_desc* desc,
                                         bph_device** out, bp_error* error);
/* Releases the caller's reference. The device closes when all its streams, events and buffers have
 * been released as well. The close does not wait for streams of other devices that use the device's
 * memory, so wait for them first. It logs a warning if it knows such a stream. */
BPH_API void bph_device_release(bph_device* device);
BPH_API bp_status bph_device_get_info(bph_device* device, bp_device_info* out, bp_error* error);
/* Writes the name "plugin:index", at most `size` bytes including the NUL. Errors: INVALID_ARGUMENT
 * if the name does not fit. */
BPH_API bp_status bph_device_name(bph_device* device, char* out, uint64_t size, bp_error* error);
BPH_API bp_status bph_device_memory_info(bph_device* device, uint32_t kind, bp_memory_info* out, bp_error* error);
/* Returns the table of an optional interface of the plugin, and the plugin's device handle for the
 * table's functions. Layers do not see calls through this table. Table and handle are borrowed
 * until the device closes. Errors: UNSUPPORTED if the plugin has no such interface. */
BPH_API bp_status bph_device_get_interface(bph_device* device, const char* name, uint32_t version,
                                           const void** out_table, bp_device** out_device, bp_error* error);

/* Returns the driver's handle number `index` of the device (native.h). The handle is borrowed until
 * the device closes. Errors: UNSUPPORTED past the last handle, and if the plugin has no such
 * handles.
 * Since: 0.3. */
BPH_API bp_status bph_device_get_native(bph_device* device, uint32_t index, bp_native_handle* out, bp_error* error);

/* Returns a mask of BP_PEER_*, which states how `device` can use the objects of `peer` (peer.h).
 * The result is 0 if the plugins or the registries of both devices differ, or if the plugin has no
 * bp.peer. bph_copy_across and bph_stream_wait_event state which bits they need.
 * Errors: INVALID_ARGUMENT if both devices are the same.
 * Since:  0.3. */
BPH_API bp_status bph_device_query_peer(bph_device* device, bph_device* peer, uint32_t* out, bp_error* error);

/* Returns type number `index` of the handles that the device exports or imports (external.h).
 * Errors: UNSUPPORTED past the last type, and if the plugin has no bp.external.
 * Since:  0.3. */
BPH_API bp_status bph_device_external_type(bph_device* device, uint32_t index, bp_external_type* out, bp_error* error);

/* Counters since the device was opened. Role: output. */
typedef struct bph_stats {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t executions;
  uint64_t plan_hits;       /* executions whose exact descriptor was cached */
  uint64_t plan_class_hits; /* uncached descriptors that an existing any-size plan serves */
  uint64_t plans_created;   /* calls to the plugin's plan_create that made a plan */
  uint64_t plans_evicted;
  uint64_t plan_entries;    /* current number of entries in the plan cache */
  uint64_t staged_operands; /* operands that core copied to or from dense temporaries */
  uint64_t staged_bytes;
  uint64_t host_staged_copies; /* copies that core staged through HOST memory */
  uint64_t host_staged_bytes;
  uint64_t fallback_executions;
  uint64_t fallback_bytes;
  uint64_t allocations;        /* allocations by bph_buffer_create and for temporaries */
  uint64_t allocations_cached; /* allocations that did not call the plugin */
  uint64_t bytes_in_use;       /* sum over all memory kinds */
  uint64_t bytes_in_use_peak;
  uint64_t bytes_reserved; /* bytes that are allocated from the plugin */
  uint64_t bytes_reserved_peak;
  uint64_t trims;
  uint64_t out_of_memory_retries; /* allocations that trimmed the cache when memory ran out */
  uint64_t workspace_bytes;       /* sum over streams, including temporaries of composites */
  uint64_t decomposed_executions; /* composites that ran as primitives */
  uint64_t plans_specialized;     /* plans for a recurring size; also counted in plans_created */
  uint64_t plugin_faults;         /* valid descriptors that plan_create refused as invalid */
  uint64_t peer_copies;           /* copies from another device through bp.peer; since 0.3 */
  uint64_t peer_bytes;            /* since 0.3 */
  uint64_t streams_revived;       /* failed streams that bph_stream_revive replaced; since 0.3 */
} bph_stats;
BPH_API bp_status bph_device_stats(bph_device* device, bph_stats* out, bp_error* error);

/* Returns cached memory to the plugin, and destroys cached plans if `plans` is 1. Does not wait,
 * and keeps memory that pending work uses. `out_bytes` receives the number of returned bytes, and
 * may be null. */
BPH_API bp_status bph_device_trim(bph_device* device, uint32_t plans, uint64_t* out_bytes, bp_error* error);

/* ---- Buffers --------------------------------------------------------------------------------- */

/* bph_buffer_create allocates directly from the plugin, without core's cache. This flag is for a
 * framework with its own allocator. */
#define BPH_BUFFER_RAW 1u

/* Parameters of bph_buffer_create. Role: input. */
typedef struct bph_buffer_desc {
  uint32_t struct_size;
  uint32_t kind;      /* BP_MEMORY_* */
  uint64_t bytes;     /* 0 is legal and makes a buffer without memory */
  uint64_t alignment; /* bytes, a power of two; 0 means bp_device_info.alignment */
  uint32_t flags;     /* BPH_BUFFER_* */
  uint32_t reserved;
  /* The stream that will use the buffer; bph_buffer_record adds further streams. If null, the
   * memory is reused only after all streams have completed the work that was pending when the
   * buffer was released. */
  bph_stream* stream;
} bph_buffer_desc;
#define BPH_BUFFER_DESC_MIN_SIZE 40u
BP_FROZEN_MIN(bph_buffer_desc, BPH_BUFFER_DESC_MIN_SIZE);

/* Allocates memory from the caching allocator. Contents are undefined.
 * Stream: never waits, unless memory is exhausted. In that case the call trims the cache and waits
 *         for pending work; bph_stats.out_of_memory_retries counts such calls.
 * Errors: OUT_OF_MEMORY with the requested, used, reserved and free bytes; UNSUPPORTED for an
 *         unsupported kind; INVALID_ARGUMENT.
 * Since:  0.1. */
BPH_API bp_status bph_buffer_create(bph_device* device, const bph_buffer_desc* desc, bph_buffer** out, bp_error* error);

/* With this flag, bph_buffer_import wraps the memory of bph_import_desc.native. Since: 0.3. */
#define BPH_IMPORT_NATIVE 1u
/* This library and its devices never write to the imported memory, which may be in pages that
 * cannot be written. A buffer with this flag cannot be an output or the target of a copy. Since:
 * 0.3. */
#define BPH_IMPORT_READ_ONLY 2u

/* Parameters of bph_buffer_import: memory that the caller owns. Role: input. */
typedef struct bph_import_desc {
  uint32_t struct_size;
  uint32_t type;    /* BP_IMPORT_* */
  uint64_t address; /* host address for BP_IMPORT_HOST, device address for BP_IMPORT_DEVICE */
  uint64_t bytes;   /* 0 is legal and makes a buffer without memory */
  uint32_t flags;   /* BPH_IMPORT_* */
  uint32_t reserved;
  /* The library calls this function once, from any thread and without a lock, when neither the
   * library nor the device uses the memory any more. If the import fails, the library never calls
   * this function. It may be null. */
  void (*release)(void* context);
  void* context;
  bph_stream* stream; /* has the meaning of bph_buffer_desc.stream */
  /* The handle of the driver's memory with BPH_IMPORT_NATIVE, and null without this flag. The
   * handle is borrowed for the call. With the flag, `type`, `address` and `bytes` are 0. Since:
   * 0.3. */
  const bp_native_handle* native;
} bph_import_desc;
#define BPH_IMPORT_DESC_MIN_SIZE 56u
BP_FROZEN_MIN(bph_import_desc, BPH_IMPORT_DESC_MIN_SIZE);

/* Creates a buffer over memory that the caller owns. The buffer's kind is HOST or SHARED for
 * BP_IMPORT_HOST, and DEVICE for BP_IMPORT_DEVICE. The plugin determines the kind of native memory;
 * see bph_buffer_get_info.
 * Errors: UNSUPPORTED if the plugin does not import such memory; INVALID_ARGUMENT. On failure
 *         `release` is not called.
 * Since:  0.2. */
BPH_API bp_status bph_buffer_import(bph_device* device, const bph_import_desc* desc, bph_buffer** out, bp_error* error);
/* Releases the caller's reference. The call is legal while pending work uses the buffer. Later work
 * uses the memory only after the pending work of the buffer's stream, and of all streams that
 * bph_buffer_record added, has completed. */
BPH_API void bph_buffer_release(bph_buffer* buffer);
/* Records that `stream` uses the buffer, in addition to the stream of the buffer's descriptor. */
BPH_API bp_status bph_buffer_record(bph_buffer* buffer, bph_stream* stream, bp_error* error);
/* Returns the host address of a HOST or SHARED buffer. The address is valid until the buffer is
 * released. The host may read and write bytes that no pending work uses, even while work uses other
 * bytes. In a HOST buffer, these bytes must be whole blocks of 256 bytes, counted from the buffer's
 * start. The host must not write to a read-only buffer. Errors: UNSUPPORTED for device memory. */
BPH_API bp_status bph_buffer_map(bph_buffer* buffer, void** out, bp_error* error);

/* Flag of bph_buffer_info: the device's kernels can use `address`. */
#define BPH_BUFFER_ADDRESS_NATIVE 1u
/* Flag of bph_buffer_info: the buffer is read-only (BPH_IMPORT_READ_ONLY). Since: 0.3. */
#define BPH_BUFFER_READ_ONLY 2u

/* Properties of a buffer. Role: output. */
typedef struct bph_buffer_info {
  uint32_t struct_size;
  uint32_t kind;
  uint64_t bytes;
  uint64_t plugin_offset;   /* offset in bytes of this buffer in the plugin's buffer */
  bp_buffer* plugin_buffer; /* argument of optional interfaces; null if there is no memory */
  /* The address of byte 0, or 0 if the buffer has no bytes. While the buffer exists, [address,
   * address + bytes) overlaps no other live buffer and no other memory of the process. HOST and
   * SHARED memory have the address of the mapping. DEVICE memory has its address on the device if
   * that address is unique in the process. Otherwise it has an address in reserved pages that
   * cannot be read. */
  uint64_t address;
  uint32_t flags; /* BPH_BUFFER_ADDRESS_NATIVE, BPH_BUFFER_READ_ONLY */
  uint32_t reserved;
} bph_buffer_info;
#define BPH_BUFFER_INFO_MIN_SIZE 48u
BP_FROZEN_MIN(bph_buffer_info, BPH_BUFFER_INFO_MIN_SIZE);
BPH_API bp_status bph_buffer_get_info(bph_buffer* buffer, bph_buffer_info* out, bp_error* error);
/* Returns the driver's handle of the buffer's memory (native.h). The handle is borrowed until the
 * buffer is released. If other code uses the memory through this handle, the caller orders that use
 * relative to the streams' work on this buffer.
 * Errors: UNSUPPORTED if the plugin or the memory has no such handle, or if the buffer has no
 *         bytes.
 * Since:  0.3. */
BPH_API bp_status bph_buffer_get_native(bph_buffer* buffer, bp_native_handle* out, bp_error* error);

/* Creates a buffer that bph_buffer_export can export as `type` (external.h). The memory does not
 * come from core's cache. `desc->bytes` is at least 1, and `desc->flags` is 0.
 * Errors: UNSUPPORTED if the plugin does not export memory of this kind as `type`;
 *         INVALID_ARGUMENT; OUT_OF_MEMORY.
 * Since:  0.3. */
BPH_API bp_status bph_buffer_create_external(bph_device* device, const bph_buffer_desc* desc, const char* type,
                                             bph_buffer** out, bp_error* error);
/* Returns a handle of the buffer's memory. The caller owns and closes out->fd. The memory exists
 * until all file descriptors are closed and all buffers over the memory are released, in every
 * process. Other devices and processes may use the memory after a host wait or a semaphore wait.
 * Errors: UNSUPPORTED if the plugin does not export the memory as `type`; INVALID_ARGUMENT for a
 *         buffer from core's cache, which shares its memory with other buffers; OUT_OF_MEMORY.
 * Since:  0.3. */
BPH_API bp_status bph_buffer_export(bph_buffer* buffer, const char* type, bp_external_handle* out, bp_error* error);
/* Creates a buffer over the memory of a handle. The caller keeps handle->fd, and may close it after
 * the call. `stream` has the meaning of bph_buffer_desc.stream.
 * Errors: UNSUPPORTED for a type, a device or an offset that the plugin does not import;
 *         INVALID_ARGUMENT for a wrong handle, and for bytes beyond the memory; OUT_OF_MEMORY.
 * Since:  0.3. */
BPH_API bp_status bph_buffer_import_external(bph_device* device, const bp_external_handle* handle, bph_stream* stream,
                                             bph_buffer** out, bp_error* error);
/* Creates a buffer of `device` over the memory of `buffer`, which belongs to another device. The
 * new buffer keeps `buffer` alive. The caller orders the work of both devices.
 * Errors: UNSUPPORTED if the plugin does not map the memory (BP_PEER_OPERAND); INVALID_ARGUMENT for
 *         a buffer of the same device or from core's cache; OUT_OF_MEMORY.
 * Since:  0.3. */
BPH_API bp_status bph_buffer_map_peer(bph_device* device, bph_buffer* buffer, bph_stream* stream, bph_buffer** out,
                                      bp_error* error);
/* Finds the live buffer whose address range contains `address`, on any device, and the offset in
 * that buffer. Finds only imported buffers, and buffers whose address bph_buffer_get_info or
 * bph_buffer_map returned. Both returned handles are borrowed from their owners. Any thread may
 * call this function. It takes no lock that an enqueue call holds while it calls the plugin.
 * Errors: INVALID_ARGUMENT for an address that is in no buffer.
 * Since:  0.2. */
BPH_API bp_status bph_buffer_from_address(uint64_t address, bph_device** out_device, bph_buffer** out_buffer,
                                          uint64_t* out_offset, bp_error* error);

/* ---- Streams and events ---------------------------------------------------------------------- */

#define BPH_STREAM_SHARED 1u   /* several threads may use the stream; each call locks it */
#define BPH_STREAM_EXTERNAL 2u /* other code may enqueue on bph_stream_info.plugin_stream */
/* The stream enqueues on bph_stream_desc.native. The flag implies EXTERNAL. Since: 0.3. */
#define BPH_STREAM_NATIVE 4u

/* Parameters of bph_stream_create. Role: input; a null pointer means all defaults. */
typedef struct bph_stream_desc {
  uint32_t struct_size;
  int32_t priority; /* a hint: 0 is normal, and positive values are more urgent */
  uint32_t flags;   /* BPH_STREAM_* */
  uint32_t reserved;
  /* The handle of the driver's stream with BPH_STREAM_NATIVE, and null without this flag. The
   * handle is borrowed for the call. With the flag, `priority` has no effect. Since: 0.3. */
  const bp_native_handle* native;
  /* The library calls this function once, from any thread and without a lock, when it no longer
   * uses the native stream. If bph_stream_create fails, the library never calls this function. It
   * may be null. Since: 0.3. */
  void (*release)(void* context);
  void* context; /* Since: 0.3 */
} bph_stream_desc;
#define BPH_STREAM_DESC_MIN_SIZE 16u
BP_FROZEN_MIN(bph_stream_desc, BPH_STREAM_DESC_MIN_SIZE);

/* Creates a stream.
 * SHARED    Several threads may use the stream, because each call locks it. A call waits for the
 *           lock, but not for the device. A function that waits for the device does not hold the
 *           lock and does not block enqueue calls, unless its comment states otherwise. If memory
 *           is exhausted, a call may wait while it holds the lock. Log lines of the calling thread,
 *           and releases of imported memory, reach their callbacks after the stream is unlocked. A
 *           log callback on another thread must not wait for a thread that waits for the lock. A
 *           caller with a global lock, such as Python's, therefore releases that lock before the
 *           call.
 * EXTERNAL  Other code may enqueue work that this library does not count. Memory that was released
 *           in this stream's order is therefore reused only when an event that was recorded after
 *           the release has completed. The caller ensures that no code enqueues on plugin_stream
 *           during a call on the stream.
 * NATIVE    The stream wraps a stream of the driver (native.h), which the caller owns. Work of the
 *           caller and of this library runs in the order of the enqueue calls. The native stream
 *           must exist until `release` is called. During a call on the stream, no other code may
 *           use the native stream, unless the driver permits this use.
 * Errors: UNSUPPORTED for unknown flags, and for a native stream that the plugin does not wrap;
 *         INVALID_ARGUMENT for a native stream that the driver rejects; OUT_OF_MEMORY.
 * Since: 0.2. In 0.1, the parameter was a priority instead of a descriptor. */
BPH_API bp_status bph_stream_create(bph_device* device, const bph_stream_desc* desc, bph_stream** out, bp_error* error);
/* Releases the caller's reference. The call is legal while work is pending. The stream is destroyed
 * after that work has completed. */
BPH_API void bph_stream_release(bph_stream* stream);
/* Waits for all work that was enqueued so far; BP_WAIT_FOREVER in device.h explains `timeout_ns`.
 * Errors: TIMEOUT; EXECUTION_FAILED; DEVICE_LOST. */
BPH_API bp_status bph_stream_wait(bph_stream* stream, uint64_t timeout_ns, bp_error* error);

/* Makes a failed stream usable again: waits until its work no longer accesses memory, and replaces
 * the plugin's stream. The contents of memory that the failed work or later work of the stream
 * wrote are undefined; all other memory is intact. Buffers, plans and the handle remain valid.
 * Events that the failed stream recorded remain failed until they are recorded again. If the stream
 * has not failed, the call only waits for it. If the call fails, the stream remains as it was.
 * Errors: UNSUPPORTED for a stream with BPH_STREAM_EXTERNAL; INVALID_ARGUMENT during a recording
 *         and inside an enqueue callback of the stream; OUT_OF_MEMORY; DEVICE_LOST.
 * Since:  0.3. */
BPH_API bp_status bph_stream_revive(bph_stream* stream, bp_error* error);

/* Properties of a stream. Role: output. */
typedef struct bph_stream_info {
  uint32_t struct_size;
  int32_t priority;
  uint32_t flags; /* BPH_STREAM_* */
  uint32_t reserved;
  bp_stream* plugin_stream; /* borrowed until release; null unless BPH_STREAM_EXTERNAL is set */
} bph_stream_info;
#define BPH_STREAM_INFO_MIN_SIZE 24u
BP_FROZEN_MIN(bph_stream_info, BPH_STREAM_INFO_MIN_SIZE);
/* Any thread may call this function, because it does not lock the stream. Since: 0.2. */
BPH_API bp_status bph_stream_get_info(bph_stream* stream, bph_stream_info* out, bp_error* error);

/* Returns the driver's handle of a stream that has BPH_STREAM_EXTERNAL (native.h). Submits all
 * earlier work of the stream to the driver. The handle is borrowed until release.
 * Errors: INVALID_ARGUMENT for a stream without BPH_STREAM_EXTERNAL; UNSUPPORTED if the plugin has
 *         no such handle; EXECUTION_FAILED; DEVICE_LOST.
 * Since:  0.3. */
BPH_API bp_status bph_stream_get_native(bph_stream* stream, bp_native_handle* out, bp_error* error);

/* Calls `enqueue` once, on this thread, while the stream is locked. The callback enqueues work on
 * `plugin_stream` through the plugin's interfaces. This library treats the callback as one enqueue
 * call. Buffers that the work uses obey the rules of bph_execute. Inside the callback, enqueue
 * calls on this stream and waits for this stream return INVALID_ARGUMENT, but bph_buffer_create and
 * bph_buffer_release are legal. Calls on other streams are legal, but two callbacks that use each
 * other's SHARED stream deadlock.
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
/* Waits on the host until the event, as last recorded, has completed. Errors: TIMEOUT;
 * EXECUTION_FAILED; DEVICE_LOST. */
BPH_API bp_status bph_event_wait(bph_event* event, uint64_t timeout_ns, bp_error* error);
/* Makes later work of `stream` wait until `event`, as last recorded, has completed. Since 0.3, the
 * event may belong to another device for which bph_device_query_peer returns BP_PEER_WAIT. */
BPH_API bp_status bph_stream_wait_event(bph_stream* stream, bph_event* event, bp_error* error);
/* Returns the device time from `begin` to `end` in nanoseconds. Errors: NOT_READY; INVALID_ARGUMENT
 * for events without timing; UNSUPPORTED. */
BPH_API bp_status bph_event_elapsed(bph_event* begin, bph_event* end, int64_t* out_ns, bp_error* error);

/* Properties of an event. Role: output. */
typedef struct bph_event_info {
  uint32_t struct_size;
  uint32_t flags; /* BP_EVENT_* */
  /* The plugin's event, borrowed until release. Do not record this event concurrently with
   * bph_event_record. */
  bp_event* plugin_event;
} bph_event_info;
#define BPH_EVENT_INFO_MIN_SIZE 16u
BP_FROZEN_MIN(bph_event_info, BPH_EVENT_INFO_MIN_SIZE);
/* Returns the properties of an event. Since: 0.2. */
BPH_API bp_status bph_event_get_info(bph_event* event, bph_event_info* out, bp_error* error);

/* Returns the driver's handle of the point at which the event was recorded last (native.h). The
 * handle is borrowed until the event is recorded again or released. No other call may record the
 * event at the same time.
 * Errors: INVALID_ARGUMENT for an event that was never recorded; UNSUPPORTED if the plugin has no
 *         such handle; EXECUTION_FAILED; DEVICE_LOST.
 * Since:  0.3. */
BPH_API bp_status bph_event_get_native(bph_event* event, bp_native_handle* out, bp_error* error);

/* Creates a semaphore with the value `value`, which bph_semaphore_export can export as `type`
 * (external.h).
 * Errors: UNSUPPORTED if the plugin has no such semaphores; OUT_OF_MEMORY.
 * Since:  0.3. */
BPH_API bp_status bph_semaphore_create(bph_device* device, const char* type, uint64_t value, bph_semaphore** out,
                                       bp_error* error);
/* Imports the semaphore of a handle into the device. The caller keeps handle->fd.
 * Errors: UNSUPPORTED for a type or a device that the plugin does not import; INVALID_ARGUMENT for
 *         a wrong handle; OUT_OF_MEMORY.
 * Since:  0.3. */
BPH_API bp_status bph_semaphore_import(bph_device* device, const bp_external_handle* handle, bph_semaphore** out,
                                       bp_error* error);
/* Returns a handle of the semaphore. The caller owns and closes out->fd.
 * Errors: UNSUPPORTED if the plugin does not export the semaphore as `type`; OUT_OF_MEMORY.
 * Since:  0.3. */
BPH_API bp_status bph_semaphore_export(bph_semaphore* semaphore, const char* type, bp_external_handle* out,
                                       bp_error* error);
/* Releases the caller's reference. Streams that signal the semaphore or wait for it keep it until
 * they end. */
BPH_API void bph_semaphore_release(bph_semaphore* semaphore);
/* Raises the semaphore to `value` after all earlier work of `stream`, or at once if `stream` is
 * null. If the stream fails first, the semaphore is not raised.
 * Errors: INVALID_ARGUMENT for a stream of another device; UNSUPPORTED for a null stream if the
 *         plugin cannot raise the semaphore from the host; EXECUTION_FAILED; DEVICE_LOST.
 * Since:  0.3. */
BPH_API bp_status bph_semaphore_signal(bph_semaphore* semaphore, bph_stream* stream, uint64_t value, bp_error* error);
/* Makes later work of `stream` wait until the semaphore has reached `value`. The call is legal
 * before any call has enqueued the signal.
 * Errors: INVALID_ARGUMENT for a stream of another device; UNSUPPORTED; EXECUTION_FAILED;
 *         DEVICE_LOST.
 * Since:  0.3. */
BPH_API bp_status bph_semaphore_wait(bph_semaphore* semaphore, bph_stream* stream, uint64_t value, bp_error* error);

/* ---- Copies ---------------------------------------------------------------------------------- */

/* bph_copy_in returns only when the caller may change `src`. */
#define BPH_COPY_SOURCE_FREE 1u
/* bph_copy_out does not wait. `dst` is borrowed until the stream has executed the copy. */
#define BPH_COPY_ENQUEUE 2u

/* Copies between two buffers of the stream's device. One of the buffers may be a HOST buffer of
 * another open device of any plugin. The call records such a buffer on the stream, like
 * bph_buffer_record. The stream's device imports the buffer, or copies it as pageable memory. If
 * the plugin supports neither, this library waits for the stream, stages the copy, and counts the
 * staging. `flags` must be 0.
 * Errors: INVALID_ARGUMENT for overlap, for a copy from HOST to HOST, which needs no device, and
 *         for DEVICE or SHARED memory of another device; UNSUPPORTED for unknown flags.
 * Since:  0.2, which added `flags` and HOST buffers of other devices. */
BPH_API bp_status bph_copy(bph_stream* stream, bph_buffer* dst, uint64_t dst_offset, bph_buffer* src,
                           uint64_t src_offset, uint64_t bytes, uint32_t flags, bp_error* error);
/* Copies from pageable host memory, which is borrowed until the stream has executed the copy. With
 * BPH_COPY_SOURCE_FREE the caller may change the source when the call returns. With this flag, this
 * library stages up to 4 MiB without a wait if the device has HOST memory, and counts the staging.
 * If the device has no HOST memory, the call waits for the copy. If the plugin has no slot for
 * pageable memory, this library stages every copy, and the source is free when the call returns.
 * Staging of more than 4 MiB proceeds in chunks and waits until the device has copied earlier
 * chunks, unless the stream is SHARED and memory suffices for the whole copy. Staging to a HOST
 * buffer waits for the stream.
 * Errors: INVALID_ARGUMENT; UNSUPPORTED for unknown flags.
 * Since:  0.2 with flags. */
BPH_API bp_status bph_copy_in(bph_stream* stream, bph_buffer* dst, uint64_t dst_offset, const void* src, uint64_t bytes,
                              uint32_t flags, bp_error* error);
/* Copies to pageable host memory, and waits for the copy. With BPH_COPY_ENQUEUE the call returns as
 * soon as the copy is enqueued. If the plugin has no slot for pageable memory, this library stages
 * the copy and waits even with that flag.
 * Errors: INVALID_ARGUMENT; UNSUPPORTED for unknown flags.
 * Since:  0.2 with flags. */
BPH_API bp_status bph_copy_out(bph_stream* stream, void* dst, bph_buffer* src, uint64_t src_offset, uint64_t bytes,
                               uint32_t flags, bp_error* error);
/* Copies between buffers of two streams, whose devices and plugins may differ. The copy follows all
 * earlier work of both streams and precedes their later work. On one device, events order the copy
 * without a wait. Since 0.3, events also order a copy between two devices that are peers: the
 * target device needs BP_PEER_COPY and BP_PEER_WAIT for the source device, and the source device
 * needs BP_PEER_WAIT for the target device (bph_device_query_peer). bph_stats.peer_copies of the
 * target device counts such a copy. Any other copy between two devices goes through host memory,
 * and the host waits for src_stream. The stats of the target device count the copy as staged. The
 * host also waits for dst_stream if dst is HOST or the copy exceeds 4 MiB. `flags` must be 0.
 * Errors: the errors of bph_copy; INVALID_ARGUMENT if both streams are the same.
 * Since:  0.2. */
BPH_API bp_status bph_copy_across(bph_stream* dst_stream, bph_buffer* dst, uint64_t dst_offset, bph_stream* src_stream,
                                  bph_buffer* src, uint64_t src_offset, uint64_t bytes, uint32_t flags,
                                  bp_error* error);

/* ---- Operators ------------------------------------------------------------------------------- */

/* A view of a buffer. Role: input, and an array element, so the struct never grows. Strides are in
 * elements. Inputs may have zero, negative and overlapping strides. Entries of shape and strides
 * from index `rank` on are ignored. */
typedef struct bph_tensor {
  bph_buffer* buffer; /* null for an immediate and for a view of zero elements */
  uint64_t offset;    /* bytes from the buffer's start to element 0 */
  uint64_t immediate; /* the value's bits in the view's dtype; see bph_scalar_from_f64 */
  uint16_t dtype;     /* 0 means that an optional operand is absent */
  uint8_t rank;
  uint8_t flags; /* BPH_TENSOR_* */
  /* For an output without a buffer in bph_device_supports, 1 + the index of the input that the
   * output overlays. The value is 0 in all other cases. */
  uint16_t alias;
  uint8_t hints;    /* hint bits of the view (BP_DESC_HINTS >> 8), passed to the plugin */
  uint8_t reserved; /* must be 0 */
  int64_t shape[BP_MAX_RANK];
  int64_t strides[BP_MAX_RANK];
} bph_tensor;
BP_STATIC_ASSERT(sizeof(bph_tensor) == 160, "bph_tensor is frozen");
#define BPH_TENSOR_IMMEDIATE 1u /* inputs only: every element is `immediate`; strides are ignored */
/* Inputs only: a packed operand, whose view bph_pack returned. strides[0] is its size in bytes, and
 * strides[1] is the layout. Since: 0.3. */
#define BPH_TENSOR_PACKED 2u

/* DLPack 1.x. Tensors are shared and never copied. A tensor that cannot be shared is
 * UNSUPPORTED. */
struct DLManagedTensorVersioned; /* declared in dlpack.h */

/* Exports a view to another library. Later work of `consumer` sees the results of all work that was
 * enqueued on `producer` so far. If both streams are on one device, an event orders the work;
 * otherwise the call waits for `producer`. A null producer means that no work is pending, so the
 * call never waits. A null consumer means a stream outside this library, so the call waits. The
 * memory is valid until the buffer's handle has been released and the deleter has run. Until then,
 * buffer, device and plugin remain open. The consumer calls the deleter once, from any thread, when
 * it no longer uses the memory.
 * Flags:  READ_ONLY for a read-only buffer, since 0.3. This function never copies. A caller that
 *         made a copy for this export sets IS_COPIED in (*out)->flags before the consumer receives
 *         the tensor.
 * Errors: UNSUPPORTED for an immediate, a dtype that DLPack lacks, memory of a kind that has no
 *         bp_device_info.dlpack_type, and memory without an address that other libraries can use;
 *         INVALID_ARGUMENT for a view that exceeds its buffer, and for a view without a buffer.
 * Since:  0.2. */
BPH_API bp_status bph_dlpack_export(const bph_tensor* tensor, bph_stream* producer, bph_stream* consumer,
                                    struct DLManagedTensorVersioned** out, bp_error* error);
/* Imports a view of another library's memory. The caller releases `out->buffer`. The deleter then
 * runs under the conditions of bph_import_desc.release. `consumer` has the meaning of
 * bph_import_desc.stream. The other library must have ordered its work on the memory before the
 * later work of `consumer`. A tensor with the flag READ_ONLY becomes a read-only buffer, as with
 * BPH_IMPORT_READ_ONLY; before 0.3, such a tensor is UNSUPPORTED. On failure the caller keeps the
 * managed tensor, and calls the deleter, which DLPack permits for every version.
 * Errors: UNSUPPORTED for another major version, unknown flags, a device that `device` cannot
 *         access, a dtype that this library lacks or that has several lanes, an address without the
 *         natural alignment of the dtype, more than BP_MAX_RANK dimensions, and memory that the
 *         plugin does not import; INVALID_ARGUMENT for a null pointer, a negative extent, a view
 *         whose addresses exceed 64 bits, and a stream of another device.
 * Since:  0.2. */
BPH_API bp_status bph_dlpack_import(bph_device* device, struct DLManagedTensorVersioned* managed, bph_stream* consumer,
                                    bph_tensor* out, bp_error* error);

/* One eager call of an operator. Role: input. */
typedef struct bph_call {
  uint32_t struct_size;
  uint32_t op;    /* BP_OP_* */
  uint64_t flags; /* BPH_CALL_*, BP_OP_FLAG_* */
  const void* attributes;
  const bph_tensor* inputs;
  const bph_tensor* outputs;
  const uint64_t* scalars; /* bits in the operator's scalar dtype; null with DEVICE_SCALARS */
  uint32_t input_count;
  uint32_t output_count;
  uint32_t scalar_count;
  uint32_t hints; /* hint bits, passed to the plugin; part of the plan cache's key */
  /* `scalar_count` views that replace `scalars` under BP_OP_FLAG_DEVICE_SCALARS; otherwise null.
   * The device reads the values when the work runs, so a value may be the result of earlier work.
   * Each view has the operator's scalar dtype, rank 0 and the natural alignment, and overlaps no
   * output. The rules for the buffers of inputs apply. This library decomposes a composite or FILL
   * if the plugin can read the scalars of such a call only from the host. Before 0.3, the flag is
   * UNSUPPORTED. */
  const bph_tensor* scalar_tensors;
} bph_call;
#define BPH_CALL_MIN_SIZE 64u
BP_FROZEN_MIN(bph_call, BPH_CALL_MIN_SIZE);
#define BPH_CALL_NO_NATIVE (1ull << 32) /* decompose a composite even if the plugin implements it */

/* Validates the call, finds or creates the plan, and enqueues the work. A call with a cached
 * descriptor allocates nothing, except at the third execution of that descriptor if the plan has
 * BP_PLAN_SPECIALIZABLE. A decomposed composite and staged operands need several enqueue calls. If
 * one of these calls fails, the work that was enqueued before it still runs.
 * Errors: INVALID_ARGUMENT (the message states the wrong values), UNSUPPORTED (the message names
 *         operator, dtypes and device), OUT_OF_MEMORY, EXECUTION_FAILED, DEVICE_LOST, UNAVAILABLE
 *         (a fallback device that cannot be opened). */
BPH_API bp_status bph_execute(bph_stream* stream, const bph_call* call, bp_error* error);
/* Executes `count` calls in their order, like bph_execute, and stops at the first call that fails.
 * Locks a SHARED stream only once for all calls. `calls` points to pointers, because bph_call may
 * grow. `out_done` receives the number of calls that succeeded, even after a failure, and may be
 * null. The error is the error of call number `*out_done`.
 * Errors: the errors of bph_execute; INVALID_ARGUMENT for a null pointer.
 * Since:  0.3. */
BPH_API bp_status bph_execute_many(bph_stream* stream, const bph_call* const* calls, uint32_t count, uint32_t* out_done,
                                   bp_error* error);

/* Values of bph_support.path: the way in which a call is executed. */
#define BPH_PATH_NATIVE 1u     /* the plugin implements the operator */
#define BPH_PATH_DECOMPOSED 2u /* core runs primitives of the plugin; plan_flags is 0 */
#define BPH_PATH_FALLBACK 3u   /* the fallback device runs the operator */

/* The way in which bph_execute would execute a call. With BPH_PATH_FALLBACK, the other fields
 * describe the fallback device. Role: output. */
typedef struct bph_support {
  uint32_t struct_size;
  uint32_t plan_flags;   /* BP_PLAN_* */
  uint32_t stage_inputs; /* masks of staged operands, including inputs that an output overlays */
  uint32_t stage_outputs;
  /* Workspace of the plan, or temporaries of a decomposed composite. BP_WORKSPACE_UNKNOWN if
   * plan_flags has BP_PLAN_FACTS_UNKNOWN. */
  uint64_t workspace_bytes;
  uint32_t path; /* BPH_PATH_* */
  uint32_t reserved;
} bph_support;
/* Returns the way in which bph_execute would execute a call. Executes nothing and creates no plan.
 * Views need shapes, strides and dtypes; buffers may be null. Without buffers the result assumes
 * full alignment, and `alias` names the input that an output overlays. Results are cached, so a
 * descriptor that was executed or queried before causes no plugin call.
 * Errors: UNSUPPORTED, with a message that names the missing part; INVALID_ARGUMENT as for
 *         bph_execute; UNAVAILABLE (the fallback device cannot be opened). */
BPH_API bp_status bph_device_supports(bph_device* device, const bph_call* call, bph_support* out, bp_error* error);

/* ---- Packed operands ------------------------------------------------------------------------- */

/* The memory of a packed operand. Role: output. */
typedef struct bph_pack_info {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t bytes;     /* size of the packed operand */
  uint64_t alignment; /* alignment in bytes of the packed operand's address, a power of two */
} bph_pack_info;
#define BPH_PACK_INFO_MIN_SIZE 24u
BP_FROZEN_MIN(bph_pack_info, BPH_PACK_INFO_MIN_SIZE);

/* Returns the memory that input `input` of a call needs in the plugin's preferred layout for
 * constant inputs. Views need shapes, strides and dtypes; buffers may be null, as in
 * bph_device_supports. Other inputs may be packed.
 * Errors: UNSUPPORTED if the plugin prefers the plain input, or does not implement the operator;
 *         INVALID_ARGUMENT for an input that is not constant, because an output overlays it, and
 *         for an input that is absent, packed, an immediate, of rank below 2 or without elements;
 *         the errors of bph_device_supports.
 * Since:  0.3. */
BPH_API bp_status bph_pack_query(bph_device* device, const bph_call* call, uint32_t input, bph_pack_info* out,
                                 bp_error* error);
/* Packs input `input` of a call to `dst`, and returns in *out the view that later calls pass
 * instead of that input. Only that input needs a buffer. The stream reads the input when it
 * executes the packing, so later writes to the input do not change the packed operand. The packed
 * operand exists only in `dst`. A call with the packed view is UNSUPPORTED unless its plan reads
 * this layout, and the error message then states both layouts. A call with other sizes, dtypes or
 * attributes, or of another operator, may need another layout.
 * Errors: the errors of bph_pack_query; INVALID_ARGUMENT for a `dst` on another device, too small,
 *         not aligned or overlapping the input, and for a stream that records a graph;
 *         OUT_OF_MEMORY; EXECUTION_FAILED; DEVICE_LOST.
 * Since:  0.3. */
BPH_API bp_status bph_pack(bph_stream* stream, const bph_call* call, uint32_t input, bph_buffer* dst,
                           uint64_t dst_offset, bph_tensor* out, bp_error* error);

/* ---- Graphs ---------------------------------------------------------------------------------- */

/* A range of bytes of a buffer. Role: input, and an array element, so the struct never grows. */
typedef struct bph_graph_binding {
  bph_buffer* buffer;
  uint64_t offset; /* bytes from the buffer's start to the range */
  uint64_t bytes;  /* size of the range; at least 1 */
} bph_graph_binding;
BP_STATIC_ASSERT(sizeof(bph_graph_binding) == 24, "bph_graph_binding is frozen");

/* Flag of bph_graph_desc: this library enqueues the recorded calls even if the plugin has
 * bp.graph. */
#define BPH_GRAPH_NO_NATIVE 1u

/* Parameters of bph_graph_begin. Role: input; a null pointer means all defaults. */
typedef struct bph_graph_desc {
  uint32_t struct_size;
  uint32_t flags; /* BPH_GRAPH_NO_NATIVE or 0 */
  /* The ranges that a launch may replace. They do not overlap. Each operand and each range of a
   * copy is inside one of these ranges or outside all of them. */
  const bph_graph_binding* bindings;
  uint32_t binding_count;
  uint32_t reserved;
} bph_graph_desc;
#define BPH_GRAPH_DESC_MIN_SIZE 24u
BP_FROZEN_MIN(bph_graph_desc, BPH_GRAPH_DESC_MIN_SIZE);

/* Flag of bph_graph_info: the plugin launches the graph. Otherwise this library enqueues the
 * recorded calls. */
#define BPH_GRAPH_NATIVE 1u

/* Properties of a graph. Role: output. */
typedef struct bph_graph_info {
  uint32_t struct_size;
  uint32_t flags;        /* BPH_GRAPH_NATIVE or 0 */
  uint64_t nodes;        /* recorded executions and copies; a decomposed composite has several */
  uint64_t device_bytes; /* memory of the graph for temporaries, workspace and the plugin */
} bph_graph_info;
#define BPH_GRAPH_INFO_MIN_SIZE 24u
BP_FROZEN_MIN(bph_graph_info, BPH_GRAPH_INFO_MIN_SIZE);

/* Begins to record a graph on a stream. Until bph_graph_end, the following calls on the stream are
 * validated as usual, and recorded instead of executed: bph_execute; bph_copy on one device;
 * bph_copy_in without flags and bph_copy_out with BPH_COPY_ENQUEUE, if the plugin has the slot of
 * that name; bph_event_record; bph_stream_wait_event. If another stream waits for an event that was
 * recorded in the graph, that stream joins and is recorded too. On a recorded stream, every other
 * enqueue call and every wait returns INVALID_ARGUMENT and does not affect the graph. Work of other
 * code on a stream with BPH_STREAM_EXTERNAL is not recorded.
 * Values    Immediates, scalars and host addresses are recorded. The bytes of buffers and of host
 *           memory are read at each launch, so host memory is borrowed until the graph is released.
 * Memory    The graph keeps the recorded buffers and the buffers of its bindings, even after their
 *           handles are released. It has its own temporaries and workspace.
 * Events    Only recorded streams of this graph can wait for an event that was recorded in the
 *           graph. Waits of the host and of other streams return INVALID_ARGUMENT until the event
 *           is recorded again.
 * Threads   Until bph_graph_end, only one thread at a time may use the recorded streams.
 * Release   Releasing the stream discards the recording. The streams that joined the recording then
 *           execute their calls again.
 * Errors: UNSUPPORTED for unknown flags; INVALID_ARGUMENT for a stream that is recorded, and for
 *         bindings that exceed their buffer, overlap or are of another device.
 * Since:  0.3. */
BPH_API bp_status bph_graph_begin(bph_stream* stream, const bph_graph_desc* desc, bp_error* error);
/* Ends the recording that began on this stream, and creates the graph. If the plugin has bp.graph
 * (graph.h) and can record the work, the plugin launches the graph. Otherwise this library enqueues
 * the recorded calls in their order. `info` may be null. If the call fails, a recording that began
 * on this stream is discarded.
 * Errors: INVALID_ARGUMENT if no recording began on this stream, or if a stream that joined has
 *         work for which this stream did not wait; OUT_OF_MEMORY; EXECUTION_FAILED; DEVICE_LOST.
 * Since:  0.3. */
BPH_API bp_status bph_graph_end(bph_stream* stream, bph_graph** out, bph_graph_info* info, bp_error* error);
/* Enqueues all work of a graph on any stream of its device. `count` is 0, or the number of bindings
 * of bph_graph_begin. With bindings, each range replaces the recorded range of the same index in
 * this launch. The new range has the same size and memory kind as the recorded range, and at least
 * the same alignment. If a recorded operand inside the range is aligned to more bytes than the
 * start of the range, the new range keeps the operand's alignment. The caller orders launches of
 * one graph on different streams, because the launches use the same memory. Buffers of the bindings
 * obey the rules of bph_execute. If this library enqueues the calls and one of them fails, the
 * calls before it still run.
 * Errors: INVALID_ARGUMENT for a stream of another device, for a wrong count, and for ranges that
 *         break these rules, overlap each other, or overlap other memory of the graph if the
 *         recorded work writes to the range or to that memory;
 *         OUT_OF_MEMORY; EXECUTION_FAILED; DEVICE_LOST.
 * Since:  0.3. */
BPH_API bp_status bph_graph_launch(bph_stream* stream, bph_graph* graph, const bph_graph_binding* bindings,
                                   uint32_t count, bp_error* error);
/* Releases the caller's reference. The call is legal while launches are pending. Memory that the
 * graph kept is reused after these launches. Since: 0.3. */
BPH_API void bph_graph_release(bph_graph* graph);

#ifdef __cplusplus
}
#endif
#endif
