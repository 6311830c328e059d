// SPDX-License-Identifier: Apache-2.0
// The measured device, which the benchmark may open several times.
#pragma once

#include <optional>
#include <string>

#include "host.hpp"
#include "session.hpp"

namespace tool {

constexpr uint64_t kWaitNs = 600'000'000'000;  // limits every wait of the benchmark

struct TargetOptions {
  std::string plugin;  // path of a library or name of a plugin; its first device is used
  std::string device;  // "plugin:index"; if empty, the library chooses
  // Number of threads of the plugin and of the peers. 0 means every processor that this process may
  // use.
  int threads = 0;
};

class Target {
 public:
  // Throws Failure if `plugin` and `device` are both given. Throws backplane::Error if the plugin cannot be loaded or
  // the device cannot be opened.
  Target(const Session& session, const TargetOptions& options);

  // Opens the device again. The new handle has its own plans, memory and statistics.
  Device open() const;
  const std::string& name() const { return name_; }        // for example "reference:0"
  const std::string& version() const { return version_; }  // version of the plugin
  const bp_device_info& info() const { return info_; }
  int threads() const { return threads_; }
  // Returns whether the plugin accepts a number of threads. Other plugins choose their own number.
  bool takes_threads() const { return takes_threads_; }

 private:
  bp_status try_open(bool with_threads, Device* out, bp_error* error) const;

  Registry registry_;
  TargetOptions options_;
  std::optional<Plugin> plugin_;
  int threads_;
  std::string thread_option_;
  bool takes_threads_ = false;
  std::string name_, version_;
  bp_device_info info_;
};

}  // namespace tool
