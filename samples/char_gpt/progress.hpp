// SPDX-License-Identifier: Apache-2.0
// Shows a progress bar on a terminal. If the output is not a terminal, prints only the lines.
#pragma once

#include <string>

namespace char_gpt {

class Progress {
 public:
  Progress();
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(double share, const std::string& note);  // `share` is from 0 to 1
  void line(const std::string& text);                // prints above the bar and flushes

 private:
  void clear();

  bool is_terminal_;
  bool is_drawn_ = false;
};

}  // namespace char_gpt
