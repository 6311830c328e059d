// SPDX-License-Identifier: Apache-2.0
// Helper functions that generate, transfer and compare test data.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "harness/context.hpp"

namespace backplane::conformance {

using Bytes = std::vector<unsigned char>;
using Words = std::vector<uint32_t>;

Bytes noise(Context& context, uint64_t count);
Words noise_words(Context& context, uint64_t count);

template <typename T>
void upload(Buffer& buffer, const std::vector<T>& values, uint64_t offset = 0) {
  buffer.device().write(buffer.get(), offset, values.data(), values.size() * sizeof(T));
}
template <typename T>
std::vector<T> download(const Buffer& buffer, uint64_t count, uint64_t offset = 0) {
  std::vector<T> values(count);
  buffer.device().read(buffer.get(), offset, values.data(), count * sizeof(T));
  return values;
}

// Fails the case at the first element that differs. An example of a message is "WHAT: element 17 of
// 64 is 0x21, expected 0x22".
template <typename T>
void require_same(Context& context, const std::vector<T>& got, const std::vector<T>& expected, std::string_view what) {
  context.require(got.size() == expected.size(), "{}: {} elements, expected {}", what, got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    context.require(got[i] == expected[i], "{}: element {} of {} is {:#x}, expected {:#x}", what, i, got.size(), got[i],
                    expected[i]);
}

// Returns "device", "host" or "shared".
std::string_view kind_name(uint32_t kind);
// Ends the case as not claimed if the device does not offer memory of `kind`.
void need_kind(Context& context, uint32_t kind);
// Returns the extension of cases that use memory of `kind`, or "" for DEVICE memory.
std::string_view kind_extension(uint32_t kind);

}  // namespace backplane::conformance
