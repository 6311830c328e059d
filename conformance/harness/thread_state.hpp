// SPDX-License-Identifier: Apache-2.0
// The state that a slot must not change: floating-point control, signal mask and handlers, locale,
// working directory.
#pragma once

#include <array>
#include <clocale>
#include <csignal>
#include <string>

namespace backplane::conformance {

class ThreadState {
 public:
  static ThreadState now();
  // The part of the current state that differs, with old and new value; empty if none.
  std::string changed_since() const;
  void restore() const;

 private:
  bool same_handler(int signal, const ThreadState& other) const;

  int rounding_ = 0;
  unsigned control_ = 0;  // the floating-point control register without its flags
  sigset_t signals_{};
  std::array<struct sigaction, 32> handlers_{};  // by signal
  std::string locale_;
  locale_t thread_locale_{};
  std::string directory_;
};

}  // namespace backplane::conformance
