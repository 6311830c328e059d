// SPDX-License-Identifier: Apache-2.0
// The choice of the width of sub-groups, for devices that offer several widths.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

namespace backplane::simt {

// Returns the width of sub-groups for a device that offers `widths`. If the environment variable
// `setting` is set, returns the width that the variable requests. Returns 0 if the device does not
// offer the requested width, or offers none of the widths 8, 16, 32 and 64. The first choice is 16:
// with 32 threads, compilers that offer both widths spill the registers of the larger kernels.
inline uint32_t choose_width(std::span<const std::size_t> widths, const char* setting) {
  const auto has = [&](std::size_t width) { return std::find(widths.begin(), widths.end(), width) != widths.end(); };
  if (const char* requested = std::getenv(setting); requested != nullptr && *requested != '\0') {
    const auto width = static_cast<uint32_t>(std::strtoul(requested, nullptr, 10));
    return width >= 8 && width <= 64 && has(width) ? width : 0;
  }
  for (const uint32_t width : {16u, 32u, 8u, 64u}) {
    if (has(width)) return width;
  }
  return 0;
}

}  // namespace backplane::simt
