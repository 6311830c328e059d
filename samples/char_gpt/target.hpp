// SPDX-License-Identifier: Apache-2.0
// The device that a command uses.
#pragma once

#include <backplane/backplane.hpp>

#include <cstdint>
#include <string>

namespace char_gpt {

struct Target {
  // `spec` is a plugin's name or path; a suffix ":INDEX" selects a device. If it is empty, the
  // library chooses. `threads` becomes the plugin's option of that name. A plugin without the
  // option chooses its own number.
  Target(const backplane::Registry& registry, const std::string& spec, int threads, bool native);

  backplane::Device device;
  std::string name;      // "onednn:0, native"
  bool repeats = false;  // true: the device returns the same bits in every run
  uint64_t call_flags = 0;
};

}  // namespace char_gpt
