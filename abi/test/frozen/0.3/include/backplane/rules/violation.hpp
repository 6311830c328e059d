// SPDX-License-Identifier: Apache-2.0
// The exception by which a rule refuses a descriptor.
#pragma once

#include <backplane/base.h>

#include <backplane/rules/text.hpp>
#include <exception>
#include <utility>

namespace backplane::rules {

// A violation of a rule by a descriptor. The message continues a sentence that begins with the
// operator's name.
class Violation : public std::exception {
 public:
  Violation(bp_status status, std::string message) : status_(status), message_(std::move(message)) {}
  bp_status status() const noexcept { return status_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  bp_status status_;
  std::string message_;
};

// Throws INVALID_ARGUMENT, which is only for the defects listed in docs/spec/growth.md. No later
// version permits such a descriptor.
template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void invalid(const Parts&... parts) {
  throw Violation(BP_INVALID_ARGUMENT, text(parts...));
}

// Throws UNSUPPORTED, which is for all other defects, because a later version may accept such a
// descriptor.
template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void unsupported(const Parts&... parts) {
  throw Violation(BP_UNSUPPORTED, text(parts...));
}

}  // namespace backplane::rules
