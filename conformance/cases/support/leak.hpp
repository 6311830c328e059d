// SPDX-License-Identifier: Apache-2.0
// What a cycle of calls leaves behind in this process.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "harness/context.hpp"

namespace bp::conformance {

struct Footprint {
  uint64_t heap_bytes;      // in use by the C library's allocator; 0 where it does not say
  uint64_t resident_bytes;  // of the process
  uint32_t descriptors;
  uint32_t threads;
  static Footprint now();
};

// Runs `cycle` in batches of `count` after one to warm up. A leak is what grows in each of several batches in a row: caches
// fill once, a leak never stops.
void expect_no_leak(Context& context, std::string_view what, unsigned count, const std::function<void()>& cycle);

}  // namespace bp::conformance
