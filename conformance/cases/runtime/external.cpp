// SPDX-License-Identifier: Apache-2.0
#include "cases/runtime/external.hpp"

#include <unistd.h>

#include <algorithm>
#include <backplane/rules/tables.hpp>
#include <cstring>

#include "cases/support/data.hpp"

namespace backplane::conformance {

namespace {

std::string_view text_of(const char (&room)[32]) { return {room, strnlen(room, sizeof(room))}; }

bool is_type_name(std::string_view name) {
  return !name.empty() && name.size() < 32 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
}

// Calls a slot that exports an object. The handle contains garbage before the call, so that a field that the slot does
// not set is detected.
template <class Call>
Exported take_export(const char* slot, const std::string& type, uint64_t bytes, const Call& call) {
  bp_external_handle handle;
  std::memset(&handle, 0xA5, sizeof(handle));
  handle.struct_size = sizeof(handle);
  ErrorRecord error;
  const bp_status status = call(&handle, &error);
  if (status != BP_OK) handle.fd = -1;
  Exported exported(handle);
  expect_ok(status, error, slot);
  const auto require = [&](bool holds, const char* what) {
    if (!holds) end_case(Outcome::fail, fmt::format("{} gave a handle with {}", slot, what));
  };
  require(text_of(handle.type) == type, "another type than requested");
  require(handle.bytes == bytes, "another size than the object's");
  require(handle.reserved == 0, "a reserved field that is not 0");
  require(handle.offset <= handle.object_bytes && handle.bytes <= handle.object_bytes - handle.offset,
          "bytes beyond the end of the memory");
  return exported;
}

}  // namespace

bp_external_api external_of(Context& context, Device& device) {
  const Plugin& plugin = device.plugin();
  const void* given = plugin->get_interface == nullptr
                          ? nullptr
                          : plugin->get_interface(plugin.get(), device.get(), BP_INTERFACE_EXTERNAL, 1);
  if (given == nullptr) context.not_claimed("the device has no bp.external");
  return backplane::rules::known_part(*static_cast<const bp_external_api*>(given), plugin->abi_version);
}

std::vector<bp_external_type> types_of(Context& context, Device& device) {
  const bp_external_api table = external_of(context, device);
  context.require(table.external_type != nullptr, "bp.external has no external_type");
  std::vector<bp_external_type> types;
  for (uint32_t index = 0; index < 64; ++index) {
    bp_external_type type;
    std::memset(&type, 0xA5, sizeof(type));
    type.struct_size = sizeof(type);
    ErrorRecord error;
    const bp_status status = table.external_type(device.get(), index, &type, &error);
    expect_status(status, error, "external_type", {BP_OK, BP_UNSUPPORTED});
    if (status != BP_OK) return types;
    context.require(is_type_name(text_of(type.name)),
                    "type {} has the name \"{:?}\", which is not of the form [a-z0-9_.]{{1,31}}", index,
                    text_of(type.name));
    types.push_back(type);
  }
  context.fail("external_type gives at least 64 types");
}

std::string type_with(Context& context, uint32_t flags) {
  const bp_external_api table = external_of(context, context.device());
  const bool memory = (flags & (BP_EXTERNAL_MEMORY_EXPORT | BP_EXTERNAL_MEMORY_IMPORT)) != 0;
  for (const bp_external_type& type : types_of(context, context.device())) {
    if ((type.flags & flags) != flags) continue;
    const bool has_slots = memory ? table.buffer_create_external != nullptr && table.buffer_export != nullptr &&
                                        table.buffer_import != nullptr
                                  : table.semaphore_create != nullptr && table.semaphore_export != nullptr &&
                                        table.semaphore_import != nullptr;
    context.require(has_slots, "type {} has the flags {:#x}, and a slot for them is null", text_of(type.name),
                    type.flags);
    return std::string(text_of(type.name));
  }
  context.not_claimed("the device has no external type with the flags {:#x}", flags);
}

Exported::~Exported() {
  if (handle.fd >= 0) close(static_cast<int>(handle.fd));
}

void need_descriptor(Context& context, const Exported& exported) {
  if (exported.handle.fd < 0) context.not_claimed("handles of this type have no descriptor");
}

Buffer external_buffer(Context& context, Device& device, const std::string& type, uint64_t bytes, uint32_t kind) {
  need_kind(context, kind);
  const bp_buffer_desc desc = {sizeof(desc), kind, bytes, 0};
  auto* made = reinterpret_cast<bp_buffer*>(&bytes);
  ErrorRecord error;
  const bp_status status =
      external_of(context, device).buffer_create_external(device.get(), &desc, type.c_str(), &made, &error);
  expect_status(status, error, "buffer_create_external", {BP_OK, BP_UNSUPPORTED});
  context.require((status == BP_OK) == (made != nullptr), "buffer_create_external returned {} and gave {}",
                  status_name(status), static_cast<const void*>(made));
  if (status != BP_OK) context.not_claimed("the device exports no {} memory", kind_name(kind));
  return {device, made, bytes};
}

Exported export_of(Context& context, const Buffer& buffer, const std::string& type) {
  const auto slot = external_of(context, buffer.device()).buffer_export;
  return take_export("buffer_export", type, buffer.bytes, [&](bp_external_handle* out, bp_error* error) {
    return slot(buffer.device().get(), buffer.get(), type.c_str(), out, error);
  });
}

Wrapped<Buffer> try_import(Context& context, Device& device, const bp_external_handle* handle) {
  const bp_external_api table = external_of(context, device);
  bp_buffer* made = reinterpret_cast<bp_buffer*>(&made);
  uint32_t kind = UINT32_MAX;
  ErrorRecord error;
  const bp_status status = table.buffer_import(device.get(), handle, &kind, &made, &error);
  context.require((status == BP_OK) == (made != nullptr), "buffer_import returned {} and gave {}", status_name(status),
                  static_cast<const void*>(made));
  if (made != nullptr)
    context.require(kind < BP_MEMORY_KINDS && device.offers(kind),
                    "buffer_import gave memory of kind {}, which the device does not offer", kind);
  return {status, error, Buffer(device, made, made == nullptr ? 0 : handle->bytes), kind};
}

Buffer import_buffer(Context& context, Device& device, const bp_external_handle& handle) {
  Wrapped<Buffer> imported = try_import(context, device, &handle);
  expect_ok(imported.status, imported.error, "buffer_import");
  return std::move(imported.object);
}

Semaphore::~Semaphore() {
  if (handle_ != nullptr && !abandoned()) table_.semaphore_destroy(device_->get(), handle_);
}
void Semaphore::signal(Stream& stream, uint64_t value) const {
  ErrorRecord error;
  expect_ok(table_.semaphore_signal(device_->get(), stream.get(), handle_, value, &error), error, "semaphore_signal");
}
void Semaphore::wait(Stream& stream, uint64_t value) const {
  ErrorRecord error;
  expect_ok(table_.semaphore_wait(device_->get(), stream.get(), handle_, value, &error), error, "semaphore_wait");
}
bp_status Semaphore::raise(uint64_t value) const {
  ErrorRecord error;
  const bp_status status = table_.semaphore_signal(device_->get(), nullptr, handle_, value, &error);
  expect_status(status, error, "semaphore_signal", {BP_OK, BP_UNSUPPORTED});
  return status;
}
Exported Semaphore::exported(const std::string& type) const {
  return take_export("semaphore_export", type, 0, [&](bp_external_handle* out, bp_error* error) {
    return table_.semaphore_export(device_->get(), handle_, type.c_str(), out, error);
  });
}

std::string semaphore_type(Context& context) {
  return type_with(context, BP_EXTERNAL_SEMAPHORE_EXPORT | BP_EXTERNAL_SEMAPHORE_IMPORT);
}

Semaphore semaphore_on(Context& context, Device& device, uint64_t value) {
  const std::string type = semaphore_type(context);
  const bp_external_api table = external_of(context, device);
  context.require(
      table.semaphore_signal != nullptr && table.semaphore_wait != nullptr && table.semaphore_destroy != nullptr,
      "the device has semaphores, and a slot for them is null");
  bp_semaphore* made = nullptr;
  ErrorRecord error;
  expect_ok(table.semaphore_create(device.get(), type.c_str(), value, &made, &error), error, "semaphore_create");
  context.require(made != nullptr, "semaphore_create returned OK and gave null");
  return {device, table, made};
}

Semaphore import_semaphore(Context& context, Device& device, const bp_external_handle& handle) {
  const bp_external_api table = external_of(context, device);
  bp_semaphore* made = nullptr;
  ErrorRecord error;
  expect_ok(table.semaphore_import(device.get(), &handle, &made, &error), error, "semaphore_import");
  context.require(made != nullptr, "semaphore_import returned OK and gave null");
  return {device, table, made};
}

uint32_t importer_index(Context& context, uint32_t kind) {
  const std::string type = type_with(context, BP_EXTERNAL_MEMORY_EXPORT | BP_EXTERNAL_MEMORY_IMPORT);
  const Buffer buffer = external_buffer(context, context.device(), type, 4096, kind);
  const Exported exported = export_of(context, buffer, type);
  const bool is_of_any = std::all_of(std::begin(exported.handle.uuid), std::end(exported.handle.uuid),
                                     [](uint8_t byte) { return byte == 0; });
  return is_of_any ? other_index(context) : context.device_index();
}

uint32_t other_index(Context& context) { return (context.device_index() + 1) % context.plugin().device_count(); }

}  // namespace backplane::conformance
