/* SPDX-License-Identifier: Apache-2.0 */
/* The frozen plugin in plain C, built for the grown ABI. The plugin also implements the additions
 * that grow.py makes to the ABI. */
#define frozen_knows grown_knows
#define frozen_run grown_run
#define bp_plugin_query frozen_query
#include <backplane/plugin.h>
#undef frozen_knows
#undef frozen_run
#include "grown_arithmetic.h"
#define frozen_knows grown_knows
#define frozen_run grown_run
#include "../frozen/0.2/plugin.c"
#undef bp_plugin_query

static bp_status grown_info(const bp_plugin* plugin, uint32_t index, bp_device_info* out, bp_error* error) {
  const bp_status status = device_info(plugin, index, out, error);
  if (status == BP_OK && BP_HAS_FIELD(out->struct_size, bp_device_info, later)) out->later = 5;
  return status;
}

static const bp_import_api import_api = {.struct_size = sizeof(bp_import_api), .later = grown_import_later};
static const void* grown_interface(const bp_plugin* plugin, bp_device* device, const char* name, uint32_t version) {
  (void)plugin;
  return device != NULL && version == 1 && strcmp(name, BP_INTERFACE_IMPORT) == 0 ? &import_api : NULL;
}

BP_EXPORT bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error) {
  static bp_plugin grown;
  static bp_device_api slots;
  const bp_status status = frozen_query(host, out, error);
  if (status != BP_OK) return status;
  grown = **out;
  slots = *grown.device_api;
  slots.struct_size = sizeof(slots);
  slots.later = grown_later;
  grown.device_api = &slots;
  grown.device_info = grown_info;
  grown.get_interface = grown_interface;
  *out = &grown;
  return BP_OK;
}
