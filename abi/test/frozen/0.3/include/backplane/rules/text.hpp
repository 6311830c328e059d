// SPDX-License-Identifier: Apache-2.0
// Builds messages from parts, without a formatting library.
#pragma once

#include <charconv>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace backplane::rules {

namespace detail {
inline void append(std::string& out, std::string_view part) { out.append(part); }
inline void append(std::string& out, char part) { out.push_back(part); }
template <class T>
  requires std::is_arithmetic_v<T>
void append(std::string& out, T part) {
  if constexpr (std::is_floating_point_v<T>) {
    char digits[32];  // to_chars writes the shortest text that parses to the same number
    out.append(digits, std::to_chars(digits, digits + sizeof(digits), part).ptr);
  } else {
    out.append(std::to_string(part));
  }
}
}  // namespace detail

// Concatenates strings and numbers.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::string out;
  (detail::append(out, parts), ...);
  return out;
}

// Formats values like "2,3,4".
inline std::string list_text(std::span<const int64_t> values) {
  std::string out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != 0) out += ',';
    out += std::to_string(values[i]);
  }
  return out;
}

// Formats a mask like "0b101".
inline std::string mask_text(uint64_t mask) {
  char digits[64];
  return "0b" + std::string(digits, std::to_chars(digits, digits + sizeof(digits), mask, 2).ptr);
}

}  // namespace backplane::rules
