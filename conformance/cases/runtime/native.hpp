// SPDX-License-Identifier: Apache-2.0
// Native handles of a device's objects, and objects that wrap native objects.
#pragma once

#include "harness/context.hpp"

namespace backplane::conformance {

inline constexpr const char* kNativeExtension = "NATIVE";
inline constexpr uint32_t kNativeSince = BP_VERSION(0, 3);

// Returns the slots of bp.native. Ends the case as not claimed if the device lacks the interface.
bp_native_api native_of(Context& context, Device& device);
// Returns the slots of bp.native of the case's device. Ends the case as not claimed if the device lacks the interface,
// or if the slot `member` is null.
template <class Function>
bp_native_api native_with(Context& context, Function bp_native_api::*member, const char* slot) {
  const bp_native_api table = native_of(context, context.device());
  if (table.*member == nullptr) context.not_claimed("the device has no {}", slot);
  return table;
}

// Functions that return handles. Each checks the form of the handle, and ends the case as not
// claimed if the slot is null or returns UNSUPPORTED.
bp_native_handle handle_of(Context& context, const Buffer& buffer);
bp_native_handle handle_of(Context& context, const Stream& stream);
bp_native_handle handle_of(Context& context, const Event& event);
// Checks that the type of a handle has the legal form and that the flags are known.
void require_form(Context& context, const bp_native_handle& handle, const char* slot);
bool are_equal(const bp_native_handle& a, const bp_native_handle& b);
std::string_view type_of(const bp_native_handle& handle);

// The result of a slot that wraps a native object. `object` is empty if the call failed.
template <class Object>
struct Wrapped {
  bp_status status;
  ErrorRecord error;
  Object object;
  uint32_t kind = UINT32_MAX;  // kind of memory; only buffers have one
};
Wrapped<Stream> try_wrap_stream(Context& context, Device& device, const bp_native_handle* handle);
Wrapped<Buffer> try_wrap_buffer(Context& context, Device& device, const bp_native_handle* handle);
// Like try_wrap_stream and try_wrap_buffer, except that a failure fails the case.
Stream wrap_stream(Context& context, const bp_native_handle& handle);
Wrapped<Buffer> wrap_buffer(Context& context, const bp_native_handle& handle);

}  // namespace backplane::conformance
