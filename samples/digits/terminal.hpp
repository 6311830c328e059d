// SPDX-License-Identifier: Apache-2.0
// The output during a run. Shows a progress bar on a terminal, and prints plain lines otherwise.
#pragma once

#include <fmt/color.h>

#include <cstdint>
#include <string>

#include "training.hpp"

namespace digits {

class Terminal {
 public:
  explicit Terminal(int epochs);
  ~Terminal() { clear_bar(); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  Progress progress();
  void line(const std::string& text);
  // Returns `text` in bold if colour is enabled.
  std::string strong(const std::string& text) const;

 private:
  void draw_bar(double share);
  void clear_bar();

  int epochs_;
  bool is_terminal_;
  bool has_colour_;
  int drawn_ = -1;  // length of the drawn bar in thousandths of its full length, or -1 if there is no bar
};

}  // namespace digits
