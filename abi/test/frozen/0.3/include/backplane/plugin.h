/* SPDX-License-Identifier: Apache-2.0 */
/* The entry point of the plugin ABI: the symbol that a vendor's shared library exports, and the
 * table that the library receives from the host. A plugin includes only this header. */
#ifndef BACKPLANE_PLUGIN_H
#define BACKPLANE_PLUGIN_H

#include "device.h"
#include "external.h"
#include "graph.h"
#include "native.h"
#include "pack.h"
#include "peer.h"

/* The host's table. Role: table; outlives the plugin instance. Some parts of the ABI are the same
 * in every major version. A host and a plugin of different major versions can therefore detect the
 * difference. These parts are bp_error, the signature of bp_plugin_query, the first two fields of
 * bp_host and the first three fields of bp_plugin. */
typedef struct bp_host {
  uint32_t struct_size;
  /* The major version determines the layout of the rest of this struct. The minor version is the
   * highest that the host supports for that major version. A plugin returns ABI_MISMATCH to a host
   * of another major version. A host that supports several major versions queries the plugin with
   * each of them, the newest first. Version 1.0 has the layout of the last 0.x, and a host of 1.x
   * also supports 0.x. */
  uint32_t abi_version;
  void* context; /* the first argument of every slot of this table */

  /* Logs one line for the user; level is BP_LOG_*.
   * Ownership: message is borrowed for the call.
   * Threads:   any, including threads inside a slot and threads of the driver; never after shutdown
   *            has returned.
   * Stream:    synchronous; returns promptly, calls no plugin, and takes no lock that the host
   *            holds during a plugin call.
   * Errors:    none.
   * Since:     0.1, required. */
  void (*log)(void* context, int32_t level, const char* message);

  /* Returns a table of the host by name, or null. `version` has the same meaning as in
   * bp_plugin.get_interface.
   * Ownership: borrowed until shutdown.
   * Threads:   any, concurrently.
   * Stream:    synchronous.
   * Errors:    none; null means that there is no such table.
   * Since:     0.1, required. */
  const void* (*get_interface)(void* context, const char* name, uint32_t version);
} bp_host;
#define BP_HOST_MIN_SIZE 32u
BP_FROZEN_MIN(bp_host, BP_HOST_MIN_SIZE);

/* Bits of bp_plugin.build_flags, which describe the build. Hosts only report these bits. */
#define BP_BUILD_DEBUG 1u
#define BP_BUILD_ASAN 2u
#define BP_BUILD_TSAN 4u
#define BP_BUILD_UBSAN 8u

/* A plugin instance. Role: table. The plugin may append private fields in a derived struct. Strings
 * are static UTF-8. */
struct bp_plugin {
  uint32_t struct_size;
  uint32_t abi_version;     /* ABI version of the plugin's tables, which contain no later slots */
  uint32_t abi_version_min; /* oldest supported host version; at least BP_ABI_VERSION_OLDEST */
  uint32_t build_flags;     /* BP_BUILD_* */
  const char* name;         /* [a-z0-9_]{1,63}; equal to the manifest's `name` */
  const char* version;      /* the vendor's version of the plugin */
  const bp_device_api* device_api;

  /* Returns the number of devices. May start the driver. An index refers to the same device from
   * the first successful device_count until shutdown.
   * Ownership: out is the caller's.
   * Threads:   any, concurrently.
   * Stream:    synchronous.
   * Errors:    UNAVAILABLE and *out 0 if the driver is missing or finds no device; the message
   *            states the reason.
   * Since:     0.1, required. */
  bp_status (*device_count)(const bp_plugin* plugin, uint32_t* out, bp_error* error);

  /* Returns the properties of device `index`, without opening it.
   * Ownership: out is the caller's.
   * Threads:   any, concurrently.
   * Stream:    synchronous.
   * Errors:    INVALID_ARGUMENT for an index past the count; UNAVAILABLE.
   * Since:     0.1, required. */
  bp_status (*device_info)(const bp_plugin* plugin, uint32_t index, bp_device_info* out, bp_error* error);

  /* Opens device `index`. A null desc means all defaults. An object belongs to the device handle
   * that created it. No other handle accepts the object, even if the handle has the same index.
   * memory_info reports the memory of the hardware, which all handles share.
   * Ownership: the caller owns *out, and calls bp_device_api.close before shutdown. desc is
   *            borrowed for the call.
   * Threads:   any, concurrently.
   * Stream:    synchronous.
   * Errors:    INVALID_ARGUMENT for an index past the count; UNSUPPORTED for an unknown option;
   *            UNAVAILABLE; OUT_OF_MEMORY.
   * Since:     0.1, required. */
  bp_status (*device_open)(const bp_plugin* plugin, uint32_t index, const bp_device_desc* desc, bp_device** out,
                           bp_error* error);

  /* Returns a table of the plugin by name (see "Optional interfaces" below), or null. `device` may
   * be null if the interface belongs to the plugin and not to a device. `version` is the major
   * version of the table, counted from 1. A table grows at its tail, and bp_plugin.abi_version
   * determines its slots. A plugin returns a table for every major version that it still supports.
   * The host requests the newest major version first.
   * Ownership: borrowed until shutdown, or until `device` closes if it is not null.
   * Threads:   any, concurrently.
   * Stream:    synchronous.
   * Errors:    none; null means that there is no such table.
   * Since:     0.1, optional. */
  const void* (*get_interface)(const bp_plugin* plugin, bp_device* device, const char* name, uint32_t version);

  /* Shuts the instance down. Afterwards the plugin writes no log lines and has no threads. The host
   * never calls this slot from a destructor or an exit handler. The process may exit at any moment
   * without a call of this slot.
   * Ownership: consumes plugin.
   * Threads:   any; all devices are closed, and no call on this instance runs.
   * Stream:    synchronous.
   * Errors:    none.
   * Since:     0.1, required. */
  void (*shutdown)(const bp_plugin* plugin);
};
#define BP_PLUGIN_MIN_SIZE 80u
BP_FROZEN_MIN(struct bp_plugin, BP_PLUGIN_MIN_SIZE);

/* The only symbol that a plugin exports. Creates an instance, which exists until its shutdown.
 * Starts no driver and no thread. Two hosts in one process share the mapping of the library. The
 * plugin must therefore store the host's table in the instance, not in a static variable.
 * Ownership: the caller owns *out until it calls shutdown. host is borrowed until then.
 * Threads:   any, concurrently.
 * Stream:    synchronous.
 * Errors:    ABI_MISMATCH if host->abi_version has another major version, or is older than the
 *            oldest version that the plugin supports; OUT_OF_MEMORY.
 * Since:     0.1, required. */
#define BP_PLUGIN_QUERY_SYMBOL "bp_plugin_query"
BP_EXPORT bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error);
typedef bp_status (*bp_plugin_query_fn)(const bp_host* host, const bp_plugin** out, bp_error* error);

/* ---- Optional interfaces ----------------------------------------------------------------------
 * Names are frozen. Names of a vendor's interfaces begin with the vendor's name and a dot. Layers
 * do not wrap a vendor's interfaces. */

/* "bp.import" version 1, per device, creates buffers over memory that the caller owns. */
#define BP_INTERFACE_IMPORT "bp.import"
#define BP_IMPORT_HOST 0u   /* `address` is an address of host memory */
#define BP_IMPORT_DEVICE 1u /* `address` is an address in this device's memory */

/* Memory that the caller owns. Role: input. */
typedef struct bp_import_desc {
  uint32_t struct_size;
  uint32_t type; /* BP_IMPORT_* */
  uint64_t address;
  uint64_t bytes; /* at least 1 */
} bp_import_desc;
#define BP_IMPORT_DESC_MIN_SIZE 24u
BP_FROZEN_MIN(bp_import_desc, BP_IMPORT_DESC_MIN_SIZE);

/* The slots of "bp.import". Role: table. */
typedef struct bp_import_api {
  uint32_t struct_size;
  uint32_t reserved;
  /* Creates a buffer over memory that the caller owns, and returns the buffer's kind in *out_kind.
   * For BP_IMPORT_HOST the kind is SHARED if the device can use the memory as an operand, otherwise
   * HOST. For BP_IMPORT_DEVICE the kind is DEVICE. buffer_destroy does not free the memory.
   * Ownership: the caller owns *out, and calls buffer_destroy. The memory is borrowed until then.
   *            The host may access the memory as BP_MEMORY_* permits for the buffer's kind. desc is
   *            borrowed for the call.
   * Threads:   any, concurrently.
   * Stream:    synchronous.
   * Errors:    UNSUPPORTED for an unknown type, and for memory or alignment that the driver does
   *            not accept; OUT_OF_MEMORY; DEVICE_LOST.
   * Since:     0.2, required in this interface. */
  bp_status (*import_memory)(bp_device* device, const bp_import_desc* desc, uint32_t* out_kind, bp_buffer** out,
                             bp_error* error);
} bp_import_api;
#define BP_IMPORT_API_MIN_SIZE 16u
BP_FROZEN_MIN(bp_import_api, BP_IMPORT_API_MIN_SIZE);

/* "bp.native" version 1, per device, is in native.h. */
/* "bp.graph" version 1, per device, is in graph.h. */
/* "bp.peer" version 1, per device, is in peer.h. */
/* "bp.external" version 1, per device, is in external.h. */
/* "bp.pack" version 1, per device, is in pack.h. */

/* Names that are reserved for later interfaces: bp.collective bp.kernel bp.subgraph bp.callback
 * bp.progress bp.pool, and the host's bp.host.parallel. */

#endif
