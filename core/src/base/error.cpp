// SPDX-License-Identifier: Apache-2.0
// Fills error records, truncates messages at a character boundary, and forwards plugin errors.
#include "base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace backplane::core {

namespace {
// Returns the length of the longest prefix of at most `limit` bytes that does not cut a UTF-8
// character.
size_t whole_characters(const char* text, size_t length, size_t limit) noexcept {
  if (length <= limit) return length;
  size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;
  return end;
}
}  // namespace

void Error::fill(bp_status status, fmt::string_view format, fmt::format_args args) noexcept {
  record_ = fresh_error();
  record_.status = status;
  try {
    finish(fmt::vformat_to_n(record_.message, sizeof(record_.message) - 1, format, args).size);
  } catch (...) {
    finish(0);
  }
}

void Error::finish(size_t wanted) noexcept {
  const size_t capacity = sizeof(record_.message) - 1;
  size_t length = std::min(wanted, capacity);
  if (wanted > capacity) {
    while (length > 0 && (static_cast<unsigned char>(record_.message[length - 1]) & 0xC0u) == 0x80u) --length;
    if (length > 0 && (static_cast<unsigned char>(record_.message[length - 1]) & 0x80u) != 0) --length;
  }
  record_.message[length] = '\0';
  record_.message_length = static_cast<uint32_t>(length);
}

Error Error::from_plugin(bp_status status, const bp_error& reported, const char* context) noexcept {
  const size_t limit = sizeof(reported.message) - 1;
  const size_t length = std::min<size_t>(reported.message_length, limit);
  const std::string_view message(reported.message, strnlen(reported.message, length));
  Error error(known_status(status), "{}: {}", context,
              message.empty() ? std::string_view("the plugin gave no message") : message);
  error.record_.vendor_code = reported.vendor_code;
  error.record_.op = reported.op;
  return error;
}

bp_status Error::write(bp_error* error) const noexcept {
  if (error != nullptr && error->struct_size >= BP_ERROR_MIN_SIZE) {
    const uint32_t size = error->struct_size;
    const size_t shared = std::min<size_t>(size, sizeof(record_));
    std::memcpy(error, &record_, shared);
    std::memset(reinterpret_cast<char*>(error) + shared, 0, size - shared);
    error->struct_size = size;
  }
  return record_.status;
}

bp_status write_error(bp_error* error, bp_status status, const char* message) noexcept {
  if (error != nullptr && error->struct_size >= BP_ERROR_MIN_SIZE) {
    const uint32_t size = error->struct_size;
    std::memset(error, 0, size);
    error->struct_size = size;
    error->status = status;
    const size_t length = whole_characters(message, std::strlen(message), sizeof(error->message) - 1);
    std::memcpy(error->message, message, length);
    error->message_length = static_cast<uint32_t>(length);
  }
  return status;
}

}  // namespace backplane::core
