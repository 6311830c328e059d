// SPDX-License-Identifier: Apache-2.0
// Records, for all processes of a run, which descriptors plan_create accepts and which it declines.
// The plugin must return the same result for a descriptor throughout the run. For an accepted
// descriptor, it may also return OUT_OF_MEMORY.
#pragma once

#include <string>

#include "case.hpp"

namespace backplane::conformance {

// Shared memory in which the processes of a run record the results of plan_create. The memory must
// exist before the first process starts.
class PlanSupport {
 public:
  explicit PlanSupport(const Catalogue& catalogue);
  PlanSupport(const PlanSupport&) = delete;
  PlanSupport& operator=(const PlanSupport&) = delete;
  ~PlanSupport();

  using Slot = decltype(bp_device_api::plan_create);
  // Returns a plan_create slot that calls `own` and records each result. Only one slot can be
  // watched at a time. If another slot is being watched, returns `own`.
  static Slot watch(Slot own);
  static void unwatch(Slot own);  // must be called when the plugin instance is shut down

  // Must be called at the start of each case.
  static void begin(const Case& which);
  // Describes the first contradiction since the last call of `begin`, or returns an empty string.
  // The description names the slot, the descriptor and the earlier case.
  static std::string broken();

  // These functions request plans for accepted descriptors again. One descriptor is kept per
  // combination of operator, flags and dtypes. query_one requests a plan for the kept descriptor
  // that `number` selects, and query_all requests a plan for each kept descriptor.
  static void query_one(bp_device* device, uint64_t number);
  static void query_all(bp_device* device);

 private:
  void* memory_ = nullptr;
  void* before_ = nullptr;
  const Catalogue* catalogue_before_ = nullptr;
};

}  // namespace backplane::conformance
