// SPDX-License-Identifier: Apache-2.0
// Converts the status of a plugin's slot to an Error that names the device and the slot.
#pragma once

#include "base/error.hpp"
#include "loading/device.hpp"

namespace backplane::core {

// Returns an Error with the plugin's message, prefixed with "plugin:index: what".
Error plugin_failure(const Device& device, const char* what, bp_status status, const bp_error& reported) noexcept;

// Throws unless `status` is OK.
inline void check(const Device& device, const char* what, bp_status status, const bp_error& reported) {
  if (status != BP_OK) [[unlikely]]
    throw plugin_failure(device, what, status, reported);
}

// Checks the result of a create slot and returns the handle. Throws if the status is OK and the
// handle is null, which is a defect of the plugin.
template <class T>
T* created(const Device& device, const char* what, bp_status status, const bp_error& reported, T* handle) {
  check(device, what, status, reported);
  if (handle == nullptr) {
    throw Error(BP_INTERNAL,
                "{}: {} returned OK with a null result, which is nonconforming; report it to the plugin's author",
                device.name, what);
  }
  return handle;
}

}  // namespace backplane::core
