// SPDX-License-Identifier: Apache-2.0
// Status and Result for plugin authors, the error record, and fence(), which stops exceptions at
// the C boundary.
#pragma once

#include <backplane/plugin.h>

#include <algorithm>
#include <backplane/rules/text.hpp>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace backplane::kit {

using rules::text;  // concatenates strings and numbers

// A status code and, unless the code is OK, a message for the user. An OK status never allocates.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(bp_status code, std::string message, int64_t vendor_code = 0)
      : code_(code), vendor_code_(vendor_code), message_(std::move(message)) {}

  bool ok() const { return code_ == BP_OK; }
  bp_status code() const { return code_; }
  int64_t vendor_code() const { return vendor_code_; }
  uint32_t op() const { return op_; }
  const std::string& message() const { return message_; }

  Status&& with_op(uint32_t op) && {
    op_ = op;
    return std::move(*this);
  }

 private:
  bp_status code_ = BP_OK;
  uint32_t op_ = 0;
  int64_t vendor_code_ = 0;
  std::string message_;
};

template <class... Parts>
Status invalid_argument(const Parts&... parts) {
  return {BP_INVALID_ARGUMENT, text(parts...)};
}
template <class... Parts>
Status unsupported(const Parts&... parts) {
  return {BP_UNSUPPORTED, text(parts...)};
}
template <class... Parts>
Status out_of_memory(const Parts&... parts) {
  return {BP_OUT_OF_MEMORY, text(parts...)};
}
inline Status timed_out() { return {BP_TIMEOUT, {}}; }

// A value, or the status that explains why there is no value.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T given) : value_(std::move(given)) {}
  Result(Status status) : status_(std::move(status)) {}

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  T& value() { return value_; }

 private:
  T value_{};
  Status status_;
};

// Returns the number of bytes of `message` that fit into `room` without cutting a UTF-8 sequence.
inline std::size_t utf8_prefix(std::string_view message, std::size_t room) {
  if (message.size() <= room) return message.size();
  std::size_t length = room;
  while (length > 0 && (static_cast<unsigned char>(message[length]) & 0xC0u) == 0x80u) --length;
  return length;
}

// Fills the caller's error record on failure, and returns the code. OK, NOT_READY and TIMEOUT leave
// the record unchanged.
[[gnu::noinline]] inline bp_status report(bp_error* error, bp_status code, std::string_view message, uint32_t op = 0,
                                          int64_t vendor_code = 0) noexcept {
  if (code == BP_OK || code == BP_NOT_READY || code == BP_TIMEOUT) return code;
  if (error == nullptr || error->struct_size < BP_ERROR_MIN_SIZE) return code;
  const std::size_t length = utf8_prefix(message, sizeof(error->message) - 1);
  error->status = code;
  error->vendor_code = vendor_code;
  error->op = op;
  error->message_length = static_cast<uint32_t>(length);
  std::memcpy(error->message, message.data(), length);
  error->message[length] = '\0';
  if (error->struct_size > sizeof(bp_error))
    std::memset(reinterpret_cast<char*>(error) + sizeof(bp_error), 0, error->struct_size - sizeof(bp_error));
  return code;
}

// Runs `body`, which returns a Status. Converts the Status, or an exception, to a status code and
// an error record.
template <class Body>
bp_status fence(bp_error* error, Body&& body) noexcept {
  try {
    const Status status = body();
    if (status.ok()) return BP_OK;
    return report(error, status.code(), status.message(), status.op(), status.vendor_code());
  } catch (const std::bad_alloc&) {
    return report(error, BP_OUT_OF_MEMORY, "plugin: host memory ran out; free some and try again");
  } catch (const std::exception& failure) {
    return report(error, BP_INTERNAL, failure.what());
  } catch (...) {
    return report(error, BP_INTERNAL, "plugin: an exception of unknown type; report it to the plugin's vendor");
  }
}

// Like fence, for a slot that stores a new object in *out. Returns INVALID_ARGUMENT if `owner`, the
// handle that the slot received, or `out` is null. *out is null after every failure. `body` returns
// Result<Value*>.
template <class Owner, class Handle, class Body>
bp_status fence_out(const Owner* owner, Handle** out, bp_error* error, Body&& body) noexcept {
  if (out != nullptr) *out = nullptr;
  if (owner == nullptr) return report(error, BP_INVALID_ARGUMENT, "plugin: the handle is null");
  if (out == nullptr) return report(error, BP_INVALID_ARGUMENT, "plugin: the pointer for the result is null");
  return fence(error, [&]() -> Status {
    auto result = body();
    if (!result.ok()) return result.status();
    *out = reinterpret_cast<Handle*>(result.value());
    return {};
  });
}

}  // namespace backplane::kit
