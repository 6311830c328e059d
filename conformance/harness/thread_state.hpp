// SPDX-License-Identifier: Apache-2.0
// What a slot must leave as it found it: floating-point control, signal mask, locale, working directory.
#pragma once

#include <csignal>
#include <string>

namespace bp::conformance {

class ThreadState {
 public:
  static ThreadState now();
  // Which part differs from what this state holds, with old and new; empty if none.
  std::string changed_since() const;
  void restore() const;

 private:
  int rounding_ = 0;
  unsigned control_ = 0;  // the bits of the floating-point control register that are not flags
  sigset_t signals_{};
  std::string locale_;
  std::string directory_;
};

}  // namespace bp::conformance
