// SPDX-License-Identifier: Apache-2.0
// The common part of all layers. A layer sits between a host and a plugin. Like a plugin, a layer has a table and
// device handles of its own, and its shutdown also shuts down the plugin. The layer passes the plugin's handles of
// buffers, streams, events and plans on unchanged.
#pragma once

#include <backplane/plugin.h>

#include <cstddef>
#include <cstring>
#include <string_view>

#include "loading/interfaces.hpp"
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
#define BP_LAYER_INTERFACE(owner, NAME) owner.struct_size = rules::table_bytes<bp_##owner##_api>(wrapped->abi_version);
#include "layers/interfaces.def"
#undef BP_LAYER_INTERFACE
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
  // The layer's interface tables. If the plugin lacks a slot, the layer's slot returns UNSUPPORTED.
#define BP_LAYER_INTERFACE(owner, NAME) bp_##owner##_api owner = {};
#include "layers/interfaces.def"
#undef BP_LAYER_INTERFACE

  void log(const char* message) const { host->log(host->context, BP_LOG_ERROR, message); }
  // Returns the slots of an interface of the plugin's device. All slots are null if the device lacks
  // the interface.
  template <class Table>
  Table inner_interface(bp_device* device) const {
    if (inner->get_interface == nullptr) return {};
    return known_interface<Table>(inner->get_interface(inner, device, kInterfaceName<Table>, 1), inner->abi_version);
  }
  // Implements get_interface for the plugin's device `device`. Returns the layer's table of an
  // interface that layers wrap, if the device has the interface. Returns the plugin's table of any
  // other interface.
  const void* interface_of(bp_device* device, const char* name, uint32_t version) const {
    const void* given = inner->get_interface(inner, device, name, version);
    if (given == nullptr || version != 1) return given;
#define BP_LAYER_INTERFACE(owner, NAME) \
  if (std::string_view(name) == BP_INTERFACE_##NAME) return owner.struct_size == 0 ? nullptr : &owner;
#include "layers/interfaces.def"
#undef BP_LAYER_INTERFACE
    return given;
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
