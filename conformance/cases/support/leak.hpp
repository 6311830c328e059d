// SPDX-License-Identifier: Apache-2.0
// What a cycle of calls leaves behind in this process.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "harness/context.hpp"

namespace backplane::conformance {

struct Footprint {
  uint64_t heap_bytes;      // in use by the C library's allocator; 0 where it does not say
  uint64_t resident_bytes;  // of the process
  uint32_t descriptors;
  uint32_t threads;
  static Footprint now();
};

// Runs `cycle` in rounds of `count`, or of several times as many where they are quick, until two rounds in a row leave nothing behind. Where
// none do, rounds are compared: a pool grows slower from round to round and comes to an end, a leak grows by the same.
void expect_no_leak(Context& context, std::string_view what, unsigned count, const std::function<void()>& cycle);

}  // namespace backplane::conformance
