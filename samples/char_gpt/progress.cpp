// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace char_gpt {

Progress::Progress() : is_terminal_(isatty(STDOUT_FILENO) != 0) {}

void Progress::clear() {
  if (is_drawn_) fmt::print("\r\033[K");
  is_drawn_ = false;
}

void Progress::show(double share, const std::string& note) {
  if (!is_terminal_) return;
  constexpr int width = 30;
  const int full = static_cast<int>(std::clamp(share, 0.0, 1.0) * width);
  std::string bar;
  for (int i = 0; i < width; ++i) bar += i < full ? "━" : "─";
  fmt::print("\r{} {:3.0f} %  {}\033[K", bar, share * 100, note);
  std::fflush(stdout);
  is_drawn_ = true;
}

void Progress::line(const std::string& text) {
  clear();
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

}  // namespace char_gpt
