// SPDX-License-Identifier: Apache-2.0
#include "data.hpp"

#include <algorithm>
#include <cstring>

namespace backplane::conformance {

Bytes noise(Context& context, uint64_t count) {
  Bytes bytes(count);
  for (uint64_t at = 0; at < count; at += sizeof(uint64_t)) {
    const uint64_t word = context.random()();
    std::memcpy(bytes.data() + at, &word, std::min<uint64_t>(sizeof(word), count - at));
  }
  return bytes;
}

Words noise_words(Context& context, uint64_t count) {
  Words words(count);
  for (uint32_t& word : words) word = static_cast<uint32_t>(context.random()());
  return words;
}

std::string_view kind_name(uint32_t kind) { return kMemoryKindNames[kind]; }

std::string_view kind_extension(uint32_t kind) {
  constexpr std::string_view names[] = {"", "HOST_MEMORY", "SHARED_MEMORY"};
  return names[kind];
}

void need_kind(Context& context, uint32_t kind) {
  Device& device = context.device();
  if (device.offers(kind)) return;
  bp_buffer_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.kind = kind;
  desc.bytes = 64;
  bp_buffer* buffer = nullptr;
  ErrorRecord error;
  expect_status(device->buffer_create(device.get(), &desc, &buffer, &error), error, "buffer_create", {BP_UNSUPPORTED});
  context.require(buffer == nullptr, "buffer_create failed and gave a buffer");
  context.not_claimed("the device does not offer {} memory, and refuses it", kind_name(kind));
}

}  // namespace backplane::conformance
