// SPDX-License-Identifier: Apache-2.0
// The device that a command names.
#pragma once

#include <backplane/backplane.hpp>

#include <cstdint>
#include <string>

namespace char_gpt {

struct Target {
  // `spec`: a plugin by name or path, ":INDEX" behind it picks a device; empty: as the library chooses. `threads` is handed to
  // the plugin as its option of that name; a plugin without it runs with as many as it likes.
  Target(const backplane::Registry& registry, const std::string& spec, int threads, bool native);

  backplane::Device device;
  std::string name;      // "onednn:0, native"
  bool repeats = false;  // the device promises the same bits from run to run
  uint64_t call_flags = 0;
};

}  // namespace char_gpt
