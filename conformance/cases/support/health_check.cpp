// SPDX-License-Identifier: Apache-2.0
#include "health_check.hpp"

#include <array>

#include "op_desc.hpp"

namespace backplane::conformance {

void require_healthy(Context& context) {
  Device& device = context.device();
  std::array<uint32_t, 8> data{};
  for (uint32_t& word : data) word = static_cast<uint32_t>(context.random()());
  Buffer from(device, sizeof(data)), to(device, sizeof(data));
  Stream stream(device);
  device.write(from.get(), 0, data.data(), sizeof(data), stream.get());
  const bool computes = claims(device, elementwise(BP_OP_ADD, BP_U32, data.size()));
  if (computes) {
    Runner add(device, elementwise(BP_OP_ADD, BP_U32, data.size()));
    add.enqueue(stream.get(), {{from.get()}, {from.get()}}, {{to.get()}});
  } else {
    stream.copy(to.get(), 0, from.get(), 0, sizeof(data));
  }
  std::array<uint32_t, 8> got{};
  device.read(to.get(), 0, got.data(), sizeof(got), stream.get());
  for (size_t i = 0; i < data.size(); ++i) {
    const uint32_t right = computes ? 2 * data[i] : data[i];
    context.require(got[i] == right, "afterwards the device {} wrongly: {} gave {} instead of {}",
                    computes ? "adds" : "copies", data[i], got[i], right);
  }
}

bool is_text(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      if ((lead < 0x20 && lead != '\n' && lead != '\t') || lead == 0x7F) return false;
      ++i;
      continue;
    }
    const size_t length = lead >= 0xF0 && lead < 0xF5   ? 4
                          : lead >= 0xE0 && lead < 0xF0 ? 3
                          : lead >= 0xC2 && lead < 0xE0 ? 2
                                                        : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (size_t at = 1; at < length; ++at)
      if ((static_cast<unsigned char>(text[i + at]) & 0xC0) != 0x80) return false;
    i += length;
  }
  return true;
}

}  // namespace backplane::conformance
