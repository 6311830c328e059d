// SPDX-License-Identifier: Apache-2.0
// Reads input structs and writes output structs whose size may differ from the size in this
// library.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/error.hpp"

namespace backplane::core {

// Returns true if a struct of `size` bytes has a nonzero byte after its first `known` bytes.
inline bool has_unknown_tail(const void* data, size_t size, size_t known) noexcept {
  const auto* bytes = static_cast<const unsigned char*>(data);
  return size > known && std::any_of(bytes + known, bytes + size, [](unsigned char byte) { return byte != 0; });
}

// Throws INVALID_ARGUMENT if `size` is below `min_size` or above BP_STRUCT_LIMIT.
inline void check_struct_size(uint32_t size, size_t min_size, const char* function, const char* type) {
  if (size < min_size) {
    throw Error(BP_INVALID_ARGUMENT, "{}: {}.struct_size is {}, less than its minimum of {}; set it to sizeof({})",
                function, type, size, min_size, type);
  }
  if (size > BP_STRUCT_LIMIT) {
    throw Error(BP_INVALID_ARGUMENT, "{}: {}.struct_size is {}, and no struct is longer than {}; set it to sizeof({})",
                function, type, size, BP_STRUCT_LIMIT, type);
  }
}

// Copies an input struct. Fields that the caller's struct lacks become zero. Throws
// INVALID_ARGUMENT if `input` is null or has an illegal struct_size. Throws UNSUPPORTED if bytes
// that this library does not know are nonzero.
template <class T>
T read_input(const T* input, size_t min_size, const char* function, const char* type) {
  if (input == nullptr) throw Error(BP_INVALID_ARGUMENT, "{}: the {} is null; pass one", function, type);
  const uint32_t size = input->struct_size;
  check_struct_size(size, min_size, function, type);
  if (has_unknown_tail(input, size, sizeof(T))) {
    throw Error(BP_UNSUPPORTED, "{}: {} has non-zero bytes beyond the {} that this library knows; update libbackplane",
                function, type, sizeof(T));
  }
  T copy{};
  std::memcpy(&copy, input, std::min<size_t>(size, sizeof(T)));
  copy.struct_size = sizeof(T);
  return copy;
}

// Writes `value` to an output struct of the caller's size, and zeroes the bytes beyond `value`.
template <class T>
void write_output(T* output, const T& value, const char* function, const char* type, size_t min_size = 8) {
  if (output == nullptr) throw Error(BP_INVALID_ARGUMENT, "{}: the {} is null; pass one", function, type);
  const uint32_t size = output->struct_size;
  check_struct_size(size, min_size, function, type);
  const size_t shared = std::min<size_t>(size, sizeof(T));
  std::memcpy(static_cast<void*>(output), &value, shared);
  std::memset(reinterpret_cast<char*>(output) + shared, 0, size - shared);
  output->struct_size = size;
}

// Copies text into a zeroed field of fixed size. Truncates the text at a character boundary.
template <size_t N>
void copy_text(char (&field)[N], std::string_view text) noexcept {
  size_t length = std::min(text.size(), N - 1);
  if (length < text.size()) {
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xC0u) == 0x80u) --length;
  }
  std::memcpy(field, text.data(), length);
}

}  // namespace backplane::core
