/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin without devices that writes to standard output and standard error, as some drivers do. */
#include <backplane/plugin.h>

#include <stdio.h>

static bp_status device_count(const bp_plugin* plugin, uint32_t* out, bp_error* error) {
  (void)plugin, (void)error;
  *out = 0;
  return BP_OK;
}

static void shut_down(const bp_plugin* plugin) { (void)plugin; }

BP_EXPORT bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error) {
  static const bp_device_api api = {.struct_size = sizeof(api)};
  static const bp_plugin table = {.struct_size = sizeof(table),
                                  .abi_version = BP_ABI_VERSION,
                                  .abi_version_min = BP_ABI_VERSION,
                                  .name = "printing",
                                  .version = "1",
                                  .device_count = device_count,
                                  .shutdown = shut_down,
                                  .device_api = &api};
  (void)host, (void)error;
  puts("printing: looks for devices");
  fputs("printing: the driver is missing\n", stderr);
  *out = &table;
  return BP_OK;
}
