// SPDX-License-Identifier: Apache-2.0
// Fills the tables of a layer with wrapper functions that templates generate.
#pragma once

#include <memory>
#include <string_view>

#include "layers/slots.hpp"
#include "layers/wrap.hpp"

namespace backplane::core::layers {

// Returns the layer's bp.import if the plugin has that interface. Forwards requests for other
// interfaces to the plugin.
inline const void* find_interface(const bp_plugin* plugin, bp_device* device, const char* name, uint32_t version) {
  const WrappedPlugin& own = wrapped(plugin);
  bp_device* inner = device != nullptr ? reinterpret_cast<WrappedDevice*>(device)->inner : nullptr;
  if (std::string_view(name) == BP_INTERFACE_IMPORT && version == 1) {
    return own.inner_import(inner) == nullptr ? nullptr : &own.import;
  }
  return own.inner->get_interface(own.inner, inner, name, version);
}

// Fills the device table with Shim<slot, member>::call for slots that return a status, and with
// Destroy<member>::call for destroy slots. The layer sets `close` and the slots of the plugin's
// table itself.
template <template <Slot, auto> class Shim, template <auto> class Destroy>
void splice_device(WrappedPlugin& own, decltype(bp_import_api::import_memory) import_memory) {
  bp_device_api& api = own.api;
  const bp_device_api& has = own.has;
  splice_slot(api.buffer_destroy, has.buffer_destroy, &Destroy<&bp_device_api::buffer_destroy>::call);
  splice_slot(api.stream_destroy, has.stream_destroy, &Destroy<&bp_device_api::stream_destroy>::call);
  splice_slot(api.event_destroy, has.event_destroy, &Destroy<&bp_device_api::event_destroy>::call);
  splice_slot(api.plan_destroy, has.plan_destroy, &Destroy<&bp_device_api::plan_destroy>::call);
#define BP_SPLICE_plugin(name)
#define BP_SPLICE_import(name)
#define BP_SPLICE_device(name) splice_slot(api.name, has.name, &Shim<Slot::name, &bp_device_api::name>::call);
#define BP_SLOT(owner, name, statuses) BP_SPLICE_##owner(name)
#include "layers/slots.def"
#undef BP_SLOT
#undef BP_SPLICE_plugin
#undef BP_SPLICE_import
#undef BP_SPLICE_device
  own.import.struct_size = sizeof(own.import);
  own.import.import_memory = import_memory;
  if (own.table.get_interface != nullptr) own.table.get_interface = find_interface;
}

}  // namespace backplane::core::layers
