// SPDX-License-Identifier: Apache-2.0
// The frozen kit plugin, built for the grown ABI and kit. It also implements the additions by
// grow.py.
#include <backplane/kit/plugin.hpp>

#include "grown_arithmetic.h"

#define frozen_knows grown_knows
#define frozen_run grown_run
#define FROZEN_ADAMW_SCALARS 4
#define bp_plugin_query frozen_query
#include "../frozen/0.2/kit_plugin.cpp"
#undef bp_plugin_query

namespace {

class Grown : public Driver {
 public:
  explicit Grown(Host host) : Driver(host) { kernels().add(BP_OP_COPY, BP_I16, run); }
  Status device_info(uint32_t index, bp_device_info& info) const {
    info.later = 5;
    return Driver::device_info(index, info);
  }
};

// Pointer to the kit's get_interface. grown_interface calls this function, and adds a slot to the
// returned table.
const void* (*kit_interface)(const bp_plugin*, bp_device*, const char*, uint32_t) = nullptr;

const void* grown_interface(const bp_plugin* plugin, bp_device* device, const char* name, uint32_t version) {
  static bp_import_api grown;
  const void* const table = kit_interface(plugin, device, name, version);
  if (table == nullptr || std::string_view(name) != BP_INTERFACE_IMPORT) return table;
  grown = *static_cast<const bp_import_api*>(table);
  grown.later = grown_import_later;
  return &grown;
}

}  // namespace

BP_EXPORT bp_status bp_plugin_query(const bp_host* host, const bp_plugin** out, bp_error* error) {
  static bp_device_api slots;
  const bp_status status = query<Grown>(host, out, error);
  if (status != BP_OK) return status;
  auto& plugin = const_cast<bp_plugin&>(**out);
  slots = *plugin.device_api;
  slots.later = grown_later;
  plugin.device_api = &slots;
  kit_interface = plugin.get_interface;
  plugin.get_interface = grown_interface;
  return BP_OK;
}
