// SPDX-License-Identifier: Apache-2.0
// Defects in memory and lifetime: leaks, double frees, wrong accounting.
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "mutation.hpp"

namespace backplane::conformance::mutants {
namespace {

void buffer_leaked(bp_device*, bp_buffer*) {}
void stream_leaked(bp_device*, bp_stream*) {}
void event_leaked(bp_device*, bp_event*) {}
void plan_leaked(bp_device*, bp_plan*) {}
void device_leaked(bp_device*) {}

// ---- Small leaks per call

void leak_a_little() { static_cast<volatile char*>(std::malloc(16))[0] = 1; }

bp_status event_poll_leaks(bp_device* device, bp_event* event, uint64_t timeout_ns, bp_error* error) {
  if (timeout_ns == 0) leak_a_little();
  return kHonest.event_wait(device, event, timeout_ns, error);
}
bp_status stream_timeout_leaks(bp_device* device, bp_stream* stream, uint64_t timeout_ns, bp_error* error) {
  const bp_status status = kHonest.stream_wait(device, stream, timeout_ns, error);
  if (status == BP_TIMEOUT && timeout_ns != 0) leak_a_little();
  return status;
}
bp_status refusal_leaks(bp_device* device, const bp_op_desc* desc, bp_plan** out, bp_plan_info* info, bp_error* error) {
  const bp_status status = kHonest.plan_create(device, desc, out, info, error);
  if (status != BP_OK) leak_a_little();
  return status;
}
bp_status record_leaks(bp_device* device, bp_event* event, bp_stream* stream, bp_error* error) {
  leak_a_little();
  return kHonest.event_record(device, event, stream, error);
}
bool every_64th() {
  static std::atomic<uint32_t> calls{0};
  return calls.fetch_add(1, std::memory_order_relaxed) % 64 == 63;
}
bp_status execute_leaks_seldom(bp_device* device, bp_stream* stream, bp_plan* plan, const bp_execution* execution,
                               bp_error* error) {
  if (every_64th()) leak_a_little();
  return kHonest.plan_execute(device, stream, plan, execution, error);
}
bp_status poll_leaks_seldom(bp_device* device, bp_stream* stream, uint64_t timeout_ns, bp_error* error) {
  if (timeout_ns == 0 && every_64th()) leak_a_little();
  return kHonest.stream_wait(device, stream, timeout_ns, error);
}

// Releases only every second buffer that is destroyed.
void buffer_kept(bp_device* device, bp_buffer* buffer) {
  static std::atomic<int> destroyed{0};
  if (buffer == nullptr || destroyed.fetch_add(1) % 2 == 0) kHonest.buffer_destroy(device, buffer);
}
void freed_twice(bp_device* device, bp_buffer* buffer) {
  if (buffer != nullptr && buffer_of(buffer).alignment != 0) {
    ::operator delete(buffer_of(buffer).span.address, std::align_val_t{buffer_of(buffer).alignment});
  }
  kHonest.buffer_destroy(device, buffer);
}

bp_status total_off_by_one(bp_device* device, uint32_t kind, bp_memory_info* out, bp_error* error) {
  const bp_status status = kHonest.memory_info(device, kind, out, error);
  if (status == BP_OK) out->free_bytes = out->total_bytes + 1;
  return status;
}
bp_status free_never_moves(bp_device* device, uint32_t kind, bp_memory_info* out, bp_error* error) {
  const bp_status status = kHonest.memory_info(device, kind, out, error);
  if (status == BP_OK) out->free_bytes = out->total_bytes;
  return status;
}
// Overstates free memory, like a driver that counts address space.
bp_status free_overstated(bp_device* device, uint32_t kind, bp_memory_info* out, bp_error* error) {
  constexpr uint64_t kAddressSpace = uint64_t{1} << 47;
  const bp_status status = kHonest.memory_info(device, kind, out, error);
  if (status == BP_OK) out->free_bytes += kAddressSpace, out->total_bytes += kAddressSpace;
  return status;
}

// The bytes of the live buffers of each device handle.
std::map<bp_device*, uint64_t> used_by;
std::mutex used_mutex;
bp_status create_counted(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error) {
  const bp_status status = kHonest.buffer_create(device, desc, out, error);
  if (status != BP_OK) return status;
  const std::lock_guard lock(used_mutex);
  used_by[device] += buffer_of(*out).span.bytes;
  return status;
}
void destroy_counted(bp_device* device, bp_buffer* buffer) {
  if (buffer != nullptr && buffer_of(buffer).alignment != 0) {
    const std::lock_guard lock(used_mutex);
    used_by[device] -= buffer_of(buffer).span.bytes;
  }
  kHonest.buffer_destroy(device, buffer);
}
bp_status free_of_one_handle(bp_device* device, uint32_t kind, bp_memory_info* out, bp_error* error) {
  const bp_status status = kHonest.memory_info(device, kind, out, error);
  const std::lock_guard lock(used_mutex);
  if (status == BP_OK) out->free_bytes = out->total_bytes - used_by[device];
  return status;
}
void close_counted(bp_device* device) {
  {
    const std::lock_guard lock(used_mutex);
    used_by.erase(device);
  }
  kHonest.close(device);
}

bp_status unknown_kind_told(bp_device* device, uint32_t kind, bp_memory_info* out, bp_error* error) {
  return kHonest.memory_info(device, kind < BP_MEMORY_KINDS ? kind : 0, out, error);
}

// The original, aligned addresses of live buffers. The defect makes each buffer begin 8 bytes after
// its original address.
std::map<bp_buffer*, std::byte*> moved;
std::mutex moved_mutex;
bp_status misaligned(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error) {
  if (desc == nullptr || desc->struct_size != sizeof(*desc) || desc->bytes == 0)
    return kHonest.buffer_create(device, desc, out, error);
  bp_buffer_desc larger = *desc;
  larger.bytes += 8;
  const bp_status status = kHonest.buffer_create(device, &larger, out, error);
  if (status != BP_OK) return status;
  const std::lock_guard lock(moved_mutex);
  moved[*out] = buffer_of(*out).span.address;
  buffer_of(*out).span.address += 8;
  return status;
}
void destroy_misaligned(bp_device* device, bp_buffer* buffer) {
  {
    const std::lock_guard lock(moved_mutex);
    if (const auto found = moved.find(buffer); found != moved.end()) {
      buffer_of(buffer).span.address = found->second;
      moved.erase(found);
    }
  }
  kHonest.buffer_destroy(device, buffer);
}
bp_status alignment_ignored(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error) {
  if (desc == nullptr || desc->struct_size != sizeof(*desc) || desc->alignment <= 64)
    return misaligned(device, desc, out, error);
  bp_buffer_desc plain = *desc;
  plain.alignment = 0;
  return misaligned(device, &plain, out, error);
}

bp_status zero_bytes_accepted(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error) {
  if (desc == nullptr || desc->struct_size != sizeof(*desc) || desc->bytes != 0)
    return kHonest.buffer_create(device, desc, out, error);
  bp_buffer_desc one = *desc;
  one.bytes = 1;
  return kHonest.buffer_create(device, &one, out, error);
}
bp_status unknown_kind_accepted(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error) {
  if (desc == nullptr || desc->struct_size != sizeof(*desc) || desc->kind < BP_MEMORY_KINDS)
    return kHonest.buffer_create(device, desc, out, error);
  bp_buffer_desc plain = *desc;
  plain.kind = BP_MEMORY_DEVICE;
  return kHonest.buffer_create(device, &plain, out, error);
}
bp_status odd_alignment_accepted(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error) {
  if (desc == nullptr || desc->struct_size != sizeof(*desc) || std::has_single_bit(desc->alignment))
    return kHonest.buffer_create(device, desc, out, error);
  bp_buffer_desc plain = *desc;
  plain.alignment = 0;
  return kHonest.buffer_create(device, &plain, out, error);
}
// Returns INTERNAL if memory is exhausted, so the host does not trim its pools and retry.
bp_status exhaustion_internal(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error) {
  const bp_status status = kHonest.buffer_create(device, desc, out, error);
  if (status != BP_OUT_OF_MEMORY) return status;
  return report(error, BP_INTERNAL, "mutant: the allocation failed");
}
// After the first exhaustion, every allocation fails.
bp_status exhaustion_sticks(bp_device* device, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error) {
  static std::atomic<bool> exhausted{false};
  if (exhausted.load()) {
    if (out != nullptr) *out = nullptr;
    return report(error, BP_OUT_OF_MEMORY, "mutant: memory ran out once");
  }
  const bp_status status = kHonest.buffer_create(device, desc, out, error);
  if (status == BP_OUT_OF_MEMORY) exhausted.store(true);
  return status;
}

bp_status device_memory_mapped(bp_device* device, bp_buffer* buffer, void** out, bp_error* error) {
  const bp_status status = kHonest.buffer_map(device, buffer, out, error);
  if (status != BP_UNSUPPORTED) return status;
  *out = buffer_of(buffer).span.address;
  return BP_OK;
}
// Each buffer_map call returns a new copy of the buffer's contents.
bp_status map_copies(bp_device* device, bp_buffer* buffer, void** out, bp_error* error) {
  const bp_status status = kHonest.buffer_map(device, buffer, out, error);
  if (status != BP_OK) return status;
  const Span& span = buffer_of(buffer).span;
  *out = std::memcpy(::operator new(span.bytes), span.address, span.bytes);
  return BP_OK;
}

// Returns the table of bp.import without a defect.
const bp_import_api& honest_import() {
  return *static_cast<const bp_import_api*>(DeviceTable<HostDevice>::interface(nullptr, BP_INTERFACE_IMPORT, 1));
}
bp_status import_copies(bp_device* device, const bp_import_desc* desc, uint32_t* out_kind, bp_buffer** out,
                        bp_error* error) {
  if (desc->address == 0 || desc->bytes == 0) return honest_import().import_memory(device, desc, out_kind, out, error);
  bp_import_desc copy = *desc;
  copy.address = reinterpret_cast<uint64_t>(
      std::memcpy(::operator new(desc->bytes), reinterpret_cast<const void*>(desc->address), desc->bytes));
  return honest_import().import_memory(device, &copy, out_kind, out, error);
}
// Frees imported memory as if the plugin had allocated it.
bp_status import_owned(bp_device* device, const bp_import_desc* desc, uint32_t* out_kind, bp_buffer** out,
                       bp_error* error) {
  const bp_status status = honest_import().import_memory(device, desc, out_kind, out, error);
  if (status == BP_OK) buffer_of(*out).alignment = HostMemory::kAlignment;
  return status;
}
bp_status import_of_any_type(bp_device* device, const bp_import_desc* desc, uint32_t* out_kind, bp_buffer** out,
                             bp_error* error) {
  if (desc == nullptr || desc->struct_size != sizeof(*desc) || desc->type <= BP_IMPORT_DEVICE)
    return honest_import().import_memory(device, desc, out_kind, out, error);
  bp_import_desc host = *desc;
  host.type = BP_IMPORT_HOST;
  return honest_import().import_memory(device, &host, out_kind, out, error);
}
bp_status import_desc_size_ignored(bp_device* device, const bp_import_desc* desc, uint32_t* out_kind, bp_buffer** out,
                                   bp_error* error) {
  if (desc == nullptr || desc->struct_size < BP_IMPORT_DESC_MIN_SIZE)
    return honest_import().import_memory(device, desc, out_kind, out, error);
  bp_import_desc known = *desc;
  known.struct_size = sizeof(known);
  return honest_import().import_memory(device, &known, out_kind, out, error);
}
bp_status import_device_copies(bp_device* device, const bp_import_desc* desc, uint32_t* out_kind, bp_buffer** out,
                               bp_error* error) {
  if (desc == nullptr || desc->struct_size != sizeof(*desc) || desc->type != BP_IMPORT_DEVICE)
    return honest_import().import_memory(device, desc, out_kind, out, error);
  bp_import_desc copy = *desc;
  copy.address = reinterpret_cast<uint64_t>(std::memset(::operator new(desc->bytes), 0, desc->bytes));
  return honest_import().import_memory(device, &copy, out_kind, out, error);
}

bp_status address_wanders(bp_device* device, bp_buffer* buffer, uint64_t* out, bp_error* error) {
  static std::atomic<uint64_t> calls{0};
  const bp_status status = kHonest.buffer_address(device, buffer, out, error);
  if (status == BP_OK) *out += calls.fetch_add(1);
  return status;
}
bp_status address_shared(bp_device* device, bp_buffer* buffer, uint64_t* out, bp_error* error) {
  static std::atomic<uint64_t> first{0};
  const bp_status status = kHonest.buffer_address(device, buffer, out, error);
  uint64_t none = 0;
  if (status == BP_OK && !first.compare_exchange_strong(none, *out)) *out = none;
  return status;
}
// Returns distinct, constant addresses between 2^44 and 2^45, where a process normally maps
// nothing.
bp_status address_invented(bp_device* device, bp_buffer* buffer, uint64_t* out, bp_error* error) {
  const bp_status status = kHonest.buffer_address(device, buffer, out, error);
  if (status == BP_OK) *out = (*out & 0x0000'07FF'FFFF'FFFFu) | 0x0000'1000'0000'0000u;
  return status;
}

// After the copy, also restores the other bytes of the buffer to their values at the time of the
// enqueue call.
bp_status copy_writes_whole_buffer(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset,
                                   bp_buffer* src, uint64_t src_offset, uint64_t bytes, bp_error* error) {
  const bp_status status = kHonest.copy(device, stream, dst, dst_offset, src, src_offset, bytes, error);
  if (status != BP_OK || bytes == 0 || buffer_of(dst).kind == BP_MEMORY_DEVICE) return status;
  const Span& span = buffer_of(dst).span;
  auto before = std::make_shared<std::vector<std::byte>>(span.address, span.address + span.bytes);
  const auto write_back = [&](uint64_t begin, uint64_t end) {
    if (begin == end) return;
    (void)stream_of(stream).enqueue(HostTask::Kind::kCopy, [&](HostTask& task) {
      // `kept` keeps the sources alive until the process exits, because a stream does not own the sources of its
      // copies.
      static std::mutex mutex;
      static std::vector<std::shared_ptr<std::vector<std::byte>>> kept;
      const std::lock_guard lock(mutex);
      kept.push_back(before);
      task.dst = span.address + begin;
      task.src = before->data() + begin;
      task.bytes = end - begin;
      return Status{};
    });
  };
  write_back(0, dst_offset);
  write_back(dst_offset + bytes, span.bytes);
  return status;
}

bp_status import_written_whole(bp_device* device, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset,
                               bp_buffer* src, uint64_t src_offset, uint64_t bytes, bp_error* error) {
  const bool imported = dst != nullptr && buffer_of(dst).alignment == 0;
  return (imported ? copy_writes_whole_buffer : kHonest.copy)(device, stream, dst, dst_offset, src, src_offset, bytes,
                                                              error);
}

template <auto kImport>
const void* changed_import(const bp_plugin* plugin, bp_device* device, const char* name, uint32_t version) {
  static constexpr bp_import_api import{sizeof(bp_import_api), 0, kImport};
  const void* honest = honest_plugin().get_interface(plugin, device, name, version);
  return honest != nullptr && std::string_view(name) == BP_INTERFACE_IMPORT ? &import : honest;
}
template <auto kImport>
constexpr Mutation on_import() {
  return {.plugin = [](bp_plugin& plugin) { plugin.get_interface = changed_import<kImport>; }};
}

}  // namespace

const Mutation defect::buffer_leaked = on_slot<&bp_device_api::buffer_destroy, mutants::buffer_leaked>();
const Mutation defect::buffer_kept = on_slot<&bp_device_api::buffer_destroy, mutants::buffer_kept>();
const Mutation defect::stream_leaked = on_slot<&bp_device_api::stream_destroy, mutants::stream_leaked>();
const Mutation defect::event_poll_leaks = on_slot<&bp_device_api::event_wait, mutants::event_poll_leaks>();
const Mutation defect::stream_timeout_leaks = on_slot<&bp_device_api::stream_wait, mutants::stream_timeout_leaks>();
const Mutation defect::refusal_leaks = on_slot<&bp_device_api::plan_create, mutants::refusal_leaks>();
const Mutation defect::record_leaks = on_slot<&bp_device_api::event_record, mutants::record_leaks>();
const Mutation defect::execute_leaks_seldom = on_slot<&bp_device_api::plan_execute, mutants::execute_leaks_seldom>();
const Mutation defect::poll_leaks_seldom = on_slot<&bp_device_api::stream_wait, mutants::poll_leaks_seldom>();
const Mutation defect::event_leaked = on_slot<&bp_device_api::event_destroy, mutants::event_leaked>();
const Mutation defect::plan_leaked = on_slot<&bp_device_api::plan_destroy, mutants::plan_leaked>();
const Mutation defect::device_leaked = on_slot<&bp_device_api::close, mutants::device_leaked>();
const Mutation defect::buffer_freed_twice = on_slot<&bp_device_api::buffer_destroy, freed_twice>();
const Mutation defect::memory_total_off_by_one = on_slot<&bp_device_api::memory_info, total_off_by_one>();
const Mutation defect::memory_free_overstated = on_slot<&bp_device_api::memory_info, free_overstated>();
const Mutation defect::memory_counted_per_handle{.api = [](bp_device_api& api) {
  api.close = close_counted;
  api.memory_info = free_of_one_handle;
  api.buffer_create = create_counted;
  api.buffer_destroy = destroy_counted;
}};
const Mutation defect::memory_free_never_moves = on_slot<&bp_device_api::memory_info, free_never_moves>();
const Mutation defect::memory_of_unknown_kind = on_slot<&bp_device_api::memory_info, unknown_kind_told>();
const Mutation defect::alignment_ignored{.api = [](bp_device_api& api) {
  api.buffer_create = mutants::alignment_ignored;
  api.buffer_destroy = destroy_misaligned;
}};
const Mutation defect::zero_bytes_accepted = on_slot<&bp_device_api::buffer_create, mutants::zero_bytes_accepted>();
const Mutation defect::unknown_kind_accepted = on_slot<&bp_device_api::buffer_create, mutants::unknown_kind_accepted>();
const Mutation defect::odd_alignment_accepted =
    on_slot<&bp_device_api::buffer_create, mutants::odd_alignment_accepted>();
const Mutation defect::exhaustion_internal = on_slot<&bp_device_api::buffer_create, mutants::exhaustion_internal>();
const Mutation defect::exhaustion_sticks = on_slot<&bp_device_api::buffer_create, mutants::exhaustion_sticks>();
const Mutation defect::device_memory_mapped = on_slot<&bp_device_api::buffer_map, mutants::device_memory_mapped>();
const Mutation defect::map_copies = on_slot<&bp_device_api::buffer_map, mutants::map_copies>();
const Mutation defect::import_copies = on_import<mutants::import_copies>();
const Mutation defect::import_owned = on_import<mutants::import_owned>();
const Mutation defect::import_of_any_type = on_import<mutants::import_of_any_type>();
const Mutation defect::import_desc_size_ignored = on_import<mutants::import_desc_size_ignored>();
const Mutation defect::import_device_copies = on_import<mutants::import_device_copies>();
const Mutation defect::address_wanders = on_slot<&bp_device_api::buffer_address, mutants::address_wanders>();
const Mutation defect::address_shared = on_slot<&bp_device_api::buffer_address, mutants::address_shared>();
const Mutation defect::address_invented = on_slot<&bp_device_api::buffer_address, mutants::address_invented>();
const Mutation defect::import_written_whole = on_slot<&bp_device_api::copy, mutants::import_written_whole>();
const Mutation defect::copy_writes_whole_buffer = on_slot<&bp_device_api::copy, mutants::copy_writes_whole_buffer>();

}  // namespace backplane::conformance::mutants
