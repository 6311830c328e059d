// SPDX-License-Identifier: Apache-2.0
// Draws the progress bar. Uses colour only if the output is a terminal and the variable NO_COLOR is not set.
#include "terminal.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace digits {
namespace {

constexpr int kBarWidth = 40;

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value && *value;
}

}  // namespace

Terminal::Terminal(int epochs)
    : epochs_(epochs), is_terminal_(isatty(STDOUT_FILENO) != 0), has_colour_(is_terminal_ && !is_set("NO_COLOR")) {}

std::string Terminal::strong(const std::string& text) const {
  return has_colour_ ? fmt::format(fmt::emphasis::bold | fg(fmt::terminal_color::green), "{}", text) : text;
}

void Terminal::clear_bar() {
  if (drawn_ >= 0) fmt::print("\r\033[K");
  drawn_ = -1;
}

void Terminal::draw_bar(double share) {
  const int per_mille = static_cast<int>(share * 1000);
  if (!is_terminal_ || per_mille == drawn_) return;
  drawn_ = per_mille;
  const int full = static_cast<int>(share * kBarWidth);
  std::string done, remaining;
  for (int i = 0; i < kBarWidth; ++i) (i < full ? done : remaining) += i < full ? "━" : "─";
  fmt::print("\r{}{} {:3.0f} %\033[K", strong(done), remaining, share * 100);
  std::fflush(stdout);
}

void Terminal::line(const std::string& text) {
  clear_bar();
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

Progress Terminal::progress() {
  Progress progress;
  progress.batch = [this](int epoch, int64_t images, int64_t of) {
    draw_bar((epoch + static_cast<double>(images) / static_cast<double>(of)) / epochs_);
  };
  progress.epoch = [this](int epoch, const Epoch& now) {
    line(fmt::format("epoch {:3}/{}   train: loss {:.4f}, {:6.2f} %   test: loss {:.4f}, {}", epoch + 1, epochs_,
                     now.train.loss, now.train.correct * 100, now.test.loss,
                     strong(fmt::format("{:6.2f} %", now.test.correct * 100))));
    if (epoch + 1 < epochs_) draw_bar((epoch + 1.0) / epochs_);
  };
  return progress;
}

}  // namespace digits
