// SPDX-License-Identifier: Apache-2.0
// Size-checked access to the ABI's extensible structs. There is one function for each role of a
// struct (see base.h).
#pragma once

#include <backplane/kit/error.hpp>

namespace backplane::kit {

// Reads an input struct. Copies the fields that both sides know, and zeroes the fields that the
// caller lacks.
template <class T>
Status read_input(const void* in, uint32_t min_size, const char* name, T& out) {
  out = T{};
  if (in == nullptr) return invalid_argument(name, " is null");
  uint32_t size = 0;
  std::memcpy(&size, in, sizeof(size));
  if (size < min_size) {
    return invalid_argument(name, ".struct_size is ", size, ", at least ", min_size, " is needed: set it to sizeof(",
                            name, ")");
  }
  if (size > BP_STRUCT_LIMIT) {
    return invalid_argument(name, ".struct_size is ", size, ", and no struct is longer than ", BP_STRUCT_LIMIT,
                            ": set it to sizeof(", name, ")");
  }
  const auto* bytes = static_cast<const unsigned char*>(in);
  for (std::size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] != 0) {
      return unsupported(name, " has a field at byte ", i, " that this plugin does not know (it knows ", sizeof(T),
                         " bytes): update the plugin or leave the field zero");
    }
  }
  std::memcpy(&out, in, std::min<std::size_t>(size, sizeof(T)));
  out.struct_size = sizeof(T);
  return {};
}

// Checks that the caller's output struct can be written.
template <class T>
Status check_output(const T* out, uint32_t min_size, const char* name) {
  if (out == nullptr) return invalid_argument(name, " is null");
  if (out->struct_size < min_size) {
    return invalid_argument(name, ".struct_size is ", out->struct_size, ", at least ", min_size,
                            " is needed: set it to sizeof(", name, ")");
  }
  return {};
}

// Writes the fields of an output struct that both sides know. Fields that only the caller knows
// become zero.
template <class T>
void write_output(T* out, const T& value) {
  const uint32_t size = out->struct_size;
  const std::size_t known = std::min<std::size_t>(size, sizeof(T));
  auto* bytes = reinterpret_cast<unsigned char*>(out);
  std::memcpy(bytes + sizeof(size), reinterpret_cast<const unsigned char*>(&value) + sizeof(size),
              known - sizeof(size));
  if (size > known) std::memset(bytes + known, 0, size - known);
}

}  // namespace backplane::kit
