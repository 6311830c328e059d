// SPDX-License-Identifier: Apache-2.0
// Fills the tables of a layer with wrapper functions that templates generate.
#pragma once

#include <memory>
#include <type_traits>

#include "base/error.hpp"
#include "layers/slots.hpp"
#include "layers/wrap.hpp"

namespace backplane::core::layers {

inline const void* find_interface(const bp_plugin* plugin, bp_device* device, const char* name, uint32_t version) {
  bp_device* inner = device != nullptr ? reinterpret_cast<WrappedDevice*>(device)->inner : nullptr;
  return wrapped(plugin).interface_of(inner, name, version);
}

// Returns the slot that a layer's slot calls, or null if the plugin lacks it.
template <class Function, class Table>
Function slot_below(const WrappedPlugin& own, bp_device* inner, Function Table::*member) {
  if constexpr (std::is_same_v<Table, bp_device_api>) {
    return own.next.*member;
  } else {
    return own.inner_interface<Table>(inner).*member;
  }
}

// Returns the argument that the plugin receives. Devices are the only handles that layers replace.
template <class Argument>
Argument argument_below(Argument argument) {
  if constexpr (std::is_same_v<Argument, bp_device*>) {
    return argument == nullptr ? nullptr : reinterpret_cast<WrappedDevice*>(argument)->inner;
  } else {
    return argument;
  }
}

// Calls the slot that a layer's slot wraps. Returns UNSUPPORTED if the plugin lacks the slot.
template <class Function, class Table, class... Args>
bp_status call_below(const WrappedPlugin& own, bp_device* inner, Slot slot, Function Table::*member, bp_error* error,
                     Args... args) {
  const Function function = slot_below(own, inner, member);
  if (function != nullptr) return function(inner, argument_below(args)...);
  return Error(BP_UNSUPPORTED, "{:.64}: the device has no slot {}", own.table.name, slot_name(slot)).write(error);
}

// Fills the device table with Shim<slot, member>::call for slots that return a status, and with
// Destroy<member>::call for destroy slots. Also fills the tables of interfaces, and sets
// get_interface. The layer itself sets `close` and the other slots of the plugin's table.
template <template <Slot, auto> class Shim, template <auto> class Destroy>
void splice_device(WrappedPlugin& own) {
  bp_device_api& api = own.api;
  const bp_device_api& has = own.has;
  splice_slot(api.buffer_destroy, has.buffer_destroy, &Destroy<&bp_device_api::buffer_destroy>::call);
  splice_slot(api.stream_destroy, has.stream_destroy, &Destroy<&bp_device_api::stream_destroy>::call);
  splice_slot(api.event_destroy, has.event_destroy, &Destroy<&bp_device_api::event_destroy>::call);
  splice_slot(api.plan_destroy, has.plan_destroy, &Destroy<&bp_device_api::plan_destroy>::call);
#define BP_SPLICE_plugin(name)
#define BP_SPLICE_device(name) splice_slot(api.name, has.name, &Shim<Slot::name, &bp_device_api::name>::call);
#define BP_SLOT(owner, name, statuses) BP_SPLICE_##owner(name)
#define BP_INTERFACE_DESTROY(owner, name) own.owner.name = &Destroy<&bp_##owner##_api::name>::call;
#define BP_INTERFACE_SLOT(owner, name, statuses) own.owner.name = &Shim<Slot::name, &bp_##owner##_api::name>::call;
#define BP_INTERFACE_DESTROY(owner, name) own.owner.name = &Destroy<&bp_##owner##_api::name>::call;
#include "layers/slots.def"
#undef BP_SLOT
#undef BP_SPLICE_plugin
#undef BP_SPLICE_device
  if (own.table.get_interface != nullptr) own.table.get_interface = find_interface;
}

}  // namespace backplane::core::layers
