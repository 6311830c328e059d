// SPDX-License-Identifier: Apache-2.0
// The device that a command uses.
#pragma once

#include <backplane/backplane.hpp>

#include <cstdint>
#include <string>

namespace char_gpt {

struct Target {
  // `spec` is a plugin's name or path. A suffix ":INDEX" selects a device of the plugin. If `spec` is empty,
  // the library chooses. `threads` is the value of the plugin's option `threads`. A plugin without this option
  // chooses its own number of threads.
  Target(const backplane::Registry& registry, const std::string& spec, int threads, bool native);

  backplane::Device device;
  std::string name;      // for example "onednn:0, native"
  bool repeats = false;  // whether the device returns the same bits in every run
  uint64_t call_flags = 0;
};

}  // namespace char_gpt
