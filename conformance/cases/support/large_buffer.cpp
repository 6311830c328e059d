// SPDX-License-Identifier: Apache-2.0
#include "large_buffer.hpp"

namespace backplane::conformance {

Buffer make_large(Context& context, uint64_t bytes, uint32_t kind) {
  Device& device = context.device();
  if (bytes > device.info().max_buffer_bytes)
    context.not_claimed("the case needs a buffer of {} bytes, the device makes them up to {}", bytes,
                        device.info().max_buffer_bytes);
  bp_buffer_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.kind = kind;
  desc.bytes = bytes;
  ErrorRecord error;
  bp_buffer* handle = nullptr;
  const bp_status status = device->buffer_create(device.get(), &desc, &handle, &error);
  if (status == BP_OUT_OF_MEMORY) context.not_claimed("no room for a buffer of {} bytes", bytes);
  expect_ok(status, error, "buffer_create");
  context.require(handle != nullptr, "buffer_create returned OK with a null output");
  return Buffer(device, handle, bytes);
}

}  // namespace backplane::conformance
