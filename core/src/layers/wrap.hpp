// SPDX-License-Identifier: Apache-2.0
// The common part of all layers. A layer sits between a host and a plugin. Like a plugin, a layer
// has a table and device handles of its own, and its shutdown also shuts down the plugin. Buffers,
// streams, events and plans keep the plugin's handles.
#pragma once

#include <backplane/plugin.h>

#include <cstddef>
#include <cstring>

#include "loading/plugin_table.hpp"

namespace backplane::core::layers {

// The base class of every layer's device. WrappedDevice must be the first base class, so that
// inner_device can cast a device handle.
struct WrappedDevice {
  bp_device* inner;
};

// Returns the plugin's device that `depth` layers wrap.
inline bp_device* inner_device(bp_device* device, unsigned depth) noexcept {
  for (; depth != 0; --depth) device = reinterpret_cast<WrappedDevice*>(device)->inner;
  return device;
}

// The instance of a layer. The host sees its `table`.
struct WrappedPlugin {
  WrappedPlugin(const bp_plugin* wrapped, const bp_host* given)
      : inner(wrapped),
        host(given),
        has(rules::known_part(*wrapped->device_api, wrapped->abi_version)),
        next(complete_table(has)) {
    table = rules::known_part(*wrapped, wrapped->abi_version);
    table.device_api = &api;
    api.struct_size = sizeof(api);
  }
  WrappedPlugin(const WrappedPlugin&) = delete;
  WrappedPlugin& operator=(const WrappedPlugin&) = delete;

  bp_plugin table;
  bp_device_api api = {};
  const bp_plugin* inner;
  const bp_host* host;
  // The plugin's slots. A null optional slot is null in the layer's table too.
  const bp_device_api has;
  // The table that the layer calls: a copy of `has` with stubs in place of null slots.
  const bp_device_api next;
  bp_import_api import = {};

  void log(const char* message) const { host->log(host->context, BP_LOG_ERROR, message); }
  // Returns the plugin's bp.import, or null if the plugin has none.
  const bp_import_api* inner_import(bp_device* device) const {
    if (inner->get_interface == nullptr) return nullptr;
    const auto* given = static_cast<const bp_import_api*>(inner->get_interface(inner, device, BP_INTERFACE_IMPORT, 1));
    const bool usable = given != nullptr && BP_HAS_FIELD(given->struct_size, bp_import_api, import_memory) &&
                        given->import_memory != nullptr;
    return usable ? given : nullptr;
  }
};

// Returns the layer to which the table `plugin` belongs.
inline WrappedPlugin& wrapped(const bp_plugin* plugin) {
  static_assert(offsetof(WrappedPlugin, table) == 0);
  return *reinterpret_cast<WrappedPlugin*>(const_cast<bp_plugin*>(plugin));
}

// Sets `slot` to `mine` if the plugin has the slot, and to null otherwise.
template <class Function>
void splice_slot(Function& slot, Function has, Function mine) {
  slot = has == nullptr ? nullptr : mine;
}

}  // namespace backplane::core::layers
