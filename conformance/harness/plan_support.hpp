// SPDX-License-Identifier: Apache-2.0
// Records every answer of plan_create in a run, over all of its processes. An answer must depend on
// the descriptor alone: a plugin may not decline what it accepted, nor accept what it declined.
#pragma once

#include <string>

#include "case.hpp"

namespace backplane::conformance {

// The memory that the processes of a run share to record answers. Created before the first process.
class PlanSupport {
 public:
  explicit PlanSupport(const Catalogue& catalogue);
  PlanSupport(const PlanSupport&) = delete;
  PlanSupport& operator=(const PlanSupport&) = delete;
  ~PlanSupport();

  using Slot = decltype(bp_device_api::plan_create);
  // Returns the slot to call in place of an instance's own; it records each answer. One slot is
  // watched at a time: an instance with a different slot gets its own back, unwatched.
  static Slot watch(Slot own);
  static void unwatch(Slot own);  // at the end of the instance

  // At the start of a case.
  static void begin(const Case& which);
  static std::string broken();  // a contradiction since `begin`: slot, descriptor and the earlier case; empty: none

  // Requests accepted descriptors again, one per operator and dtypes: the one that `number`
  // selects, or all.
  static void query_one(bp_device* device, uint64_t number);
  static void query_all(bp_device* device);

 private:
  void* memory_ = nullptr;
  void* before_ = nullptr;
  const Catalogue* catalogue_before_ = nullptr;
};

}  // namespace backplane::conformance
