// SPDX-License-Identifier: Apache-2.0
// What is measured: a device of a plugin, opened as often as a case wants a fresh one.
#pragma once

#include <optional>
#include <string>

#include "host.hpp"
#include "session.hpp"

namespace tool {

struct TargetOptions {
  std::string plugin;  // a library's path or a plugin's name; its first device
  std::string device;  // plugin:index; empty: as the library chooses
  int threads = 0;     // of the plugin and of the peers; 0: each processor that this process may use
};

class Target {
 public:
  // Throws Failure where both are named, and what loading and opening throw.
  Target(const Session& session, const TargetOptions& options);

  // A device opened anew: plans, memory and statistics of its own.
  Device open() const;
  const std::string& name() const { return name_; }        // "reference:0"
  const std::string& version() const { return version_; }  // of the plugin
  const bp_device_info& info() const { return info_; }
  int threads() const { return threads_; }
  // Whether the plugin takes the number of threads; one that does not runs with as many as it likes.
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
