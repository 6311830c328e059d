// SPDX-License-Identifier: Apache-2.0
// Copies. Pageable memory goes to the plugin if it takes it, else through HOST buffers in chunks: two in flight, so
// that the host fills or empties one while the device copies the other.
#include "transfer.hpp"

#include <algorithm>
#include <cstring>

#include "plugin_call.hpp"

namespace bp {

namespace {

constexpr uint64_t chunk_bytes = 2u << 20;

void require_on_stream(const char* function, const Stream& stream, const char* which, const Buffer& buffer) {
  if (stream.device.get() == buffer.device) return;
  throw Error(BP_INVALID_ARGUMENT, "{}: {} is of {}, the stream of {}{}; use objects of one open device", function,
              which, buffer.device->name, stream.device->name,
              stream.device->name == buffer.device->name ? " as opened another time" : "");
}

void require_inside(const char* function, const char* which, const Buffer& buffer, uint64_t offset, uint64_t bytes) {
  if (offset <= buffer.bytes && bytes <= buffer.bytes - offset) return;
  throw Error(BP_INVALID_ARGUMENT, "{}: {} bytes from offset {} do not fit {}, which has {}; correct offset or size",
              function, bytes, offset, which, buffer.bytes);
}

// Counts the enqueue, and throws unless it was accepted.
void check_enqueue(Stream& stream, const char* slot, bp_status status, const bp_error& error) {
  stream.answered(status);
  check(*stream.device, slot, status, error);
}

void enqueue_copy(Stream& stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src, uint64_t src_offset,
                  uint64_t bytes) {
  bp_error error = fresh_error();
  const bp_status status =
      stream.api->copy(stream.device_handle, stream.handle, dst, dst_offset, src, src_offset, bytes, &error);
  check_enqueue(stream, "copy", status, error);
}

// A HOST span that is filled or emptied by the host, and the event that tells when the device is done with it.
class Slot {
 public:
  explicit Slot(Stream& stream) : stream_(stream) {}
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot() {
    if (event_ != nullptr) stream_.api->event_destroy(stream_.device_handle, event_);
    if (span_.block != nullptr) stream_.device->allocator.release(span_);
  }

  // `tracked` if `wait` will be called.
  void prepare(uint64_t bytes, bool tracked) {
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
  void record() {
    bp_error error = fresh_error();
    const bp_status status = stream_.api->event_record(stream_.device_handle, event_, stream_.handle, &error);
    check_enqueue(stream_, "event_record", status, error);
  }
  void wait() {
    bp_error error = fresh_error();
    check(*stream_.device, "event_wait",
          stream_.api->event_wait(stream_.device_handle, event_, BP_WAIT_FOREVER, &error), error);
  }
  char* address() const noexcept { return address_; }
  const Span& span() const noexcept { return span_; }

 private:
  Stream& stream_;
  Span span_;
  char* address_ = nullptr;
  bp_event* event_ = nullptr;
};

void require_host_memory(const char* function, const Device& device) {
  if ((device.info.memory_kinds >> BP_MEMORY_HOST & 1) != 0) return;
  throw Error(
      BP_UNSUPPORTED,
      "{}: {} neither takes pageable memory ({}) nor offers HOST memory to stage through; use SHARED buffers and map "
      "them",
      function, device.name, function + sizeof("bph_") - 1);
}

void count_staged(Device& device, uint64_t bytes) noexcept {
  device.counters.host_staged_copies.fetch_add(1, std::memory_order_relaxed);
  device.counters.host_staged_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void stage_in(Stream& stream, Buffer& dst, uint64_t dst_offset, const char* src, uint64_t bytes) {
  const uint64_t chunks = (bytes + chunk_bytes - 1) / chunk_bytes;
  Slot slots[2] = {Slot(stream), Slot(stream)};
  for (uint64_t i = 0; i < std::min<uint64_t>(chunks, 2); ++i)
    slots[i].prepare(std::min(bytes, chunk_bytes), chunks > 2);
  for (uint64_t i = 0, at = 0; i < chunks; ++i, at += chunk_bytes) {
    Slot& slot = slots[i % 2];
    const uint64_t part = std::min(chunk_bytes, bytes - at);
    if (i >= 2) slot.wait();
    std::memcpy(slot.address(), src + at, part);
    enqueue_copy(stream, dst.plugin_buffer, dst.plugin_offset + dst_offset + at, slot.span().buffer, slot.span().offset,
                 part);
    if (i + 2 < chunks) slot.record();
  }
}

void stage_out(Stream& stream, char* dst, Buffer& src, uint64_t src_offset, uint64_t bytes) {
  const uint64_t chunks = (bytes + chunk_bytes - 1) / chunk_bytes;
  Slot slots[2] = {Slot(stream), Slot(stream)};
  for (uint64_t i = 0; i < std::min<uint64_t>(chunks, 2); ++i)
    slots[i].prepare(std::min(bytes, chunk_bytes), chunks > 1);
  const auto start = [&](uint64_t chunk) {
    Slot& slot = slots[chunk % 2];
    const uint64_t at = chunk * chunk_bytes;
    enqueue_copy(stream, slot.span().buffer, slot.span().offset, src.plugin_buffer, src.plugin_offset + src_offset + at,
                 std::min(chunk_bytes, bytes - at));
    if (chunks > 1) slot.record();
  };
  start(0);
  for (uint64_t i = 0; i < chunks; ++i) {
    if (i + 1 < chunks) start(i + 1);
    if (i + 1 < chunks) {
      slots[i % 2].wait();
    } else {
      stream.wait(BP_WAIT_FOREVER);
    }
    std::memcpy(dst + i * chunk_bytes, slots[i % 2].address(), std::min(chunk_bytes, bytes - i * chunk_bytes));
  }
}

}  // namespace

void copy(Stream& stream, Buffer& dst, uint64_t dst_offset, Buffer& src, uint64_t src_offset, uint64_t bytes) {
  require_on_stream("bph_copy", stream, "dst", dst);
  require_on_stream("bph_copy", stream, "src", src);
  require_inside("bph_copy", "dst", dst, dst_offset, bytes);
  require_inside("bph_copy", "src", src, src_offset, bytes);
  if (bytes == 0) return;
  if (dst.kind == BP_MEMORY_HOST && src.kind == BP_MEMORY_HOST) {
    throw Error(
        BP_INVALID_ARGUMENT,
        "bph_copy: both buffers are HOST memory, which no device copies; wait for the stream, map them and copy {} "
        "bytes yourself",
        bytes);
  }
  const uint64_t to = dst.plugin_offset + dst_offset;
  const uint64_t from = src.plugin_offset + src_offset;
  if (dst.plugin_buffer == src.plugin_buffer && to < from + bytes && from < to + bytes) {
    throw Error(
        BP_INVALID_ARGUMENT,
        "bph_copy: source and target overlap: {} bytes from offset {} to offset {} of one memory; copy through another "
        "buffer",
        bytes, src_offset, dst_offset);
  }
  stream.begin_call();
  enqueue_copy(stream, dst.plugin_buffer, to, src.plugin_buffer, from, bytes);
}

void copy_in(Stream& stream, Buffer& dst, uint64_t dst_offset, const void* src, uint64_t bytes) {
  require_on_stream("bph_copy_in", stream, "dst", dst);
  require_inside("bph_copy_in", "dst", dst, dst_offset, bytes);
  if (bytes == 0) return;
  if (src == nullptr)
    throw Error(BP_INVALID_ARGUMENT, "bph_copy_in: src is null, and {} bytes are to come from it", bytes);
  Device& device = *stream.device;
  stream.begin_call();
  if (device.plugin->has_copy_in) {
    bp_error error = fresh_error();
    const bp_status status = stream.api->copy_in(device.handle, stream.handle, dst.plugin_buffer,
                                                 dst.plugin_offset + dst_offset, src, bytes, &error);
    return check_enqueue(stream, "copy_in", status, error);
  }
  if (dst.kind == BP_MEMORY_HOST) {  // no device copies HOST to HOST
    char* address = static_cast<char*>(dst.map());
    stream.wait(BP_WAIT_FOREVER);
    std::memcpy(address + dst_offset, src, bytes);
  } else {
    require_host_memory("bph_copy_in", device);
    stage_in(stream, dst, dst_offset, static_cast<const char*>(src), bytes);
  }
  count_staged(device, bytes);
}

void copy_out(Stream& stream, void* dst, Buffer& src, uint64_t src_offset, uint64_t bytes) {
  require_on_stream("bph_copy_out", stream, "src", src);
  require_inside("bph_copy_out", "src", src, src_offset, bytes);
  if (bytes == 0) return;
  if (dst == nullptr)
    throw Error(BP_INVALID_ARGUMENT, "bph_copy_out: dst is null, and {} bytes are to go there", bytes);
  Device& device = *stream.device;
  stream.begin_call();
  if (device.plugin->has_copy_out) {
    bp_error error = fresh_error();
    const bp_status status = stream.api->copy_out(device.handle, stream.handle, dst, src.plugin_buffer,
                                                  src.plugin_offset + src_offset, bytes, &error);
    // A part that was submitted may write to `dst` until the stream has ended. This throws why it failed.
    if (status == BP_EXECUTION_FAILED) stream.wait(BP_WAIT_FOREVER);
    check_enqueue(stream, "copy_out", status, error);
    return stream.wait(BP_WAIT_FOREVER);
  }
  if (src.kind == BP_MEMORY_HOST) {
    const char* address = static_cast<char*>(src.map());
    stream.wait(BP_WAIT_FOREVER);
    std::memcpy(dst, address + src_offset, bytes);
  } else {
    require_host_memory("bph_copy_out", device);
    stage_out(stream, static_cast<char*>(dst), src, src_offset, bytes);
  }
  count_staged(device, bytes);
}

}  // namespace bp
