// SPDX-License-Identifier: Apache-2.0
// Detects whether a cycle of calls leaks in this process.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "harness/context.hpp"

namespace backplane::conformance {

struct Footprint {
  uint64_t heap_bytes;  // bytes in use by the C library's allocator; 0 means unknown
  uint64_t resident_bytes;
  uint32_t descriptors;
  uint32_t threads;
  static Footprint now();
};

// Runs `cycle` in rounds of at least `count` cycles. If this first round takes more than a second, the later rounds
// have fewer cycles. The case passes if no resource grows in two to four successive rounds of `count` cycles. Otherwise
// the case compares the growth in early and late rounds: a pool stops growing, but a leak does not. `distinct` is the
// number of different cycles. A plugin may cache memory for each of them.
void expect_no_leak(Context& context, std::string_view what, unsigned count, const std::function<void()>& cycle,
                    size_t distinct = 1);

}  // namespace backplane::conformance
