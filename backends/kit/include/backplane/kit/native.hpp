// SPDX-License-Identifier: Apache-2.0
// Handles of the interface "bp.native", and the checks of handles that a caller passes.
#pragma once

#include <backplane/kit/error.hpp>
#include <string_view>

namespace backplane::kit {

// Makes a handle. `type` has at most 31 characters.
inline bp_native_handle native_handle(std::string_view type, uint64_t value, uint32_t flags = 0) {
  bp_native_handle handle{};
  handle.struct_size = sizeof(handle);
  handle.flags = flags;
  handle.value = value;
  type.copy(handle.type, sizeof(handle.type) - 1);
  return handle;
}

// Returns the handle's type, which ends at the first NUL or at the end of the array.
inline std::string_view type_of(const bp_native_handle& handle) {
  const std::string_view room(handle.type, sizeof(handle.type));
  return room.substr(0, room.find('\0'));
}

// Returns UNSUPPORTED unless the handle has the type `type`.
inline Status check_native_type(const bp_native_handle& handle, std::string_view type) {
  if (type_of(handle) == type) return {};
  return unsupported("the handle has the type \"", type_of(handle), "\", but this device accepts \"", type, "\"");
}

}  // namespace backplane::kit
