/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin ABI's front door: what a vendor's shared library exports, and what it is given. Include this one header. */
#ifndef BACKPLANE_PLUGIN_H
#define BACKPLANE_PLUGIN_H

#include "device.h"

/* What the host gives. Role: table; outlives the plugin instance.
 * The same in every major version: bp_error, the signature of bp_plugin_query, the first two fields of bp_host and the first
 * three of bp_plugin. So a host and a plugin of any two majors can find out that they differ. */
typedef struct bp_host {
  uint32_t struct_size;
  /* Its major says how the rest of this struct is laid out; its minor is the highest of that major that the host speaks. A
   * plugin answers ABI_MISMATCH to another major. A host that speaks several asks again, from the newest down. 1.0 has the
   * layout of the last 0.x, and a host of 1.x speaks 0.x too. */
  uint32_t abi_version;
  void* context; /* handed back to every slot of this table */

  /* Takes one line for the user; level is BP_LOG_*.
   * Ownership: message is borrowed for the call.
   * Threads:   any, also inside any slot and from the driver's own threads; never after shutdown returned.
   * Stream:    synchronous; returns promptly, calls no plugin and takes no lock that is held around a plugin call.
   * Errors:    none.
   * Since:     0.1, required. */
  void (*log)(void* context, int32_t level, const char* message);

  /* A table of the host's by name, or null; `version` as in bp_plugin.get_interface.
   * Ownership: borrowed until shutdown.
   * Threads:   any, concurrently.
   * Stream:    synchronous.
   * Errors:    none; null means "not here".
   * Since:     0.1, required. */
  const void* (*get_interface)(void* context, const char* name, uint32_t version);
} bp_host;
#define BP_HOST_MIN_SIZE 32u
BP_FROZEN_MIN(bp_host, BP_HOST_MIN_SIZE);

/* Bits of bp_plugin.build_flags: how the library was built; information only. */
#define BP_BUILD_DEBUG 1u
#define BP_BUILD_ASAN 2u
#define BP_BUILD_TSAN 4u
#define BP_BUILD_UBSAN 8u

/* A plugin instance. Role: table; the plugin's own fields may follow in its derived struct. Strings are static UTF-8. */
struct bp_plugin {
  uint32_t struct_size;
  uint32_t abi_version;     /* what its tables were built for: a slot of a later Since is not there */
  uint32_t abi_version_min; /* the oldest host that it works with: BP_ABI_VERSION_OLDEST, or what it needs */
  uint32_t build_flags;     /* BP_BUILD_* */
  const char* name;         /* [a-z0-9_]{1,63}; the manifest's `name` is the same */
  const char* version;      /* the vendor's own */
  const bp_device_api* device_api;

  /* How many devices there are. May start the driver.
   * Ownership: out is the caller's.
   * Threads:   any, concurrently.
   * Stream:    synchronous.
   *            An index means the same device from the first successful device_count until shutdown.
   * Errors:    UNAVAILABLE and *out 0 where the driver is missing or finds none: the message says why.
   * Since:     0.1, required. */
  bp_status (*device_count)(const bp_plugin* plugin, uint32_t* out, bp_error* error);

  /* What device `index` says of itself, without opening it.
   * Ownership: out is the caller's.
   * Threads:   any, concurrently.
   * Stream:    synchronous.
   * Errors:    INVALID_ARGUMENT for an index past the count; UNAVAILABLE.
   * Since:     0.1, required. */
  bp_status (*device_info)(const bp_plugin* plugin, uint32_t index, bp_device_info* out, bp_error* error);

  /* Opens device `index`. A null desc means all defaults. Objects of one open are strangers to another, also of the same
   * index; memory_info tells of the hardware.
   * Ownership: caller; free with bp_device_api.close before shutdown. desc is borrowed for the call.
   * Threads:   any, concurrently.
   * Stream:    synchronous.
   * Errors:    INVALID_ARGUMENT for an index past the count; UNSUPPORTED option; UNAVAILABLE; OUT_OF_MEMORY.
   * Since:     0.1, required. */
  bp_status (*device_open)(const bp_plugin* plugin, uint32_t index, const bp_device_desc* desc, bp_device** out,
                           bp_error* error);

  /* A table of the plugin's by name (below), or null; device may be null where the interface is the plugin's. `version` is the
   * table's major, counted from 1: a table grows at its tail, and its slots count by bp_plugin.abi_version. A plugin answers
   * every major that it still has, and the host asks from the newest down.
   * Ownership: borrowed until shutdown, or until the device closes if one was given.
   * Threads:   any, concurrently.
   * Stream:    synchronous.
   * Errors:    none; null means "not here".
   * Since:     0.1, optional. */
  const void* (*get_interface)(const bp_plugin* plugin, bp_device* device, const char* name, uint32_t version);

  /* Ends the instance: afterwards no log line and no thread that could write one. The host never calls it from a destructor
   * or an exit handler; exit without it, at any moment, is safe.
   * Ownership: consumes plugin.
   * Threads:   any; devices are closed, no call on this instance runs.
   * Stream:    synchronous.
   * Errors:    none.
   * Since:     0.1, required. */
  void (*shutdown)(const bp_plugin* plugin);
};
#define BP_PLUGIN_MIN_SIZE 80u
BP_FROZEN_MIN(struct bp_plugin, BP_PLUGIN_MIN_SIZE);

/* The only exported symbol. Starts no driver and no thread. Each success is an instance that its own shutdown ends: two
 * hosts in one process share the mapping of the library, so an instance, and not a static variable, holds the host.
 * Ownership: *out is the caller's; end it with its shutdown. host is borrowed until then.
 * Threads:   any, concurrently.
 * Stream:    synchronous.
 * Errors:    ABI_MISMATCH if host->abi_version is of another major or older than the plugin works with; OUT_OF_MEMORY.
 * Since:     0.1, required. */
#define BP_PLUGIN_QUERY_SYMBOL "bp_plugin_query"
BP_EXPORT bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error);
typedef bp_status (*bp_plugin_query_fn)(const bp_host* host, const bp_plugin** out, bp_error* error);

/* ---- Optional interfaces. Names are frozen; a vendor's own begin with its `vendor.` name and are not layered. -------- */

/* "bp.import" version 1, per device: buffers over memory that someone else owns. */
#define BP_INTERFACE_IMPORT "bp.import"
#define BP_IMPORT_HOST 0u   /* `address` is of the host's memory */
#define BP_IMPORT_DEVICE 1u /* `address` is one that buffer_address gives for memory of this device */

/* Memory that someone else owns. Role: input. */
typedef struct bp_import_desc {
  uint32_t struct_size;
  uint32_t type; /* BP_IMPORT_* */
  uint64_t address;
  uint64_t bytes; /* at least 1 */
} bp_import_desc;
#define BP_IMPORT_DESC_MIN_SIZE 24u
BP_FROZEN_MIN(bp_import_desc, BP_IMPORT_DESC_MIN_SIZE);

/* Role: table. */
typedef struct bp_import_api {
  uint32_t struct_size;
  uint32_t reserved;
  /* A buffer over memory that the caller owns: for BP_IMPORT_HOST of kind SHARED if the device can use it as an operand, else
   * HOST; for BP_IMPORT_DEVICE of kind DEVICE; *out_kind says which. buffer_destroy leaves the memory alone.
   * Ownership: caller frees the buffer; the memory is borrowed until then, and the host may touch it as BP_MEMORY_* says of
   *            the kind. desc is borrowed for the call.
   * Threads:   any, concurrently.
   * Stream:    synchronous.
   * Errors:    UNSUPPORTED type, or memory or alignment that the driver does not take; OUT_OF_MEMORY; DEVICE_LOST.
   * Since:     0.2, required in this interface. */
  bp_status (*import_memory)(bp_device* device, const bp_import_desc* desc, uint32_t* out_kind, bp_buffer** out,
                             bp_error* error);
} bp_import_api;
#define BP_IMPORT_API_MIN_SIZE 16u
BP_FROZEN_MIN(bp_import_api, BP_IMPORT_API_MIN_SIZE);

/* Reserved names, to come: bp.native bp.graph bp.peer bp.collective bp.external bp.kernel bp.subgraph bp.callback bp.progress
 * bp.pool bp.pack, and of the host bp.host.parallel. */

#endif
