// SPDX-License-Identifier: Apache-2.0
#include "cases/runtime/native.hpp"

#include <algorithm>
#include <backplane/rules/tables.hpp>
#include <cstring>

namespace backplane::conformance {

bp_native_api native_of(Context& context, Device& device) {
  const Plugin& plugin = device.plugin();
  const void* given = plugin->get_interface == nullptr
                          ? nullptr
                          : plugin->get_interface(plugin.get(), device.get(), BP_INTERFACE_NATIVE, 1);
  if (given == nullptr) context.not_claimed("the device has no bp.native");
  return backplane::rules::known_part(*static_cast<const bp_native_api*>(given), plugin->abi_version);
}

std::string_view type_of(const bp_native_handle& handle) {
  const std::string_view room(handle.type, sizeof(handle.type));
  return room.substr(0, room.find('\0'));
}

bool are_equal(const bp_native_handle& a, const bp_native_handle& b) {
  return a.flags == b.flags && a.value == b.value && a.offset == b.offset && a.bytes == b.bytes &&
         type_of(a) == type_of(b);
}

void require_form(Context& context, const bp_native_handle& handle, const char* slot) {
  const std::string_view type = type_of(handle);
  const bool legal =
      !type.empty() && type.size() < sizeof(handle.type) && std::all_of(type.begin(), type.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
      });
  context.require(legal, "{} gave a handle of type \"{:?}\", which is not of the form [a-z0-9_.]{{1,31}}", slot, type);
  context.require((handle.flags & ~BP_NATIVE_ADDRESS) == 0 || context.plugin()->abi_version > BP_ABI_VERSION,
                  "{} gave a handle with the unknown flags {:#x}", slot, handle.flags);
}

namespace {

// Calls a slot that returns a handle. The handle contains garbage before the call, so that a field that the slot does
// not set is detected.
template <class Call>
bp_native_handle take_handle(Context& context, const char* slot, const Call& call) {
  bp_native_handle handle;
  std::memset(&handle, 0xA5, sizeof(handle));
  handle.struct_size = sizeof(handle);
  ErrorRecord error;
  const bp_status status = call(&handle, &error);
  expect_status(status, error, slot, {BP_OK, BP_UNSUPPORTED});
  if (status != BP_OK) context.not_claimed("{} gives no handle of this object", slot);
  require_form(context, handle, slot);
  return handle;
}

}  // namespace

bp_native_handle handle_of(Context& context, const Buffer& buffer) {
  const auto slot = native_with(context, &bp_native_api::buffer_native, "buffer_native").buffer_native;
  return take_handle(context, "buffer_native", [&](bp_native_handle* out, bp_error* error) {
    return slot(buffer.device().get(), buffer.get(), out, error);
  });
}
bp_native_handle handle_of(Context& context, const Stream& stream) {
  const auto slot = native_with(context, &bp_native_api::stream_native, "stream_native").stream_native;
  return take_handle(context, "stream_native", [&](bp_native_handle* out, bp_error* error) {
    return slot(stream.device().get(), stream.get(), out, error);
  });
}
bp_native_handle handle_of(Context& context, const Event& event) {
  const auto slot = native_with(context, &bp_native_api::event_native, "event_native").event_native;
  return take_handle(context, "event_native", [&](bp_native_handle* out, bp_error* error) {
    return slot(event.device().get(), event.get(), out, error);
  });
}

Wrapped<Stream> try_wrap_stream(Context& context, Device& device, const bp_native_handle* handle) {
  const bp_native_api table = native_with(context, &bp_native_api::stream_wrap, "stream_wrap");
  bp_stream* made = reinterpret_cast<bp_stream*>(&made);
  ErrorRecord error;
  const bp_status status = table.stream_wrap(device.get(), handle, &made, &error);
  context.require((status == BP_OK) == (made != nullptr), "stream_wrap returned {} and gave {}", status_name(status),
                  static_cast<const void*>(made));
  return {status, error, Stream(device, made)};
}

Wrapped<Buffer> try_wrap_buffer(Context& context, Device& device, const bp_native_handle* handle) {
  const bp_native_api table = native_with(context, &bp_native_api::buffer_wrap, "buffer_wrap");
  bp_buffer* made = reinterpret_cast<bp_buffer*>(&made);
  uint32_t kind = UINT32_MAX;
  ErrorRecord error;
  const bp_status status = table.buffer_wrap(device.get(), handle, &kind, &made, &error);
  context.require((status == BP_OK) == (made != nullptr), "buffer_wrap returned {} and gave {}", status_name(status),
                  static_cast<const void*>(made));
  if (made != nullptr)
    context.require(kind < BP_MEMORY_KINDS && device.offers(kind),
                    "buffer_wrap gave memory of kind {}, which the device does not offer", kind);
  return {status, error, Buffer(device, made, made == nullptr ? 0 : handle->bytes), kind};
}

Stream wrap_stream(Context& context, const bp_native_handle& handle) {
  Wrapped<Stream> wrapped = try_wrap_stream(context, context.device(), &handle);
  expect_status(wrapped.status, wrapped.error, "stream_wrap", {BP_OK});
  return std::move(wrapped.object);
}
Wrapped<Buffer> wrap_buffer(Context& context, const bp_native_handle& handle) {
  Wrapped<Buffer> wrapped = try_wrap_buffer(context, context.device(), &handle);
  expect_status(wrapped.status, wrapped.error, "buffer_wrap", {BP_OK});
  return wrapped;
}

}  // namespace backplane::conformance
