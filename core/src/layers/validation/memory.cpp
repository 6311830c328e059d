// SPDX-License-Identifier: Apache-2.0
// Implements the slots of the layer `validation` for memory, buffers, copies and bp.import.
#include "layers/validation/memory.hpp"

#include <bit>

namespace backplane::core::layers {

namespace {

void check_kind(const Call& call, uint32_t kind) {
  if (kind >= BP_MEMORY_KINDS) {
    call.refuse(rule::kUnknownValue, "{} is not a memory kind; BP_MEMORY_* are 0 to {}", kind, BP_MEMORY_KINDS - 1);
  }
}

bp_status memory_info(bp_device* handle, uint32_t kind, bp_memory_info* out, bp_error* error) {
  return checked(handle, Slot::memory_info, error, [&](Call& call) {
    call.output(out, BP_MEMORY_INFO_MIN_SIZE, "bp_memory_info");
    check_kind(call, kind);
    Outcome outcome =
        call.forward(Slot::memory_info, [&](const bp_device_api& next, bp_device* inner, bp_error* record) {
          return next.memory_info(inner, kind, out, record);
        });
    if (outcome.ok() && out->free_bytes != UINT64_MAX && out->free_bytes > out->total_bytes) {
      call.blame(outcome, rule::kMemoryNumbers, "{} bytes are free of {}; report it to the plugin's author",
                 out->free_bytes, out->total_bytes);
    }
    const std::lock_guard lock(call.device().mutex);
    call.note(outcome, nullptr);
    return outcome.write(error);
  });
}

bp_status buffer_create(bp_device* handle, const bp_buffer_desc* desc, bp_buffer** out, bp_error* error) {
  if (out != nullptr) *out = nullptr;
  return checked(handle, Slot::buffer_create, error, [&](Call& call) {
    call.need(out, "out");
    CheckedBuffer state = described_buffer(call, desc);
    bp_buffer* made = nullptr;
    Outcome outcome = create(call, Slot::buffer_create, &made,
                             [&](const bp_device_api& next, bp_device* inner, bp_buffer** created, bp_error* record) {
                               return next.buffer_create(inner, desc, created, record);
                             });
    *out = keep(call, outcome, made, std::move(state));
    return outcome.write(error);
  });
}

void buffer_destroy(bp_device* handle, bp_buffer* buffer) {
  checked_void(handle, "buffer_destroy", [&](Call& call) {
    CheckedDevice& device = call.device();
    {
      const std::lock_guard lock(device.mutex);
      CheckedBuffer& state = call.object(buffer, "buffer");
      if (state.calls != 0 || device.ledger.pending(state.uses)) {
        call.refuse(rule::kBufferPending, "work that uses buffer {} is pending; wait for its streams, then destroy",
                    fmt::ptr(buffer));
      }
      if (state.graphs != 0) {
        call.refuse(rule::kGraphUses, "a capture or graph uses buffer {}; destroy the graph first", fmt::ptr(buffer));
      }
      device.buffers.end(buffer);
    }
    call.next().buffer_destroy(call.inner(), buffer);
  });
}

// Finds the buffer that a call uses. Until the call returns, no other call may destroy the buffer.
CheckedBuffer& occupied(Call& call, bp_buffer* buffer) {
  const std::lock_guard lock(call.device().mutex);
  CheckedBuffer& state = call.object(buffer, "buffer");
  call.occupy(state.calls);
  return state;
}

bp_status buffer_map(bp_device* handle, bp_buffer* buffer, void** out, bp_error* error) {
  if (out != nullptr) *out = nullptr;
  return checked(handle, Slot::buffer_map, error, [&](Call& call) {
    call.need(out, "out");
    CheckedDevice& device = call.device();
    CheckedBuffer& state = occupied(call, buffer);
    void* address = nullptr;
    Outcome outcome = create(call, Slot::buffer_map, &address,
                             [&](const bp_device_api& next, bp_device* inner, void** created, bp_error* record) {
                               return next.buffer_map(inner, buffer, created, record);
                             });
    const std::lock_guard lock(device.mutex);
    call.note(outcome, nullptr);
    if (outcome.ok() && (state.kind == BP_MEMORY_DEVICE || (state.mapped != nullptr && state.mapped != address))) {
      call.blame(outcome, rule::kOneMapping,
                 "gave {} for a buffer of kind {} that was mapped at {}; report it to the plugin's author",
                 fmt::ptr(address), state.kind, fmt::ptr(state.mapped));
    }
    if (outcome.ok() && !outcome.defect) {
      state.mapped = address;
      const auto at = reinterpret_cast<uint64_t>(address);
      state.alignment = std::max(state.alignment, at & (~at + 1));
      *out = address;
    }
    return outcome.write(error);
  });
}

// Returns whether the bytes at `address` overlap another live buffer whose address is known. The
// caller holds the device's mutex.
bool overlaps_another(CheckedDevice& device, const CheckedBuffer& own, uint64_t address) {
  bool overlaps = false;
  device.buffers.for_each([&](const CheckedBuffer& other) {
    overlaps = overlaps || (&other != &own && other.address != 0 && address < other.address + other.bytes &&
                            other.address < address + own.bytes);
  });
  return overlaps;
}

bp_status buffer_address(bp_device* handle, bp_buffer* buffer, uint64_t* out, bp_error* error) {
  if (out != nullptr) *out = 0;
  return checked(handle, Slot::buffer_address, error, [&](Call& call) {
    call.need(out, "out");
    CheckedDevice& device = call.device();
    CheckedBuffer& state = occupied(call, buffer);
    uint64_t address = 0;
    Outcome outcome =
        call.forward(Slot::buffer_address, [&](const bp_device_api& next, bp_device* inner, bp_error* record) {
          return next.buffer_address(inner, buffer, &address, record);
        });
    const std::lock_guard lock(device.mutex);
    call.note(outcome, nullptr);
    if (outcome.ok() && (address == 0 || (state.address != 0 && state.address != address))) {
      call.blame(outcome, rule::kOneAddress,
                 "gave {:#x} for a buffer that was at {:#x}; report it to the plugin's author", address, state.address);
    }
    if (outcome.ok() && !state.imported && overlaps_another(device, state, address)) {
      call.blame(outcome, rule::kOneAddress,
                 "gave {:#x}, and the {} bytes there are another living buffer's too; report it to the plugin's author",
                 address, state.bytes);
    }
    if (outcome.ok() && !outcome.defect) {
      if (!state.imported) state.address = address;
      *out = address;
    }
    return outcome.write(error);
  });
}

bp_status import_memory(bp_device* handle, const bp_import_desc* desc, uint32_t* out_kind, bp_buffer** out,
                        bp_error* error) {
  if (out != nullptr) *out = nullptr;
  return checked(handle, Slot::import_memory, error, [&](Call& call) {
    call.need(out, "out");
    call.need(out_kind, "out_kind");
    const bp_import_desc known = call.input(desc, BP_IMPORT_DESC_MIN_SIZE, "bp_import_desc");
    if (known.type > BP_IMPORT_DEVICE) {
      call.refuse(rule::kUnknownValue, "{} is not an import type; BP_IMPORT_* are 0 and 1", known.type);
    }
    if (known.address == 0 || known.bytes == 0) {
      call.refuse(rule::kImportMemory, "{} bytes at {:#x} are offered; offer at least 1 at an address", known.bytes,
                  known.address);
    }
    const auto table = call.device().owner.inner_interface<bp_import_api>(call.inner());
    bp_buffer* made = nullptr;
    uint32_t kind = UINT32_MAX;
    Outcome outcome = create(call, Slot::import_memory, &made,
                             [&](const bp_device_api&, bp_device* inner, bp_buffer** created, bp_error* record) {
                               return table.import_memory(inner, desc, &kind, created, record);
                             });
    const bool right =
        known.type == BP_IMPORT_DEVICE ? kind == BP_MEMORY_DEVICE : kind == BP_MEMORY_SHARED || kind == BP_MEMORY_HOST;
    if (outcome.ok() && !right) {
      call.blame(outcome, rule::kImportKind, "gave a buffer of kind {}; report it to the plugin's author", kind);
    }
    CheckedBuffer state;
    state.kind = kind;
    state.bytes = known.bytes;
    state.alignment = known.address & (~known.address + 1);
    state.imported = true;
    *out = keep(call, outcome, made, std::move(state));
    if (*out != nullptr) *out_kind = kind;
    return outcome.write(error);
  });
}

// Implements the common part of all copy slots. `buffers` are the checked buffers that the copy
// uses.
template <class Forward>
bp_status enqueue_copy(Call& call, Slot slot, CheckedStream& stream, const std::vector<CheckedBuffer*>& buffers,
                       bp_error* error, Forward&& forward) {
  Outcome outcome = call.forward(slot, forward);
  const std::lock_guard lock(call.device().mutex);
  call.note(outcome, &stream);
  if (outcome.ok()) use_buffers(call, stream, buffers);
  return outcome.write(error);
}

bp_status copy(bp_device* handle, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src,
               uint64_t src_offset, uint64_t bytes, bp_error* error) {
  return checked(handle, Slot::copy, error, [&](Call& call) {
    CheckedStream* line = nullptr;
    std::vector<CheckedBuffer*> buffers;
    {
      const std::lock_guard lock(call.device().mutex);
      CheckedBuffer& to = call.object(dst, "destination");
      CheckedBuffer& from = call.object(src, "source");
      check_range(call, to, "destination", dst_offset, bytes);
      check_range(call, from, "source", src_offset, bytes);
      if (dst == src && bytes != 0 && dst_offset < src_offset + bytes && src_offset < dst_offset + bytes) {
        call.refuse(rule::kCopyOverlap, "{} bytes from offset {} to offset {} of one buffer overlap; copy in two steps",
                    bytes, src_offset, dst_offset);
      }
      check_kinds(call, to, from);
      line = &call.occupy_stream(stream);
      buffers = {&to, &from};
      occupy_buffers(call, buffers);
    }
    return enqueue_copy(call, Slot::copy, *line, buffers, error,
                        [&](const bp_device_api& next, bp_device* inner, bp_error* record) {
                          return next.copy(inner, stream, dst, dst_offset, src, src_offset, bytes, record);
                        });
  });
}

// Checks and forwards copy_in and copy_out, which have one buffer and a host address.
template <class Forward>
bp_status pageable(bp_device* handle, Slot slot, bp_stream* stream, bp_buffer* buffer, uint64_t offset,
                   const void* address, uint64_t bytes, bp_error* error, Forward&& forward) {
  return checked(handle, slot, error, [&](Call& call) {
    CheckedStream* line = nullptr;
    std::vector<CheckedBuffer*> buffers;
    {
      const std::lock_guard lock(call.device().mutex);
      CheckedBuffer& known = call.object(buffer, "buffer");
      check_range(call, known, "buffer", offset, bytes);
      if (address == nullptr && bytes != 0) {
        call.refuse(rule::kCopyPointer, "the address of {} bytes of host memory is null; pass it", bytes);
      }
      line = &call.occupy_stream(stream);
      buffers = {&known};
      occupy_buffers(call, buffers);
    }
    return enqueue_copy(call, slot, *line, buffers, error, forward);
  });
}

bp_status copy_in(bp_device* handle, bp_stream* stream, bp_buffer* dst, uint64_t dst_offset, const void* src,
                  uint64_t bytes, bp_error* error) {
  return pageable(handle, Slot::copy_in, stream, dst, dst_offset, src, bytes, error,
                  [&](const bp_device_api& next, bp_device* inner, bp_error* record) {
                    return next.copy_in(inner, stream, dst, dst_offset, src, bytes, record);
                  });
}

bp_status copy_out(bp_device* handle, bp_stream* stream, void* dst, bp_buffer* src, uint64_t src_offset, uint64_t bytes,
                   bp_error* error) {
  return pageable(handle, Slot::copy_out, stream, src, src_offset, dst, bytes, error,
                  [&](const bp_device_api& next, bp_device* inner, bp_error* record) {
                    return next.copy_out(inner, stream, dst, src, src_offset, bytes, record);
                  });
}

}  // namespace

CheckedBuffer described_buffer(const Call& call, const bp_buffer_desc* desc) {
  const bp_buffer_desc known = call.input(desc, BP_BUFFER_DESC_MIN_SIZE, "bp_buffer_desc");
  check_kind(call, known.kind);
  if (known.bytes == 0 || (known.alignment != 0 && !std::has_single_bit(known.alignment))) {
    call.refuse(rule::kBufferSize, "{} bytes aligned to {} are requested; request at least 1, and a power of two",
                known.bytes, known.alignment);
  }
  CheckedBuffer state;
  state.kind = known.kind;
  state.bytes = known.bytes;
  state.alignment = known.alignment != 0 ? known.alignment : std::max<uint64_t>(call.device().info.alignment, 1);
  return state;
}

void check_range(const Call& call, const CheckedBuffer& buffer, const char* role, uint64_t offset, uint64_t bytes) {
  if (offset > buffer.bytes || bytes > buffer.bytes - offset) {
    call.refuse(rule::kCopyBounds, "{} bytes at offset {} of the {} go beyond its {} bytes; copy less, or elsewhere",
                bytes, offset, role, buffer.bytes);
  }
}

void check_kinds(const Call& call, const CheckedBuffer& to, const CheckedBuffer& from) {
  if (to.kind == BP_MEMORY_HOST && from.kind == BP_MEMORY_HOST) {
    call.refuse(rule::kCopyHost, "both buffers are in HOST memory; copy there with memcpy, after a wait");
  }
}

void occupy_buffers(Call& call, const std::vector<CheckedBuffer*>& buffers) {
  for (CheckedBuffer* buffer : buffers) {
    call.occupy(buffer->calls);
    // Removes completed points if there may be points of streams that have ended.
    if (buffer->uses.size() > call.device().ledger.lines()) call.device().ledger.pending(buffer->uses);
    // Reserves one point for each running call, because each call adds at most one point.
    buffer->uses.reserve(buffer->uses.size() + buffer->calls);
  }
}

void use_buffers(Call& call, const CheckedStream& stream, const std::vector<CheckedBuffer*>& buffers,
                 CheckedPlan* plan) noexcept {
  if (stream.captures()) return stream.graph->use(buffers, plan);
  const Point point = call.device().ledger.enqueue(stream.line);
  for (CheckedBuffer* buffer : buffers) raise(buffer->uses, point);
}

void splice_memory(CheckedPlugin& plugin) {
  const bp_device_api& has = plugin.has;
  splice_slot(plugin.api.memory_info, has.memory_info, memory_info);
  splice_slot(plugin.api.buffer_create, has.buffer_create, buffer_create);
  splice_slot(plugin.api.buffer_destroy, has.buffer_destroy, buffer_destroy);
  splice_slot(plugin.api.buffer_map, has.buffer_map, buffer_map);
  splice_slot(plugin.api.buffer_address, has.buffer_address, buffer_address);
  splice_slot(plugin.api.copy, has.copy, copy);
  splice_slot(plugin.api.copy_in, has.copy_in, copy_in);
  splice_slot(plugin.api.copy_out, has.copy_out, copy_out);
  plugin.import.import_memory = import_memory;
}

}  // namespace backplane::core::layers
