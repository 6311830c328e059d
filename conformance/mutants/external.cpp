// SPDX-License-Identifier: Apache-2.0
// Defects of bp.external: wrong handles, descriptors and imports of memory and semaphores.
#include <atomic>
#include <cstring>

#include "mutation.hpp"

namespace backplane::conformance::mutants {
namespace {

constexpr const bp_external_api& kHonestExternal = ExternalTable<HostDevice>::table;

// Implements get_interface. Returns a table of bp.external in which kRun replaces the slot kSlot.
template <auto kSlot, auto kRun>
const void* changed_external(const bp_plugin* plugin, bp_device* device, const char* name, uint32_t version) {
  static const bp_external_api table = [] {
    bp_external_api copy = kHonestExternal;
    copy.*kSlot = kRun;
    return copy;
  }();
  const void* honest = honest_plugin().get_interface(plugin, device, name, version);
  return honest != nullptr && std::string_view(name) == BP_INTERFACE_EXTERNAL ? &table : honest;
}
template <auto kSlot, auto kRun>
constexpr Mutation on_external() {
  return {.plugin = [](bp_plugin& plugin) { plugin.get_interface = changed_external<kSlot, kRun>; }};
}

// Implements external_type. kSpoil modifies the returned type.
template <void (*kSpoil)(bp_external_type&)>
bp_status spoiled_type(bp_device* device, uint32_t index, bp_external_type* out, bp_error* error) {
  const bp_status status = kHonestExternal.external_type(device, index, out, error);
  if (status == BP_OK) kSpoil(*out);
  return status;
}
bp_status endless_types(bp_device* device, uint32_t index, bp_external_type* out, bp_error* error) {
  return kHonestExternal.external_type(device, index % 2, out, error);
}

// Implements buffer_export. kSpoil modifies the returned handle.
template <void (*kSpoil)(bp_external_handle&)>
bp_status spoiled_export(bp_device* device, bp_buffer* buffer, const char* type, bp_external_handle* out,
                         bp_error* error) {
  const bp_status status = kHonestExternal.buffer_export(device, buffer, type, out, error);
  if (status == BP_OK) kSpoil(*out);
  return status;
}
template <void (*kSpoil)(bp_external_handle&)>
constexpr Mutation on_export() {
  return on_external<&bp_external_api::buffer_export, spoiled_export<kSpoil>>();
}
bp_status any_export_type(bp_device* device, bp_buffer* buffer, const char* type, bp_external_handle* out,
                          bp_error* error) {
  return kHonestExternal.buffer_export(device, buffer, type == nullptr ? nullptr : HostDevice::kFileType.data(), out,
                                       error);
}
// If a buffer was not created for export, exports a copy of the buffer.
bp_status ordinary_copied(bp_device* device, bp_buffer* buffer, const char* type, bp_external_handle* out,
                          bp_error* error) {
  if (buffer == nullptr || type == nullptr || out == nullptr || buffer_of(buffer).file != nullptr ||
      HostDevice::kFileType != type)
    return kHonestExternal.buffer_export(device, buffer, type, out, error);
  const Span span = buffer_of(buffer).span;
  const bp_buffer_desc desc = {sizeof(desc), BP_MEMORY_DEVICE, span.bytes, 0};
  bp_buffer* copy = nullptr;
  if (const bp_status status = kHonestExternal.buffer_create_external(device, &desc, type, &copy, error);
      status != BP_OK)
    return status;
  std::memcpy(buffer_of(copy).span.address, span.address, span.bytes);
  const bp_status status = kHonestExternal.buffer_export(device, copy, type, out, error);
  kHonest.buffer_destroy(device, copy);
  return status;
}

bp_status any_create_type(bp_device* device, const bp_buffer_desc* desc, const char* type, bp_buffer** out,
                          bp_error* error) {
  return kHonestExternal.buffer_create_external(device, desc, type == nullptr ? nullptr : HostDevice::kFileType.data(),
                                                out, error);
}

// Implements buffer_import. kSpoil modifies a copy of the caller's handle before the import.
template <void (*kSpoil)(bp_external_handle&)>
bp_status imported_otherwise(bp_device* device, const bp_external_handle* handle, uint32_t* out_kind, bp_buffer** out,
                             bp_error* error) {
  if (handle == nullptr || handle->struct_size != sizeof(*handle))
    return kHonestExternal.buffer_import(device, handle, out_kind, out, error);
  bp_external_handle changed = *handle;
  kSpoil(changed);
  return kHonestExternal.buffer_import(device, &changed, out_kind, out, error);
}
template <void (*kSpoil)(bp_external_handle&)>
constexpr Mutation on_external_import() {
  return on_external<&bp_external_api::buffer_import, imported_otherwise<kSpoil>>();
}
// Implements buffer_import. kSpoil modifies the imported buffer or its memory kind.
template <void (*kSpoil)(const bp_external_handle&, HostBuffer&, uint32_t&)>
bp_status result_changed(bp_device* device, const bp_external_handle* handle, uint32_t* out_kind, bp_buffer** out,
                         bp_error* error) {
  const bp_status status = kHonestExternal.buffer_import(device, handle, out_kind, out, error);
  if (status == BP_OK) kSpoil(*handle, buffer_of(*out), *out_kind);
  return status;
}
template <void (*kSpoil)(const bp_external_handle&, HostBuffer&, uint32_t&)>
constexpr Mutation on_imported() {
  return on_external<&bp_external_api::buffer_import, result_changed<kSpoil>>();
}
// Accepts a range that extends past the end of the memory, if the handle overstates the memory's
// size.
bp_status end_ignored(bp_device* device, const bp_external_handle* handle, uint32_t* out_kind, bp_buffer** out,
                      bp_error* error) {
  if (handle == nullptr || handle->struct_size != sizeof(*handle))
    return kHonestExternal.buffer_import(device, handle, out_kind, out, error);
  struct stat about = {};
  bp_external_handle changed = *handle;
  if (handle->bytes != 0 && ::fstat(static_cast<int>(handle->fd), &about) == 0) {
    const auto size = static_cast<uint64_t>(about.st_size);
    if (handle->object_bytes > size && handle->offset < size) changed.bytes = size - handle->offset;
  }
  const bp_status status = kHonestExternal.buffer_import(device, &changed, out_kind, out, error);
  if (status == BP_OK) buffer_of(*out).span.bytes = handle->bytes;
  return status;
}

void set_name(char (&room)[32], std::string_view name) {
  std::memset(room, 0, sizeof(room));
  name.copy(room, sizeof(room) - 1);
}

// Fills exportable memory with zeros when the buffer that created the memory is destroyed.
void memory_ends_with_creator(bp_device* device, bp_buffer* buffer) {
  if (buffer != nullptr && buffer_of(buffer).created)
    std::memset(buffer_of(buffer).span.address, 0, buffer_of(buffer).span.bytes);
  kHonest.buffer_destroy(device, buffer);
}

using SharedSemaphore = std::shared_ptr<HostSemaphore>;
HostSemaphore& semaphore_of(bp_semaphore* semaphore) { return **reinterpret_cast<SharedSemaphore*>(semaphore); }

bp_status signal_early(bp_device* device, bp_stream* stream, bp_semaphore* semaphore, uint64_t value, bp_error* error) {
  return kHonestExternal.semaphore_signal(device, semaphore == nullptr ? stream : nullptr, semaphore, value, error);
}
// Sets the semaphore to the signalled value, even if the semaphore's current value is higher.
bp_status signal_lowers(bp_device* device, bp_stream* stream, bp_semaphore* semaphore, uint64_t value,
                        bp_error* error) {
  const bp_status status = kHonestExternal.semaphore_signal(device, stream, semaphore, value, error);
  if (status != BP_OK || stream == nullptr) return status;
  (void)stream_of(stream).wait(BP_WAIT_FOREVER);
  auto* const counter = reinterpret_cast<std::atomic<uint64_t>*>(semaphore_of(semaphore).file().address() + 8);
  counter->store(value);
  return status;
}
bp_status semaphore_wait_omitted(bp_device* device, bp_stream* stream, bp_semaphore* semaphore, uint64_t value,
                                 bp_error* error) {
  if (stream == nullptr || semaphore == nullptr)
    return kHonestExternal.semaphore_wait(device, stream, semaphore, value, error);
  return BP_OK;
}
bp_status wait_of_32_bits(bp_device* device, bp_stream* stream, bp_semaphore* semaphore, uint64_t value,
                          bp_error* error) {
  return kHonestExternal.semaphore_wait(device, stream, semaphore, static_cast<uint32_t>(value), error);
}
bp_status wait_for_one_less(bp_device* device, bp_stream* stream, bp_semaphore* semaphore, uint64_t value,
                            bp_error* error) {
  return kHonestExternal.semaphore_wait(device, stream, semaphore, value == 0 ? 0 : value - 1, error);
}
bp_status created_at_zero(bp_device* device, const char* type, uint64_t, bp_semaphore** out, bp_error* error) {
  return kHonestExternal.semaphore_create(device, type, 0, out, error);
}
bp_status imports_new_semaphore(bp_device* device, const bp_external_handle* handle, bp_semaphore** out,
                                bp_error* error) {
  const bp_status status = kHonestExternal.semaphore_import(device, handle, out, error);
  if (status != BP_OK) return status;
  kHonestExternal.semaphore_destroy(device, *out);
  return kHonestExternal.semaphore_create(device, HostDevice::kSemaphoreType.data(), 0, out, error);
}
bp_status imports_any_file(bp_device* device, const bp_external_handle* handle, bp_semaphore** out, bp_error* error) {
  const bp_status status = kHonestExternal.semaphore_import(device, handle, out, error);
  if (status != BP_INVALID_ARGUMENT || handle == nullptr || out == nullptr || handle->fd < 0) return status;
  if (::fcntl(static_cast<int>(handle->fd), F_GETFD) < 0) return status;
  return kHonestExternal.semaphore_create(device, HostDevice::kSemaphoreType.data(), 0, out, error);
}
bp_status closes_semaphore(bp_device* device, const bp_external_handle* handle, bp_semaphore** out, bp_error* error) {
  const bp_status status = kHonestExternal.semaphore_import(device, handle, out, error);
  if (status == BP_OK) ::close(static_cast<int>(handle->fd));
  return status;
}

}  // namespace

const Mutation defect::external_type_in_capitals =
    on_external<&bp_external_api::external_type,
                spoiled_type<[](bp_external_type& type) { set_name(type.name, "MemFd"); }>>();
const Mutation defect::external_type_of_nothing =
    on_external<&bp_external_api::external_type, spoiled_type<[](bp_external_type& type) { type.flags = 0; }>>();
const Mutation defect::external_types_endless = on_external<&bp_external_api::external_type, endless_types>();

const Mutation defect::external_export_of_other_type =
    on_export<[](bp_external_handle& handle) { set_name(handle.type, "memfd2"); }>();
const Mutation defect::external_export_larger = on_export<[](bp_external_handle& handle) {
  handle.bytes += 64;
  handle.object_bytes += 64;
}>();
const Mutation defect::external_export_from_start = on_export<[](bp_external_handle& handle) { handle.offset = 0; }>();
const Mutation defect::external_export_left_open =
    on_export<[](bp_external_handle& handle) { ::fcntl(static_cast<int>(handle.fd), F_SETFD, 0); }>();
const Mutation defect::external_export_of_one_descriptor = on_export<[](bp_external_handle& handle) {
  static std::atomic<int64_t> first{-1};
  int64_t none = -1;
  if (first.compare_exchange_strong(none, handle.fd)) return;
  if (::fcntl(static_cast<int>(first.load()), F_GETFD) < 0) {
    first = handle.fd;
  } else {
    ::close(static_cast<int>(handle.fd));
    handle.fd = first;
  }
}>();
const Mutation defect::external_export_leaks =
    on_export<[](bp_external_handle& handle) { (void)::dup(static_cast<int>(handle.fd)); }>();
const Mutation defect::external_export_of_any_type = on_external<&bp_external_api::buffer_export, any_export_type>();
const Mutation defect::external_export_of_copy = on_external<&bp_external_api::buffer_export, ordinary_copied>();
const Mutation defect::external_create_of_any_type =
    on_external<&bp_external_api::buffer_create_external, any_create_type>();
const Mutation defect::external_ends_with_creator = on_slot<&bp_device_api::buffer_destroy, memory_ends_with_creator>();

const Mutation defect::external_import_copies = on_imported<[](const bp_external_handle&, HostBuffer& made, uint32_t&) {
  auto* copy = static_cast<std::byte*>(::operator new(made.span.bytes, std::align_val_t{64}));
  std::memcpy(copy, made.span.address, made.span.bytes);
  made.span.address = copy;
}>();
const Mutation defect::external_import_closes = on_imported<[](const bp_external_handle& handle, HostBuffer&,
                                                               uint32_t&) { ::close(static_cast<int>(handle.fd)); }>();
const Mutation defect::external_import_of_no_kind =
    on_imported<[](const bp_external_handle&, HostBuffer&, uint32_t& kind) { kind = BP_MEMORY_KINDS; }>();
const Mutation defect::external_import_from_start =
    on_external_import<[](bp_external_handle& handle) { handle.offset = 0; }>();
const Mutation defect::external_import_of_any_type =
    on_external_import<[](bp_external_handle& handle) { set_name(handle.type, HostDevice::kFileType); }>();
const Mutation defect::external_import_of_any_uuid =
    on_external_import<[](bp_external_handle& handle) { std::memset(handle.uuid, 0, sizeof(handle.uuid)); }>();
const Mutation defect::external_import_of_reserved =
    on_external_import<[](bp_external_handle& handle) { handle.reserved = 0; }>();
const Mutation defect::external_import_of_no_bytes = on_external_import<[](bp_external_handle& handle) {
  if (handle.bytes == 0) handle.bytes = 1;
}>();
const Mutation defect::external_import_past_the_end = on_external<&bp_external_api::buffer_import, end_ignored>();
const Mutation defect::external_import_of_32_bits =
    on_external_import<[](bp_external_handle& handle) { handle.fd = static_cast<uint32_t>(handle.fd); }>();
const Mutation defect::external_import_seals = on_external_import<[](bp_external_handle& handle) {
  ::fcntl(static_cast<int>(handle.fd), F_ADD_SEALS, F_SEAL_SHRINK);
}>();

const Mutation defect::semaphore_signals_early = on_external<&bp_external_api::semaphore_signal, signal_early>();
const Mutation defect::semaphore_lowers = on_external<&bp_external_api::semaphore_signal, signal_lowers>();
const Mutation defect::semaphore_wait_forgotten =
    on_external<&bp_external_api::semaphore_wait, semaphore_wait_omitted>();
const Mutation defect::semaphore_wait_of_32_bits = on_external<&bp_external_api::semaphore_wait, wait_of_32_bits>();
const Mutation defect::semaphore_wait_too_short = on_external<&bp_external_api::semaphore_wait, wait_for_one_less>();
const Mutation defect::semaphore_created_at_zero = on_external<&bp_external_api::semaphore_create, created_at_zero>();
const Mutation defect::semaphore_import_of_new =
    on_external<&bp_external_api::semaphore_import, imports_new_semaphore>();
const Mutation defect::semaphore_import_of_any_file =
    on_external<&bp_external_api::semaphore_import, imports_any_file>();
const Mutation defect::semaphore_import_closes = on_external<&bp_external_api::semaphore_import, closes_semaphore>();
const Mutation defect::semaphore_leaks =
    on_external<&bp_external_api::semaphore_destroy, [](bp_device*, bp_semaphore*) {}>();

}  // namespace backplane::conformance::mutants
