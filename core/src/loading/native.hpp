// SPDX-License-Identifier: Apache-2.0
// Calls the slots of the interface "bp.native" of a device.
#pragma once

#include <type_traits>

#include "loading/interface_slot.hpp"
#include "loading/plugin_call.hpp"

namespace backplane::core {

// Returns a slot of bp.native. Throws UNSUPPORTED if the device lacks the slot. `function` and
// `slot` are the names of the host API's function and of the slot in the message.
template <class Function>
Function native_slot(const Device& device, const char* function, const char* slot, Function bp_native_api::*member) {
  if (const Function found = interface_of<bp_native_api>(device).*member; found != nullptr) return found;
  throw Error(BP_UNSUPPORTED, "{}: {} has no {} (interface {}); use copies and events of this library instead",
              function, device.name, slot, BP_INTERFACE_NATIVE);
}

// Calls a slot of bp.native that returns the handle of `subject`. Throws the slot's errors.
template <class Subject>
bp_native_handle native_handle(const Device& device, const char* function, const char* slot,
                               bp_status (*bp_native_api::*member)(bp_device*, Subject, bp_native_handle*, bp_error*),
                               std::type_identity_t<Subject> subject) {
  const auto call = native_slot(device, function, slot, member);
  bp_native_handle handle = {};
  handle.struct_size = sizeof(handle);
  bp_error error = fresh_error();
  check(device, slot, call(device.handle, subject, &handle, &error), error);
  return handle;
}

}  // namespace backplane::core
