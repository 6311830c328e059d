// SPDX-License-Identifier: Apache-2.0
// Detects whether a cycle of calls leaks in this process.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "harness/context.hpp"

namespace backplane::conformance {

struct Footprint {
  uint64_t heap_bytes;      // in use by the C library's allocator; 0: unknown
  uint64_t resident_bytes;  // resident memory of the process
  uint32_t descriptors;
  uint32_t threads;
  static Footprint now();
};

// Runs `cycle` in rounds of `count` cycles, or of more if they are quick, until two to four rounds
// in a row leak nothing. Otherwise compares the rounds: the growth of a pool slows down and ends,
// and that of a leak does not.
void expect_no_leak(Context& context, std::string_view what, unsigned count, const std::function<void()>& cycle);

}  // namespace backplane::conformance
