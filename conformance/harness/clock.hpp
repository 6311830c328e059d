// SPDX-License-Identifier: Apache-2.0
// The monotonic clock that measures cases and waits.
#pragma once

#include <chrono>
#include <cstdint>

namespace backplane::conformance {

// Returns nanoseconds since an unspecified start.
inline uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

}  // namespace backplane::conformance
