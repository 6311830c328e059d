// SPDX-License-Identifier: Apache-2.0
// The versions of the plugin ABI that this library supports.
#pragma once

#include <backplane/base.h>

#include <cstdint>
#include <span>
#include <string>

namespace backplane::core {

// The supported versions with one major number: from the last incompatible change to the newest
// minor version.
struct SpokenMajor {
  uint32_t newest;
  uint32_t oldest;
};

// Plugins are queried in this order, the newest major version first.
inline constexpr SpokenMajor kSpokenMajors[] = {
    {BP_ABI_VERSION, BP_ABI_VERSION_OLDEST},
#if BP_ABI_VERSION_MAJOR == 1
    // 1.0 has the layout of the last 0.x version, so a 1.x host supports every 0.x version from 0.2
    // on.
    {BP_VERSION(0, 0xFFFF), BP_VERSION(0, 2)},
#endif
};

// Returns whether a host with the supported versions `host` can use a plugin. The plugin was built
// for version `built`, and needs a host of version `oldest` or later. Host and plugin must have the
// same major version, and `built` must be at least host.oldest.
constexpr bool compatible(const SpokenMajor& host, uint32_t oldest, uint32_t built) noexcept {
  return built >> 16 == host.newest >> 16 && oldest <= host.newest && oldest <= built && built >= host.oldest;
}

// Formats versions like "0.2", "0.2 to 0.5" or "1.0 and 0.2 or later".
std::string spoken_text(std::span<const SpokenMajor> majors);

}  // namespace backplane::core
