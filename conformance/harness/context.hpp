// SPDX-License-Identifier: Apache-2.0
// Provides a running case with the plugin, an open device, seeded random numbers, and functions
// that end the case.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>

#include "case.hpp"
#include "plugin.hpp"

namespace backplane::conformance {

// The plugin and device that the cases of one worker share. After a failure the worker abandons the
// plugin and the device, and the next case runs in a new process.
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
  // Returns the plugin that the worker's cases share. The first call loads the plugin.
  Plugin& plugin();
  // Returns the device that the worker's cases share. The first call opens the device.
  Device& device();
  // Closes the device and the plugin, so that the next case opens them again. A case that changes
  // the state of the device calls this function.
  void discard_device() noexcept { session_.close(); }

  // Random generator of the case. Its seed depends only on the run's seed and the case's id, so a
  // repeated case draws the same data.
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

  // Records the ratio of an error to its bound. The report shows the maximum of the ratios that a
  // case records.
  void note_error(double ratio) {
    constexpr double most = 1e300;  // JSON cannot represent infinity
    if (ratio > error_ratio_) error_ratio_ = std::min(ratio, most);
  }
  double error_ratio() const { return error_ratio_; }

 private:
  Session& session_;
  const Case& case_;
  std::mt19937_64 random_;
  double error_ratio_ = -1;  // negative until a ratio is recorded
};

}  // namespace backplane::conformance
