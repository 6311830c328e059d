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
  // Describes a part of the state that has changed, with its old and new value if possible; empty
  // if none has.
  std::string changed_since() const;
  void restore() const;

 private:
  bool same_handler(int signal, const ThreadState& other) const;

  int rounding_ = 0;
  unsigned control_ = 0;  // the floating-point control register without its exception flags
  sigset_t signals_{};
  std::array<struct sigaction, 32> handlers_{};  // by signal number
  std::string locale_;
  locale_t thread_locale_{};
  std::string directory_;
};

}  // namespace backplane::conformance
