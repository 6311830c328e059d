// SPDX-License-Identifier: Apache-2.0
// Captures the state that a slot must not change: floating-point control, signal mask and handlers,
// locale, and working directory.
#pragma once

#include <array>
#include <clocale>
#include <csignal>
#include <string>

namespace backplane::conformance {

class ThreadState {
 public:
  static ThreadState now();
  // Describes the first changed part of the state, with the old and new values if possible. Returns
  // an empty string if nothing has changed.
  std::string changed_since() const;
  void restore() const;

 private:
  bool same_handler(int signal, const ThreadState& other) const;

  int rounding_ = 0;
  unsigned control_ = 0;  // the floating-point control register without its exception flags
  sigset_t signals_{};
  std::array<struct sigaction, 32> handlers_{};  // indexed by signal number
  std::string locale_;
  locale_t thread_locale_{};
  std::string directory_;
};

}  // namespace backplane::conformance
