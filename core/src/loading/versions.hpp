// SPDX-License-Identifier: Apache-2.0
// The versions of the plugin ABI that this library speaks.
#pragma once

#include <backplane/base.h>

#include <cstdint>
#include <span>
#include <string>

namespace backplane::core {

// One major, from its last break to the newest minor.
struct SpokenMajor {
  uint32_t newest;
  uint32_t oldest;
};

// The newest major first: plugins are queried in this order.
inline constexpr SpokenMajor kSpokenMajors[] = {
    {BP_ABI_VERSION, BP_ABI_VERSION_OLDEST},
#if BP_ABI_VERSION_MAJOR == 1
    {BP_VERSION(0, 0xFFFF), BP_VERSION(0, 2)},  // 1.0 has the layout of the last 0.x, whichever minor that is
#endif
};

// Whether a host that speaks `host` can use a plugin that was built for `built` and works with hosts from `oldest` on:
// the same major, not built before the last break, and not for newer hosts only.
constexpr bool compatible(const SpokenMajor& host, uint32_t oldest, uint32_t built) noexcept {
  return built >> 16 == host.newest >> 16 && oldest <= host.newest && oldest <= built && built >= host.oldest;
}

// "0.2", "0.2 to 0.5", "1.0 and 0.2 or later".
std::string spoken_text(std::span<const SpokenMajor> majors);

}  // namespace backplane::core
