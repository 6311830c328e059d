// SPDX-License-Identifier: Apache-2.0
#include "bundle.hpp"

#include <algorithm>
#include <cstring>

namespace backplane::hip::test_driver {

std::string architecture() { return gpu_host::test_driver::setting("TEST_DRIVER_ARCHITECTURE", "gfx90a"); }

Bundle read_bundle(const void* image) {
  constexpr std::string_view kMagic = "__CLANG_OFFLOAD_BUNDLE__";
  const char* at = static_cast<const char*>(image);
  if (std::memcmp(at, kMagic.data(), kMagic.size()) != 0) return {};
  at += kMagic.size();
  const auto take = [&] {
    uint64_t value = 0;
    std::memcpy(&value, at, sizeof(value));
    at += sizeof(value);
    return value;
  };
  uint64_t end = 0;
  Bundle out;
  for (uint64_t count = take(); count > 0; --count) {
    const uint64_t offset = take(), bytes = take(), length = take();
    if (bytes != 0 && std::string_view(at, length).ends_with("--" + architecture())) out.has_code = true;
    at += length;
    end = std::max(end, offset + bytes);
  }
  out.bytes = {static_cast<const std::byte*>(image), end};
  return out;
}

}  // namespace backplane::hip::test_driver
