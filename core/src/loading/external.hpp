// SPDX-License-Identifier: Apache-2.0
// Calls the slots of the interface "bp.external" of a device.
#pragma once

#include "loading/interface_slot.hpp"
#include "loading/plugin_call.hpp"

namespace backplane::core {

// Returns a slot of bp.external. Throws UNSUPPORTED if the device lacks the slot. `function` and `slot` are the names
// of the host API's function and of the slot in the message.
template <class Function>
Function external_slot(const Device& device, const char* function, const char* slot,
                       Function bp_external_api::*member) {
  if (const Function found = interface_of<bp_external_api>(device).*member; found != nullptr) return found;
  throw Error(BP_UNSUPPORTED, "{}: {} has no {} (interface {}); copy through host memory instead", function,
              device.name, slot, BP_INTERFACE_EXTERNAL);
}

// Throws INVALID_ARGUMENT unless `type` is a name that a bp_external_type can have.
inline void require_type(const char* function, const char* type) {
  const size_t length = type == nullptr ? 0 : strnlen(type, sizeof(bp_external_type::name));
  if (length != 0 && length < sizeof(bp_external_type::name)) return;
  throw Error(BP_INVALID_ARGUMENT, "{}: the type is null, empty or longer than 31 characters; pass a name that {}",
              function, "bph_device_external_type returns");
}

}  // namespace backplane::core
