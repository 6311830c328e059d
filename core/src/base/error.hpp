// SPDX-License-Identifier: Apache-2.0
// How core fails: inside, an Error is thrown; at the C boundary `guard` turns it into a status and the caller's record.
#pragma once

#include <backplane/base.h>
#include <fmt/core.h>

#include <exception>
#include <new>
#include <utility>

namespace backplane::core {

// A status with its message, formatted into fixed storage so that failing needs no heap.
class Error : public std::exception {
 public:
  template <class... Args>
  Error(bp_status status, fmt::format_string<Args...> format, Args&&... args) noexcept {
    fill(status, format, fmt::make_format_args(args...));
  }

  // Passes on what a plugin reported, with `context` ("who: what") in front of its message.
  static Error from_plugin(bp_status status, const bp_error& reported, const char* context) noexcept;

  const char* what() const noexcept override { return record_.message; }
  bp_status status() const noexcept { return record_.status; }
  Error& with_op(uint32_t op) noexcept {
    record_.op = op;
    return *this;
  }
  // Fills the caller's record, size-guarded, and returns the status.
  bp_status write(bp_error* error) const noexcept;

 private:
  void fill(bp_status status, fmt::string_view format, fmt::format_args args) noexcept;
  void finish(size_t wanted) noexcept;
  bp_error record_;
};

// An empty record, ready for a plugin call.
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

// A status that this library does not know counts as INTERNAL.
inline bp_status known_status(bp_status status) noexcept {
  return status >= BP_OK && status <= BP_EXECUTION_FAILED ? status : BP_INTERNAL;
}

bp_status write_error(bp_error* error, bp_status status, const char* message) noexcept;

// The C boundary: runs `body`, and turns whatever it throws into a status.
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
