// SPDX-License-Identifier: Apache-2.0
// Checks the arguments of copies, and enqueues copies through the plugin.
#include "memory/transfer_enqueue.hpp"

#include "loading/plugin_call.hpp"

namespace backplane::core::transfer {

void require_flags(const char* function, uint32_t flags, uint32_t known) {
  if ((flags & ~known) == 0) return;
  throw Error(BP_UNSUPPORTED, "{}: flags {:#x} has bits that it does not know; it knows {:#x}", function, flags, known);
}

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

void require_target(const char* function, const Buffer& buffer, uint64_t offset, uint64_t bytes) {
  require_inside(function, "dst", buffer, offset, bytes);
  if (!buffer.read_only) return;
  throw Error(BP_INVALID_ARGUMENT, "{}: dst is read-only memory of {}; copy to another buffer", function,
              buffer.device->name);
}

void overlap(const char* function, uint64_t bytes, uint64_t src_offset, uint64_t dst_offset) {
  throw Error(BP_INVALID_ARGUMENT,
              "{}: source and target overlap: {} bytes from offset {} to offset {} of one memory; copy through another "
              "buffer",
              function, bytes, src_offset, dst_offset);
}

void both_host(const char* function, uint64_t bytes) {
  throw Error(
      BP_INVALID_ARGUMENT,
      "{}: both buffers are HOST memory, which no device copies; wait for the stream, map them and copy {} bytes "
      "yourself",
      function, bytes);
}

void check_enqueue(Stream& stream, const char* slot, bp_status status, const bp_error& error) {
  stream.count_enqueue(status);
  check(*stream.device, slot, status, error);
}

void enqueue_copy(Stream& stream, bp_buffer* dst, uint64_t dst_offset, bp_buffer* src, uint64_t src_offset,
                  uint64_t bytes) {
  bp_error error = fresh_error();
  const bp_status status =
      stream.api->copy(stream.device_handle, stream.handle, dst, dst_offset, src, src_offset, bytes, &error);
  check_enqueue(stream, "copy", status, error);
}

void enqueue_in(Stream& stream, Buffer& dst, uint64_t dst_offset, const void* src, uint64_t bytes) {
  bp_error error = fresh_error();
  const bp_status status = stream.api->copy_in(stream.device_handle, stream.handle, dst.plugin_buffer,
                                               dst.plugin_offset + dst_offset, src, bytes, &error);
  check_enqueue(stream, "copy_in", status, error);
}

void enqueue_out(Stream& stream, void* dst, Buffer& src, uint64_t src_offset, uint64_t bytes) {
  bp_error error = fresh_error();
  const bp_status status = stream.api->copy_out(stream.device_handle, stream.handle, dst, src.plugin_buffer,
                                                src.plugin_offset + src_offset, bytes, &error);
  stream.count_enqueue(status);
  // wait() throws the reason why the stream failed.
  if (status == BP_EXECUTION_FAILED) stream.wait(BP_WAIT_FOREVER);
  check(*stream.device, "copy_out", status, error);
}

}  // namespace backplane::core::transfer
