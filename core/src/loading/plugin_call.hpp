// SPDX-License-Identifier: Apache-2.0
// Calls of a plugin's slots: what they answer becomes an Error that names device and slot.
#pragma once

#include "base/error.hpp"
#include "loading/device.hpp"

namespace backplane::core {

// "plugin:index: what" in front of the plugin's message.
Error plugin_failure(const Device& device, const char* what, bp_status status, const bp_error& reported) noexcept;

// Throws unless `status` is OK.
inline void check(const Device& device, const char* what, bp_status status, const bp_error& reported) {
  if (status != BP_OK) [[unlikely]]
    throw plugin_failure(device, what, status, reported);
}

// A create slot's answer: the handle, or an Error; success without a handle is the plugin's defect.
template <class T>
T* created(const Device& device, const char* what, bp_status status, const bp_error& reported, T* handle) {
  check(device, what, status, reported);
  if (handle == nullptr) {
    throw Error(BP_INTERNAL,
                "{}: {} answered OK with a null result, which is nonconforming; report it to the plugin's author",
                device.name, what);
  }
  return handle;
}

}  // namespace backplane::core
