// SPDX-License-Identifier: Apache-2.0
// Copies on one stream. Core passes pageable memory to the plugin if the plugin accepts such memory. Otherwise core
// stages the copy.
#include "memory/transfer.hpp"

#include <cstring>

#include "graph/recorder.hpp"
#include "loading/plugin_call.hpp"
#include "memory/transfer_enqueue.hpp"
#include "memory/transfer_staging.hpp"

namespace backplane::core {

using namespace transfer;

namespace {

// Copies between a buffer of the stream's device (`own`) and a HOST buffer of another device
// (`other`).
void copy_foreign(Stream& stream, Buffer& dst, uint64_t dst_offset, Buffer& src, uint64_t src_offset, uint64_t bytes) {
  constexpr const char* function = "bph_copy";
  const bool from_other = src.device != stream.device.get();
  Buffer& other = from_other ? src : dst;
  Buffer& own = from_other ? dst : src;
  require_on_stream(function, stream, from_other ? "dst" : "src", own);
  if (other.kind != BP_MEMORY_HOST) {
    throw Error(
        BP_INVALID_ARGUMENT,
        "{}: {} is of {}, the stream of {}{}, and it is not HOST memory, which alone may be another open device's; "
        "use bph_copy_across",
        function, from_other ? "src" : "dst", other.device->name, stream.device->name,
        stream.device->name == other.device->name ? " as opened another time" : "");
  }
  if (own.kind == BP_MEMORY_HOST) both_host(function, bytes);
  char* const address = static_cast<char*>(other.map()) + (from_other ? src_offset : dst_offset);
  if (own.kind == BP_MEMORY_SHARED) {  // `own` may be an import of the same memory
    const char* const begin = static_cast<char*>(own.map()) + (from_other ? dst_offset : src_offset);
    if (begin < address + bytes && address < begin + bytes) overlap(function, bytes, src_offset, dst_offset);
  }
  other.record_foreign(stream);

  Device& device = *stream.device;
  if (Block* imported = device.allocator.import_for_copy(address, bytes, stream)) {
    struct End {
      ~End() { allocator.release_block(block); }
      Allocator& allocator;
      Block& block;
    } end{device.allocator, *imported};
    const StreamLock lock(stream, function);
    stream.begin_call();
    const Buffer& near = *reinterpret_cast<Buffer*>(imported);
    if (from_other) {
      enqueue_copy(stream, dst.plugin_buffer, dst.plugin_offset + dst_offset, near.plugin_buffer, near.plugin_offset,
                   bytes);
    } else {
      enqueue_copy(stream, near.plugin_buffer, near.plugin_offset, src.plugin_buffer, src.plugin_offset + src_offset,
                   bytes);
    }
    return;
  }
  if (from_other ? device.plugin->has_copy_in : device.plugin->has_copy_out) {
    const StreamLock lock(stream, function);
    stream.begin_call();
    return from_other ? enqueue_in(stream, dst, dst_offset, address, bytes)
                      : enqueue_out(stream, address, src, src_offset, bytes);
  }
  if (from_other) {
    stream.wait(BP_WAIT_FOREVER);  // earlier work on the stream may write the source
    stage_in(stream, function, dst, dst_offset, address, bytes);
  } else {
    stage_out(stream, function, address, src, src_offset, bytes);
  }
}

}  // namespace

void copy(Stream& stream, Buffer& dst, uint64_t dst_offset, Buffer& src, uint64_t src_offset, uint64_t bytes,
          uint32_t flags) {
  constexpr const char* function = "bph_copy";
  require_flags(function, flags, 0);
  require_target(function, dst, dst_offset, bytes);
  require_inside(function, "src", src, src_offset, bytes);
  if (dst.device != src.device && bytes != 0) [[unlikely]]
    return copy_foreign(stream, dst, dst_offset, src, src_offset, bytes);
  require_on_stream(function, stream, "dst", dst);
  if (bytes == 0) return;
  if (dst.kind == BP_MEMORY_HOST && src.kind == BP_MEMORY_HOST) both_host(function, bytes);
  const uint64_t to = dst.plugin_offset + dst_offset;
  const uint64_t from = src.plugin_offset + src_offset;
  if (dst.plugin_buffer == src.plugin_buffer && to < from + bytes && from < to + bytes) {
    overlap(function, bytes, src_offset, dst_offset);
  }
  const StreamLock lock(stream, function, StreamLock::Purpose::record);
  if (stream.recorder != nullptr) return stream.recorder->copy(stream, dst, dst_offset, src, src_offset, bytes);
  stream.begin_call();
  enqueue_copy(stream, dst.plugin_buffer, to, src.plugin_buffer, from, bytes);
}

namespace {

// Returns whether staging frees the source without a wait, although copy_in would have to wait. This
// requires pending work, at most two chunks of bytes, a `dst` that is not HOST, and HOST memory for
// the staging.
bool staging_saves_a_wait(const Stream& stream, const Buffer& dst, uint64_t bytes) noexcept {
  return !stream.idle() && bytes <= 2 * kChunkBytes && dst.kind != BP_MEMORY_HOST && has_host_memory(*stream.device);
}

// Copies with the plugin's copy_in, and waits until the source is free.
void copy_in_and_wait(Stream& stream, Buffer& dst, uint64_t dst_offset, const void* src, uint64_t bytes) {
  std::shared_ptr<WaitMarker> marker;
  {
    const StreamLock lock(stream, "bph_copy_in");
    stream.begin_call();
    try {
      enqueue_in(stream, dst, dst_offset, src, bytes);
    } catch (const Error& error) {
      if (error.status() == BP_EXECUTION_FAILED)
        // Submitted parts of the copy may read the source until the stream's work has completed.
        stream.wait(BP_WAIT_FOREVER);
      throw;
    }
    if (stream.has_completed()) return;
    marker = stream.record_wait_marker();
  }
  stream.wait_for(marker);
}

}  // namespace

void copy_in(Stream& stream, Buffer& dst, uint64_t dst_offset, const void* src, uint64_t bytes, uint32_t flags) {
  constexpr const char* function = "bph_copy_in";
  require_flags(function, flags, BPH_COPY_SOURCE_FREE);
  require_on_stream(function, stream, "dst", dst);
  require_target(function, dst, dst_offset, bytes);
  if (bytes == 0) return;
  if (src == nullptr)
    throw Error(BP_INVALID_ARGUMENT, "{}: src is null, and {} bytes are to come from it", function, bytes);
  if (stream.device->plugin->has_copy_in) {
    if (flags == 0) {
      const StreamLock lock(stream, function, StreamLock::Purpose::record);
      if (stream.recorder != nullptr) return stream.recorder->copy_in(stream, dst, dst_offset, src, bytes);
      stream.begin_call();
      return enqueue_in(stream, dst, dst_offset, src, bytes);
    }
    if (!staging_saves_a_wait(stream, dst, bytes)) return copy_in_and_wait(stream, dst, dst_offset, src, bytes);
  }
  if (dst.kind != BP_MEMORY_HOST) {
    return stage_in(stream, function, dst, dst_offset, static_cast<const char*>(src), bytes);
  }
  // The host copies the bytes. Staging would require a copy between two HOST buffers, which no
  // device makes.
  char* const address = static_cast<char*>(dst.map());
  stream.wait(BP_WAIT_FOREVER);
  std::memcpy(address + dst_offset, src, bytes);
  count_staged(*stream.device, bytes);
}

void copy_out(Stream& stream, void* dst, Buffer& src, uint64_t src_offset, uint64_t bytes, uint32_t flags) {
  constexpr const char* function = "bph_copy_out";
  require_flags(function, flags, BPH_COPY_ENQUEUE);
  require_on_stream(function, stream, "src", src);
  require_inside(function, "src", src, src_offset, bytes);
  if (bytes == 0) return;
  if (dst == nullptr)
    throw Error(BP_INVALID_ARGUMENT, "{}: dst is null, and {} bytes are to go there", function, bytes);
  if (stream.device->plugin->has_copy_out) {
    std::shared_ptr<WaitMarker> marker;
    {
      const bool waits = (flags & BPH_COPY_ENQUEUE) == 0;
      const StreamLock lock(stream, function, waits ? StreamLock::Purpose::call : StreamLock::Purpose::record);
      if (stream.recorder != nullptr) return stream.recorder->copy_out(stream, dst, src, src_offset, bytes);
      stream.begin_call();
      enqueue_out(stream, dst, src, src_offset, bytes);
      if (!waits || stream.has_completed()) return;
      marker = stream.record_wait_marker();
    }
    return stream.wait_for(marker);
  }
  if (src.kind != BP_MEMORY_HOST) {
    return stage_out(stream, function, static_cast<char*>(dst), src, src_offset, bytes);
  }
  const char* const address = static_cast<char*>(src.map());
  stream.wait(BP_WAIT_FOREVER);
  std::memcpy(dst, address + src_offset, bytes);
  count_staged(*stream.device, bytes);
}

}  // namespace backplane::core
