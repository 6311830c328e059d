// SPDX-License-Identifier: Apache-2.0
#include "certify_progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "report/causes.hpp"
#include "table.hpp"

namespace tool {

namespace {

constexpr double bar_interval_s = 0.1;
constexpr double line_interval_s = 5;
constexpr size_t most_causes = 20;   // the rest is in the certificate
constexpr size_t most_reason = 300;  // bytes

size_t columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0 ? size.ws_col : 80;
}

std::string time_text(double seconds) {
  if (seconds < 0) return "?";
  const long whole = std::lround(seconds);
  return whole < 60 ? fmt::format("{} s", whole) : fmt::format("{} min {:02} s", whole / 60, whole % 60);
}

std::string bar_of(double share, size_t width) {
  const auto full = static_cast<size_t>(share * static_cast<double>(width));
  std::string bar;
  for (size_t index = 0; index < width; ++index) bar += index < full ? "█" : "░";
  return bar;
}

}  // namespace

CertifyProgress::CertifyProgress(bool shown) : shown_(shown), terminal_(isatty(STDERR_FILENO) != 0) {}

void CertifyProgress::show(const bp::conformance::Progress& now) {
  if (!shown_) return;
  if (now.result != nullptr && bp::conformance::is_failure(now.result->outcome) &&
      causes_printed_.size() < most_causes &&
      causes_printed_.insert(bp::conformance::cause_of(now.result->message)).second) {
    fmt::print(stderr, "{}{}: {}: {}\n", terminal_ ? "\r\x1b[K" : "", bp::conformance::name_of(now.result->outcome),
               now.latest->id, printable(now.result->message.substr(0, most_reason)));
  }
  if (now.seconds - latest_ < (terminal_ ? bar_interval_s : line_interval_s)) return;
  latest_ = now.seconds;
  const double share = now.total == 0 ? 1 : static_cast<double>(now.done) / static_cast<double>(now.total);
  const std::string counts = fmt::format("{} of {} cases, {} failed, {} not claimed, {} left", now.done, now.total,
                                         now.failures, now.absent, time_text(now.seconds_left));
  if (!terminal_) {
    fmt::print(stderr, "{:3.0f} % {}\n", 100 * share, counts);
  } else {
    const size_t width = columns() > counts.size() + 12 ? std::min<size_t>(columns() - counts.size() - 8, 40) : 0;
    fmt::print(stderr, "\r{} {:3.0f} % {}\x1b[K", bar_of(share, width), 100 * share, counts);
  }
  std::fflush(stderr);
}

void CertifyProgress::end() {
  if (shown_ && terminal_) fmt::print(stderr, "\r\x1b[K");
}

}  // namespace tool
