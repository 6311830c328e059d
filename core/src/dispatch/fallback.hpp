// SPDX-License-Identifier: Apache-2.0
// Runs operators that a device lacks on another device, with explicit copies. This happens only if
// the caller allowed it, and is counted.
#pragma once

#include <backplane/backplane.h>

#include <atomic>
#include <string>

#include "dispatch/plan_cache.hpp"
#include "streams/stream.hpp"

namespace backplane::core {

// The fallback device, opened at first use. Each stream has its own stream there.
class Fallback {
 public:
  Fallback(Registry& registry, const std::string& device_name);
  ~Fallback();
  Fallback(const Fallback&) = delete;
  Fallback& operator=(const Fallback&) = delete;

  bph_device* device = nullptr;
  std::atomic<bool> warned[BP_OP_LIMIT] = {};
};

// Waits for `stream`, copies the operands to the fallback device, runs the call and copies the
// outputs back. `entry` is checked and has no plan.
void run_on_fallback(Stream& stream, const OpRow& row, const bph_call& call, const PlanEntry& entry);

// Queries the fallback device.
bph_support supports_on_fallback(Device& device, const bph_call& call);

}  // namespace backplane::core
