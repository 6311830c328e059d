// SPDX-License-Identifier: Apache-2.0
// What a running case uses: the plugin, an open device, seeded random numbers, and functions that
// end the case.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>

#include "case.hpp"
#include "plugin.hpp"

namespace backplane::conformance {

// The plugin and device that the cases of one worker share. After a failure both are abandoned, and
// the next case runs in a new process.
struct Session {
  std::string path;
  uint32_t device_index = 0;
  uint64_t seed = 0;
  std::unique_ptr<Plugin> plugin;
  std::unique_ptr<Device> device;

  void close() noexcept;
  void abandon() noexcept;  // forgets the plugin and the device without releasing them
};

class Context {
 public:
  Context(Session& session, const Case& which);

  const Case& which() const { return case_; }
  const std::string& path() const { return session_.path; }
  uint32_t device_index() const { return session_.device_index; }
  Plugin& plugin();  // loaded and queried; shared with the other cases of the worker
  Device& device();  // open; shared with the other cases of the worker
  // For a case that changes the state of the device: the next case opens a new device.
  void discard_device() noexcept { session_.close(); }

  // Seeded only by the run's seed and the case's id, so that a case always draws the same data.
  std::mt19937_64& random() { return random_; }
  uint64_t below(uint64_t limit) { return random_() % limit; }

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
    end_case(Outcome::fail, fmt::format(text, std::forward<Args>(args)...));
  }
  template <typename... Args>
  [[noreturn]] void leaked(fmt::format_string<Args...> text, Args&&... args) {
    end_case(Outcome::leak, fmt::format(text, std::forward<Args>(args)...));
  }
  template <typename... Args>
  [[noreturn]] void not_claimed(fmt::format_string<Args...> text, Args&&... args) {
    end_case(Outcome::not_claimed, fmt::format(text, std::forward<Args>(args)...));
  }
  template <typename... Args>
  [[noreturn]] void suspect(fmt::format_string<Args...> text, Args&&... args) {
    end_case(Outcome::suspect, fmt::format(text, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void require(bool holds, fmt::format_string<Args...> text, Args&&... args) {
    if (!holds) [[unlikely]]
      fail(text, std::forward<Args>(args)...);
  }

  // Records the maximum ratio of an error to its bound, for the distribution in the report.
  void note_error(double ratio) {
    constexpr double most = 1e300;  // the report cannot represent infinity
    if (ratio > error_ratio_) error_ratio_ = std::min(ratio, most);
  }
  double error_ratio() const { return error_ratio_; }

 private:
  Session& session_;
  const Case& case_;
  std::mt19937_64 random_;
  double error_ratio_ = -1;  // negative: no ratio was recorded
};

}  // namespace backplane::conformance
