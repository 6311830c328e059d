// SPDX-License-Identifier: Apache-2.0
// Copies between pageable and device memory through HOST buffers. If a copy is split into chunks, two chunks are in
// flight, so that the host fills or empties one chunk while the device copies the other.
#include "memory/transfer_staging.hpp"

#include <algorithm>
#include <cstring>

#include "loading/plugin_call.hpp"
#include "memory/transfer_enqueue.hpp"

namespace backplane::core::transfer {

namespace {

// Prepares to stage all bytes at once. Returns false if the bytes exceed one chunk and either the
// stream is not SHARED or memory is insufficient.
bool in_one_piece(Stream& stream, StagingSlot& slot, uint64_t bytes) {
  if (bytes > kChunkBytes && !stream.shared()) return false;
  try {
    slot.prepare(bytes, false);
    return true;
  } catch (const Error& error) {
    if (error.status() != BP_OUT_OF_MEMORY || bytes <= kChunkBytes) throw;
    return false;
  }
}

}  // namespace

StagingSlot::~StagingSlot() {
  if (event_ != nullptr) stream_.api->event_destroy(stream_.device_handle, event_);
  if (span_.block != nullptr) stream_.device->allocator.release(span_);
}

void StagingSlot::prepare(uint64_t bytes, bool tracked) {
  Device& device = *stream_.device;
  span_ = device.allocator.allocate(BP_MEMORY_HOST, bytes, 0, &stream_);
  bp_error error = fresh_error();
  void* address = nullptr;
  bp_status status = device.api->buffer_map(device.handle, span_.buffer, &address, &error);
  address_ = static_cast<char*>(created(device, "buffer_map", status, error, address)) + span_.offset;
  if (!tracked) return;
  bp_event* event = nullptr;
  status = device.api->event_create(device.handle, 0, &event, &error);
  event_ = created(device, "event_create", status, error, event);
}

void StagingSlot::record() {
  bp_error error = fresh_error();
  const bp_status status = stream_.api->event_record(stream_.device_handle, event_, stream_.handle, &error);
  check_enqueue(stream_, "event_record", status, error);
}

void StagingSlot::wait() {
  bp_error error = fresh_error();
  check(*stream_.device, "event_wait", stream_.api->event_wait(stream_.device_handle, event_, BP_WAIT_FOREVER, &error),
        error);
}

bool has_host_memory(const Device& device) noexcept { return (device.info.memory_kinds >> BP_MEMORY_HOST & 1) != 0; }

void count_staged(Device& device, uint64_t bytes) noexcept {
  device.counters.host_staged_copies.fetch_add(1, std::memory_order_relaxed);
  device.counters.host_staged_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void stage_in(Stream& stream, const char* function, Buffer& dst, uint64_t dst_offset, const char* src, uint64_t bytes) {
  StagingSlot slots[2] = {StagingSlot(stream), StagingSlot(stream)};
  const uint64_t to = dst.plugin_offset + dst_offset;
  if (in_one_piece(stream, slots[0], bytes)) {
    std::memcpy(slots[0].address(), src, bytes);
    const StreamLock lock(stream, function);
    stream.begin_call();
    enqueue_copy(stream, dst.plugin_buffer, to, slots[0].span().buffer, slots[0].span().offset, bytes);
    return count_staged(*stream.device, bytes);
  }
  const StreamLock lock(stream, function);
  stream.begin_call();
  const uint64_t chunks = (bytes + kChunkBytes - 1) / kChunkBytes;
  for (StagingSlot& slot : slots) slot.prepare(kChunkBytes, chunks > 2);
  for (uint64_t i = 0, at = 0; i < chunks; ++i, at += kChunkBytes) {
    StagingSlot& slot = slots[i % 2];
    const uint64_t part = std::min(kChunkBytes, bytes - at);
    if (i >= 2) slot.wait();
    std::memcpy(slot.address(), src + at, part);
    enqueue_copy(stream, dst.plugin_buffer, to + at, slot.span().buffer, slot.span().offset, part);
    if (i + 2 < chunks) slot.record();
  }
  count_staged(*stream.device, bytes);
}

void stage_out(Stream& stream, const char* function, char* dst, Buffer& src, uint64_t src_offset, uint64_t bytes) {
  StagingSlot slots[2] = {StagingSlot(stream), StagingSlot(stream)};
  const uint64_t from = src.plugin_offset + src_offset;
  if (in_one_piece(stream, slots[0], bytes)) {
    std::shared_ptr<WaitMarker> mark;
    {
      const StreamLock lock(stream, function);
      stream.begin_call();
      enqueue_copy(stream, slots[0].span().buffer, slots[0].span().offset, src.plugin_buffer, from, bytes);
      mark = stream.record_wait_marker();
    }
    stream.wait_for(mark);
    std::memcpy(dst, slots[0].address(), bytes);
    return count_staged(*stream.device, bytes);
  }
  const StreamLock lock(stream, function);
  stream.begin_call();
  const uint64_t chunks = (bytes + kChunkBytes - 1) / kChunkBytes;
  for (StagingSlot& slot : slots) slot.prepare(kChunkBytes, true);
  const auto start = [&](uint64_t chunk) {
    StagingSlot& slot = slots[chunk % 2];
    const uint64_t at = chunk * kChunkBytes;
    enqueue_copy(stream, slot.span().buffer, slot.span().offset, src.plugin_buffer, from + at,
                 std::min(kChunkBytes, bytes - at));
    slot.record();
  };
  start(0);
  for (uint64_t i = 0; i < chunks; ++i) {
    if (i + 1 < chunks) {
      start(i + 1);
      slots[i % 2].wait();
    } else {
      stream.wait(BP_WAIT_FOREVER);
    }
    std::memcpy(dst + i * kChunkBytes, slots[i % 2].address(), std::min(kChunkBytes, bytes - i * kChunkBytes));
  }
  count_staged(*stream.device, bytes);
}

}  // namespace backplane::core::transfer
