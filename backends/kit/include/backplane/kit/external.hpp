// SPDX-License-Identifier: Apache-2.0
// Handles of the interface "bp.external", and the checks of handles that a caller passes.
#pragma once

#include <backplane/kit/error.hpp>
#include <cstring>
#include <string_view>

namespace backplane::kit {

// A type of external handles. `name` has at most 31 characters.
struct ExternalType {
  std::string_view name;
  uint32_t flags = 0;  // BP_EXTERNAL_*
};

// Makes a handle. `type` has at most 31 characters.
inline bp_external_handle external_handle(std::string_view type, int64_t fd) {
  bp_external_handle handle{};
  handle.struct_size = sizeof(handle);
  handle.fd = fd;
  type.copy(handle.type, sizeof(handle.type) - 1);
  return handle;
}

// Returns the handle's type, which ends at the first NUL or at the end of the array.
inline std::string_view type_of(const bp_external_handle& handle) {
  const std::string_view room(handle.type, sizeof(handle.type));
  return room.substr(0, room.find('\0'));
}

// Returns UNSUPPORTED unless `type` equals `known`, the type that the called method accepts.
inline Status check_external_type(std::string_view type, std::string_view known) {
  if (type == known) return {};
  return unsupported("the type of external handles is \"", type.substr(0, 31), "\", this operation takes \"", known,
                     "\"");
}

// Returns UNSUPPORTED unless the handle has the type `known`, and the handle's uuid is 0 or the
// uuid of the device.
inline Status check_external_handle(const bp_external_handle& handle, std::string_view known,
                                    const uint8_t (&device_uuid)[16]) {
  if (Status status = check_external_type(type_of(handle), known); !status.ok()) return status;
  constexpr uint8_t any[16] = {};
  if (std::memcmp(handle.uuid, any, sizeof(any)) == 0 || std::memcmp(handle.uuid, device_uuid, sizeof(any)) == 0)
    return {};
  return unsupported("the uuid of the external handle is the uuid of another device; import the handle there");
}

}  // namespace backplane::kit
