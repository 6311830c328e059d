// SPDX-License-Identifier: Apache-2.0
// The versions of the plugin ABI that this library speaks.
#pragma once

#include <backplane/base.h>

#include <cstdint>
#include <span>
#include <string>

namespace backplane::core {

// One major: from the last breaking version to the newest minor.
struct SpokenMajor {
  uint32_t newest;
  uint32_t oldest;
};

// Newest major first: plugins are queried in this order.
inline constexpr SpokenMajor kSpokenMajors[] = {
    {BP_ABI_VERSION, BP_ABI_VERSION_OLDEST},
#if BP_ABI_VERSION_MAJOR == 1
    // 1.0 has the layout of the last 0.x, whichever minor that is.
    {BP_VERSION(0, 0xFFFF), BP_VERSION(0, 2)},
#endif
};

// Whether a host that speaks `host` can use a plugin that was built for `built` and needs a host of
// at least `oldest`. Both must have the same major, the host must be at least `oldest`, and the
// plugin must not be older than the last break.
constexpr bool compatible(const SpokenMajor& host, uint32_t oldest, uint32_t built) noexcept {
  return built >> 16 == host.newest >> 16 && oldest <= host.newest && oldest <= built && built >= host.oldest;
}

// "0.2", "0.2 to 0.5", "1.0 and 0.2 or later".
std::string spoken_text(std::span<const SpokenMajor> majors);

}  // namespace backplane::core
