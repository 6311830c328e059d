// SPDX-License-Identifier: Apache-2.0
// Defects of bp.native: wrong handles, and streams and buffers that wrap the wrong object.
#include <atomic>
#include <cstring>
#include <map>

#include "mutation.hpp"

namespace backplane::conformance::mutants {
namespace {

constexpr const bp_native_api& kHonestNative = NativeTable<HostDevice>::table;

// Implements get_interface. Returns a table of bp.native that kChange has modified.
template <auto kChange>
const void* changed_native(const bp_plugin* plugin, bp_device* device, const char* name, uint32_t version) {
  static const bp_native_api table = [] {
    bp_native_api copy = kHonestNative;
    kChange(copy);
    return copy;
  }();
  const void* honest = honest_plugin().get_interface(plugin, device, name, version);
  return honest != nullptr && std::string_view(name) == BP_INTERFACE_NATIVE ? &table : honest;
}
template <auto kChange>
constexpr Mutation on_native() {
  return {.plugin = [](bp_plugin& plugin) { plugin.get_interface = changed_native<kChange>; }};
}
// Returns the mutation that replaces the slot kSlot of bp.native with kRun.
template <auto kSlot, auto kRun>
constexpr Mutation on_native_slot() {
  return on_native<[](bp_native_api& table) { table.*kSlot = kRun; }>();
}

// Implements buffer_native. kSpoil modifies the returned handle.
template <void (*kSpoil)(bp_native_handle&)>
bp_status spoiled_buffer(bp_device* device, bp_buffer* buffer, bp_native_handle* out, bp_error* error) {
  const bp_status status = kHonestNative.buffer_native(device, buffer, out, error);
  if (status == BP_OK) kSpoil(*out);
  return status;
}
template <void (*kSpoil)(bp_native_handle&)>
constexpr Mutation on_buffer_handle() {
  return on_native_slot<&bp_native_api::buffer_native, spoiled_buffer<kSpoil>>();
}

bp_status flags_of_streams(bp_device* device, bp_stream* stream, bp_native_handle* out, bp_error* error) {
  const bp_status status = kHonestNative.stream_native(device, stream, out, error);
  if (status == BP_OK) out->flags |= 4;
  return status;
}
bp_status stream_moves(bp_device* device, bp_stream* stream, bp_native_handle* out, bp_error* error) {
  static std::atomic<uint64_t> calls{0};
  const bp_status status = kHonestNative.stream_native(device, stream, out, error);
  if (status == BP_OK) out->offset = ++calls;
  return status;
}
bp_status one_handle(bp_device* device, bp_buffer* buffer, bp_native_handle* out, bp_error* error) {
  static bp_native_handle first = {};
  const bp_status status = kHonestNative.buffer_native(device, buffer, out, error);
  if (status != BP_OK) return status;
  if (first.bytes == 0) first = *out;
  out->value = first.value;
  return status;
}
bp_status handle_of_copy(bp_device* device, bp_buffer* buffer, bp_native_handle* out, bp_error* error) {
  static std::mutex mutex;
  static std::map<bp_buffer*, void*> copies;
  const bp_status status = kHonestNative.buffer_native(device, buffer, out, error);
  if (status != BP_OK) return status;
  const std::lock_guard lock(mutex);
  void*& copy = copies[buffer];
  if (copy == nullptr) {
    copy = ::operator new(out->bytes, std::align_val_t{64});
    std::memcpy(copy, reinterpret_cast<void*>(out->value), out->bytes);
  }
  out->value = reinterpret_cast<uint64_t>(copy);
  return status;
}
bp_status null_result_accepted(bp_device* device, bp_buffer* buffer, bp_native_handle* out, bp_error* error) {
  return out == nullptr && buffer != nullptr ? BP_OK : kHonestNative.buffer_native(device, buffer, out, error);
}

bp_status event_before_record(bp_device* device, bp_event* event, bp_native_handle* out, bp_error* error) {
  if (event == nullptr || out == nullptr || event_of(event).latest().timeline != nullptr)
    return kHonestNative.event_native(device, event, out, error);
  write_output(out, native_handle(HostDevice::kTimelineType, reinterpret_cast<uint64_t>(event)));
  return BP_OK;
}
bp_status event_of_later(bp_device* device, bp_event* event, bp_native_handle* out, bp_error* error) {
  static std::atomic<uint64_t> calls{0};
  const bp_status status = kHonestNative.event_native(device, event, out, error);
  if (status == BP_OK) out->offset += calls.fetch_add(1);
  return status;
}

// Implements buffer_wrap. kSpoil modifies a copy of the caller's handle before the call.
template <void (*kSpoil)(bp_native_handle&)>
bp_status wrapped_otherwise(bp_device* device, const bp_native_handle* native, uint32_t* out_kind, bp_buffer** out,
                            bp_error* error) {
  if (native == nullptr || native->struct_size != sizeof(*native))
    return kHonestNative.buffer_wrap(device, native, out_kind, out, error);
  bp_native_handle changed = *native;
  kSpoil(changed);
  return kHonestNative.buffer_wrap(device, &changed, out_kind, out, error);
}
template <void (*kSpoil)(bp_native_handle&)>
constexpr Mutation on_wrapped_buffer() {
  return on_native_slot<&bp_native_api::buffer_wrap, wrapped_otherwise<kSpoil>>();
}
void set_type(bp_native_handle& handle, const char* type) {
  std::memset(handle.type, 0, sizeof(handle.type));
  std::strncpy(handle.type, type, sizeof(handle.type) - 1);
}
void copy_memory(bp_native_handle& handle) {
  if (type_of(handle) != HostDevice::kAddressType || handle.value == 0 || handle.bytes == 0 ||
      handle.bytes > uint64_t{1} << 30 || handle.offset > uint64_t{1} << 30)
    return;
  void* copy = ::operator new(handle.bytes, std::align_val_t{64});
  std::memcpy(copy, reinterpret_cast<void*>(handle.value + handle.offset), handle.bytes);
  handle.value = reinterpret_cast<uint64_t>(copy);
  handle.offset = 0;
}
bp_status wrap_owned(bp_device* device, const bp_native_handle* native, uint32_t* out_kind, bp_buffer** out,
                     bp_error* error) {
  const bp_status status = kHonestNative.buffer_wrap(device, native, out_kind, out, error);
  if (status == BP_OK) buffer_of(*out).alignment = HostMemory::kAlignment;
  return status;
}
bp_status wrap_of_no_kind(bp_device* device, const bp_native_handle* native, uint32_t* out_kind, bp_buffer** out,
                          bp_error* error) {
  const bp_status status = kHonestNative.buffer_wrap(device, native, out_kind, out, error);
  if (status == BP_OK) *out_kind = BP_MEMORY_KINDS;
  return status;
}
bp_status wrap_size_ignored(bp_device* device, const bp_native_handle* native, uint32_t* out_kind, bp_buffer** out,
                            bp_error* error) {
  if (native == nullptr || native->struct_size < BP_NATIVE_HANDLE_MIN_SIZE)
    return kHonestNative.buffer_wrap(device, native, out_kind, out, error);
  bp_native_handle known = *native;
  known.struct_size = sizeof(known);
  return kHonestNative.buffer_wrap(device, &known, out_kind, out, error);
}

// The device of the latest buffer_native call. On any other device, buffer_wrap allocates new memory
// instead of wrapping the handle.
std::atomic<bp_device*> device_of_handles{nullptr};
bp_status remembers_device(bp_device* device, bp_buffer* buffer, bp_native_handle* out, bp_error* error) {
  device_of_handles = device;
  return kHonestNative.buffer_native(device, buffer, out, error);
}
bp_status wraps_new_memory_elsewhere(bp_device* device, const bp_native_handle* native, uint32_t* out_kind,
                                     bp_buffer** out, bp_error* error) {
  if (native == nullptr || device == device_of_handles)
    return kHonestNative.buffer_wrap(device, native, out_kind, out, error);
  const bp_buffer_desc desc = {sizeof(desc), BP_MEMORY_DEVICE, native->bytes, 0};
  *out_kind = BP_MEMORY_DEVICE;
  return kHonest.buffer_create(device, &desc, out, error);
}

// Maps each stream that wraps another stream's queue to the number of copies that the wrapping stream
// has enqueued since its latest wait.
struct Wraps {
  std::mutex mutex;
  std::map<bp_stream*, uint64_t> streams;
  bool has(bp_stream* stream) {
    const std::lock_guard lock(mutex);
    return streams.contains(stream);
  }
};
Wraps& wraps() {
  static auto* all = new Wraps;
  return *all;
}
bp_status remembers_wraps(bp_device* device, const bp_native_handle* native, bp_stream** out, bp_error* error) {
  const bp_status status = kHonestNative.stream_wrap(device, native, out, error);
  if (status != BP_OK) return status;
  const std::lock_guard lock(wraps().mutex);
  wraps().streams[*out] = 0;
  return status;
}
void forgets_wrap(bp_stream* stream) {
  const std::lock_guard lock(wraps().mutex);
  wraps().streams.erase(stream);
}
void destroy_wrap(bp_device* device, bp_stream* stream) {
  forgets_wrap(stream);
  kHonest.stream_destroy(device, stream);
}
void destroy_native_stream(bp_device* device, bp_stream* stream) {
  if (wraps().has(stream)) {
    (void)stream_of(stream).wait(BP_WAIT_FOREVER);
    stream_of(stream).timeline()->fail(stream_of(stream).point(),
                                       Status(BP_EXECUTION_FAILED, "the native stream was destroyed"));
  }
  destroy_wrap(device, stream);
}
bp_status copy_is_counted(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src,
                          uint64_t src_offset, uint64_t bytes, bp_error* error) {
  {
    const std::lock_guard lock(wraps().mutex);
    if (const auto found = wraps().streams.find(stream); found != wraps().streams.end()) ++found->second;
  }
  return kHonest.copy(device, stream, dst, dst_offset, src, src_offset, bytes, error);
}
bp_status waits_for_own_work(bp_device* device, bp_stream* stream, uint64_t timeout_ns, bp_error* error) {
  {
    const std::lock_guard lock(wraps().mutex);
    const auto found = wraps().streams.find(stream);
    if (found != wraps().streams.end() && std::exchange(found->second, 0) == 0) return BP_OK;
  }
  return kHonest.stream_wait(device, stream, timeout_ns, error);
}
bp_status records_own_work(bp_device* device, bp_event* event, bp_stream* stream, bp_error* error) {
  return wraps().has(stream) ? BP_OK : kHonest.event_record(device, event, stream, error);
}

bp_status wraps_new_stream(bp_device* device, const bp_native_handle* native, bp_stream** out, bp_error* error) {
  const bp_status status = kHonestNative.stream_wrap(device, native, out, error);
  if (status != BP_OK) return status;
  kHonest.stream_destroy(device, *out);
  const bp_stream_desc desc = {sizeof(desc), 0};
  return kHonest.stream_create(device, &desc, out, error);
}
bp_status stream_wrap_leaks(bp_device* device, const bp_native_handle* native, bp_stream** out, bp_error* error) {
  void* volatile lost = std::malloc(4096);
  std::memset(lost, 1, 4096);
  return kHonestNative.stream_wrap(device, native, out, error);
}
bp_status any_stream_type(bp_device* device, const bp_native_handle* native, bp_stream** out, bp_error* error) {
  if (native == nullptr || native->struct_size != sizeof(*native))
    return kHonestNative.stream_wrap(device, native, out, error);
  bp_native_handle changed = *native;
  set_type(changed, HostDevice::kQueueType);
  return kHonestNative.stream_wrap(device, &changed, out, error);
}
bp_status stream_flags_ignored(bp_device* device, const bp_native_handle* native, bp_stream** out, bp_error* error) {
  if (native == nullptr || native->struct_size != sizeof(*native))
    return kHonestNative.stream_wrap(device, native, out, error);
  bp_native_handle changed = *native;
  changed.flags = 0;
  return kHonestNative.stream_wrap(device, &changed, out, error);
}

// Implements device_native with kCount handles. kValue computes the value of handle `index`.
template <uint32_t kCount, uint64_t (*kValue)(uint32_t index)>
bp_status device_handles(bp_device* device, uint32_t index, bp_native_handle* out, bp_error* error) {
  return fence(error, [&]() -> Status {
    if (device == nullptr) return invalid_argument("device_native: a handle is null");
    Status status = check_output(out, BP_NATIVE_HANDLE_MIN_SIZE, "bp_native_handle");
    if (!status.ok()) return status;
    if (index >= kCount) return unsupported("device_native: there is no handle ", index);
    write_output(out, native_handle("mutant.device", kValue(index)));
    return {};
  });
}
template <uint32_t kCount, uint64_t (*kValue)(uint32_t index)>
constexpr Mutation with_handles() {
  return on_native_slot<&bp_native_api::device_native, device_handles<kCount, kValue>>();
}
uint64_t constant_value(uint32_t index) { return 16 + index; }
uint64_t counted_value(uint32_t) {
  static std::atomic<uint64_t> calls{0};
  return ++calls;
}

}  // namespace

const Mutation defect::with_device_handles = with_handles<2, constant_value>();
const Mutation defect::native_device_endless = with_handles<UINT32_MAX, constant_value>();
const Mutation defect::native_device_moves = with_handles<2, counted_value>();
const Mutation defect::native_table_empty = on_native<[](bp_native_api& table) {
  table = {};
  table.struct_size = sizeof(table);
}>();
const Mutation defect::native_type_in_capitals =
    on_buffer_handle<[](bp_native_handle& handle) { set_type(handle, "Host.Address"); }>();
const Mutation defect::native_type_endless =
    on_buffer_handle<[](bp_native_handle& handle) { std::memset(handle.type, 'a', sizeof(handle.type)); }>();
const Mutation defect::native_bytes_rounded =
    on_buffer_handle<[](bp_native_handle& handle) { handle.bytes = (handle.bytes + 63) / 64 * 64; }>();
const Mutation defect::native_address_shifted = on_buffer_handle<[](bp_native_handle& handle) { handle.value += 8; }>();
const Mutation defect::native_buffer_moves = on_buffer_handle<[](bp_native_handle& handle) {
  static std::atomic<uint64_t> calls{0};
  const uint64_t shift = calls.fetch_add(1) % 1024;
  handle.value -= shift;
  handle.offset += shift;
}>();
const Mutation defect::native_one_buffer = on_native_slot<&bp_native_api::buffer_native, one_handle>();
const Mutation defect::native_buffer_copied = on_native_slot<&bp_native_api::buffer_native, handle_of_copy>();
const Mutation defect::native_null_result = on_native_slot<&bp_native_api::buffer_native, null_result_accepted>();
const Mutation defect::native_stream_flags = on_native_slot<&bp_native_api::stream_native, flags_of_streams>();
const Mutation defect::native_stream_moves = on_native_slot<&bp_native_api::stream_native, stream_moves>();
const Mutation defect::native_event_unrecorded = on_native_slot<&bp_native_api::event_native, event_before_record>();
const Mutation defect::native_event_moves = on_native_slot<&bp_native_api::event_native, event_of_later>();
const Mutation defect::native_wrap_copies = on_wrapped_buffer<copy_memory>();
const Mutation defect::native_wrap_offset_ignored =
    on_wrapped_buffer<[](bp_native_handle& handle) { handle.offset = 0; }>();
const Mutation defect::native_wrap_any_type =
    on_wrapped_buffer<[](bp_native_handle& handle) { set_type(handle, HostDevice::kAddressType); }>();
const Mutation defect::native_wrap_type_prefix = on_wrapped_buffer<[](bp_native_handle& handle) {
  if (type_of(handle).starts_with(HostDevice::kAddressType)) set_type(handle, HostDevice::kAddressType);
}>();
const Mutation defect::native_wrap_flags_ignored =
    on_wrapped_buffer<[](bp_native_handle& handle) { handle.flags &= BP_NATIVE_ADDRESS; }>();
const Mutation defect::native_wrap_no_bytes = on_wrapped_buffer<[](bp_native_handle& handle) {
  if (handle.bytes == 0) handle.bytes = 1;
}>();
const Mutation defect::native_wrap_null_memory = on_wrapped_buffer<[](bp_native_handle& handle) {
  if (handle.value == 0) handle.value = 4096;
}>();
const Mutation defect::native_wrap_owned = on_native_slot<&bp_native_api::buffer_wrap, wrap_owned>();
const Mutation defect::native_wrap_of_no_kind = on_native_slot<&bp_native_api::buffer_wrap, wrap_of_no_kind>();
const Mutation defect::native_wrap_size_ignored = on_native_slot<&bp_native_api::buffer_wrap, wrap_size_ignored>();
const Mutation defect::native_wrap_of_other_device = on_native<[](bp_native_api& table) {
  table.buffer_native = remembers_device;
  table.buffer_wrap = wraps_new_memory_elsewhere;
}>();
const Mutation defect::native_stream_new = on_native_slot<&bp_native_api::stream_wrap, wraps_new_stream>();
const Mutation defect::native_stream_leaks = on_native_slot<&bp_native_api::stream_wrap, stream_wrap_leaks>();
const Mutation defect::native_stream_any_type = on_native_slot<&bp_native_api::stream_wrap, any_stream_type>();
const Mutation defect::native_stream_flags_ignored =
    on_native_slot<&bp_native_api::stream_wrap, stream_flags_ignored>();

namespace {
constexpr auto kRemember = [](bp_plugin& plugin) {
  plugin.get_interface = changed_native<[](bp_native_api& table) { table.stream_wrap = remembers_wraps; }>;
};
}  // namespace

const Mutation defect::native_stream_owned{
    .plugin = kRemember, .api = [](bp_device_api& api) { api.stream_destroy = destroy_native_stream; }};
const Mutation defect::native_wait_of_own_work{.plugin = kRemember, .api = [](bp_device_api& api) {
                                                 api.stream_destroy = destroy_wrap;
                                                 api.copy = copy_is_counted;
                                                 api.stream_wait = waits_for_own_work;
                                               }};
const Mutation defect::native_event_of_own_work{.plugin = kRemember, .api = [](bp_device_api& api) {
                                                  api.stream_destroy = destroy_wrap;
                                                  api.event_record = records_own_work;
                                                }};

}  // namespace backplane::conformance::mutants
