// SPDX-License-Identifier: Apache-2.0
// Runs an operator on another device, with explicit copies, if the stream's device lacks the
// operator. Each run is counted, and needs the caller's permission.
#pragma once

#include <backplane/backplane.h>

#include <atomic>
#include <string>

#include "dispatch/plan_cache.hpp"
#include "streams/stream.hpp"

namespace backplane::core {

// The fallback device, which is opened at its first use. Each stream with fallback calls has a
// separate stream on the fallback device.
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
// outputs back. `entry` is a checked entry without a plan.
void run_on_fallback(Stream& stream, const OpRow& row, const bph_call& call, const PlanEntry& entry);

// Returns whether and how the fallback device supports the call.
bph_support supports_on_fallback(Device& device, const bph_call& call);

}  // namespace backplane::core
