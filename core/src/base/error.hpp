// SPDX-License-Identifier: Apache-2.0
// Error handling in core. Internal code throws Error. At the C boundary, `guard` converts an Error
// to a status and fills the caller's bp_error.
#pragma once

#include <backplane/base.h>
#include <fmt/core.h>

#include <exception>
#include <new>
#include <utility>

namespace backplane::core {

// A status and its message. The message buffer has a fixed size, so throwing an Error allocates no
// memory for the message.
class Error : public std::exception {
 public:
  template <class... Args>
  Error(bp_status status, fmt::format_string<Args...> format, Args&&... args) noexcept {
    fill(status, format, fmt::make_format_args(args...));
  }

  // Wraps a plugin's error and prefixes its message with `context`.
  static Error from_plugin(bp_status status, const bp_error& reported, const char* context) noexcept;

  const char* what() const noexcept override { return record_.message; }
  bp_status status() const noexcept { return record_.status; }
  Error& with_op(uint32_t op) noexcept {
    record_.op = op;
    return *this;
  }
  // Fills the caller's bp_error, up to its struct_size, and returns the status.
  bp_status write(bp_error* error) const noexcept;

 private:
  void fill(bp_status status, fmt::string_view format, fmt::format_args args) noexcept;
  void finish(size_t wanted) noexcept;
  bp_error record_;
};

// Returns an empty bp_error to pass to a plugin call.
inline bp_error fresh_error() noexcept {
  bp_error error;
  error.struct_size = sizeof(error);
  error.status = BP_OK;
  error.vendor_code = 0;
  error.op = 0;
  error.message_length = 0;
  error.message[0] = '\0';
  return error;
}

// Returns `status`, or INTERNAL if this library does not know `status`.
inline bp_status known_status(bp_status status) noexcept {
  return status >= BP_OK && status <= BP_EXECUTION_FAILED ? status : BP_INTERNAL;
}

bp_status write_error(bp_error* error, bp_status status, const char* message) noexcept;

// Runs `body` at the C boundary. Converts any exception to a status and fills `error`.
template <class Body>
bp_status guard(bp_error* error, Body&& body) noexcept {
  try {
    body();
    return BP_OK;
  } catch (const Error& failure) {
    return failure.write(error);
  } catch (const std::bad_alloc&) {
    return write_error(error, BP_OUT_OF_MEMORY, "backplane: host memory is exhausted; free some and call again");
  } catch (const std::exception& failure) {
    return write_error(error, BP_INTERNAL, failure.what());
  } catch (...) {
    return write_error(error, BP_INTERNAL, "backplane: an unknown exception; please report it");
  }
}

}  // namespace backplane::core
