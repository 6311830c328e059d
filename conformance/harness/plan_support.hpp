// SPDX-License-Identifier: Apache-2.0
// Records every answer of plan_create in all processes of a run. An answer must depend on the
// descriptor alone: a plugin may not decline what it accepted, nor accept what it declined.
#pragma once

#include <string>

#include "case.hpp"

namespace backplane::conformance {

// The memory in which the processes of a run record answers. Must be created before the first
// process starts.
class PlanSupport {
 public:
  explicit PlanSupport(const Catalogue& catalogue);
  PlanSupport(const PlanSupport&) = delete;
  PlanSupport& operator=(const PlanSupport&) = delete;
  ~PlanSupport();

  using Slot = decltype(bp_device_api::plan_create);
  // Returns a slot that calls `own` and records each answer. One slot is watched at a time: if a
  // different one is being watched, returns `own` itself.
  static Slot watch(Slot own);
  static void unwatch(Slot own);  // called at the end of the instance

  // Called at the start of each case.
  static void begin(const Case& which);
  // describes a contradiction since `begin`: slot, descriptor and the earlier case; empty: none
  static std::string broken();

  // Request plans for accepted descriptors again. One descriptor is kept per operator and dtypes;
  // query_one requests the one that `number` selects, query_all requests all.
  static void query_one(bp_device* device, uint64_t number);
  static void query_all(bp_device* device);

 private:
  void* memory_ = nullptr;
  void* before_ = nullptr;
  const Catalogue* catalogue_before_ = nullptr;
};

}  // namespace backplane::conformance
