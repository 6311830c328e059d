// SPDX-License-Identifier: Apache-2.0
// The exception by which a rule refuses a descriptor.
#pragma once

#include <backplane/base.h>

#include <backplane/rules/text.hpp>
#include <exception>
#include <utility>

namespace backplane::rules {

// A descriptor violates a rule. The message continues after the operator's name.
class Violation : public std::exception {
 public:
  Violation(bp_status status, std::string message) : status_(status), message_(std::move(message)) {}
  bp_status status() const noexcept { return status_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  bp_status status_;
  std::string message_;
};

// Throws INVALID_ARGUMENT, only for the closed list of the growth rules: no later version permits
// it.
template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void invalid(const Parts&... parts) {
  throw Violation(BP_INVALID_ARGUMENT, text(parts...));
}

// Throws UNSUPPORTED, for everything else that is not accepted: a later version may accept it.
template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void unsupported(const Parts&... parts) {
  throw Violation(BP_UNSUPPORTED, text(parts...));
}

}  // namespace backplane::rules
