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

constexpr double kBarIntervalS = 0.1;
constexpr double kLineIntervalS = 5;
constexpr double kQuietIntervalS = 60;
// Maximum number of printed causes; the certificate contains all causes.
constexpr size_t kMostPrintedCauses = 20;
constexpr size_t kMostPrintedReason = 300;  // maximum length of a printed reason in bytes

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

double interval_of(CertifyProgress::Manner manner) {
  switch (manner) {
    case CertifyProgress::Manner::bar:
      return kBarIntervalS;
    case CertifyProgress::Manner::lines:
      return kLineIntervalS;
    case CertifyProgress::Manner::quiet:
      return kQuietIntervalS;
  }
  return kLineIntervalS;
}

// Returns text such as "; numeric.exp.f32.tail for 12 s, in plan_create for 11 s", or "" if no case
// is slow.
std::string slow_text(const backplane::conformance::Progress& now) {
  if (now.slow == nullptr) return "";
  return fmt::format("; {} for {}{}", now.slow->id, time_text(now.slow_seconds),
                     now.slot.empty() ? "" : fmt::format(", in {} for {}", now.slot, time_text(now.slot_seconds)));
}

}  // namespace

// A quiet run prints its first line after one interval. Other runs print their first line at once.
CertifyProgress::CertifyProgress(std::FILE* file, Manner manner)
    : file_(file), manner_(manner), latest_(manner == Manner::quiet ? 0 : -kLineIntervalS) {}

CertifyProgress::CertifyProgress(bool quiet)
    : CertifyProgress(stderr, quiet                        ? Manner::quiet
                              : isatty(STDERR_FILENO) != 0 ? Manner::bar
                                                           : Manner::lines) {}

void CertifyProgress::show(const backplane::conformance::Progress& now) {
  const bool bar = manner_ == Manner::bar;
  if (manner_ != Manner::quiet && now.result != nullptr && backplane::conformance::is_failure(now.result->outcome) &&
      causes_printed_.size() < kMostPrintedCauses &&
      causes_printed_.insert(backplane::conformance::cause_of(now.result->message)).second) {
    fmt::print(file_, "{}{}: {}: {}\n", bar ? "\r\x1b[K" : "", backplane::conformance::name_of(now.result->outcome),
               now.latest->id, printable(now.result->message.substr(0, kMostPrintedReason)));
  }
  if (now.seconds - latest_ < interval_of(manner_)) return;
  latest_ = now.seconds;
  const double share = now.total == 0 ? 1 : static_cast<double>(now.done) / static_cast<double>(now.total);
  std::string counts = fmt::format("{} of {} cases, {} failed, {} not claimed, {} left", now.done, now.total,
                                   now.failures, now.absent, time_text(now.seconds_left));
  if (!bar) {
    fmt::print(file_, "{:3.0f} % {}{}\n", 100 * share, counts, slow_text(now));
  } else {
    const size_t width = columns() > counts.size() + 12 ? std::min<size_t>(columns() - counts.size() - 8, 40) : 0;
    // If a case is slow, text about the case replaces the bar. Text that does not fit is cut, so
    // that the output remains one line.
    const std::string slow = slow_text(now).substr(0, columns() - std::min(columns(), counts.size() + 8));
    fmt::print(file_, "\r{} {:3.0f} % {}{}\x1b[K", slow.empty() ? bar_of(share, width) : "", 100 * share, counts, slow);
  }
  std::fflush(file_);
}

void CertifyProgress::end() {
  if (manner_ == Manner::bar) fmt::print(file_, "\r\x1b[K");
}

}  // namespace tool
