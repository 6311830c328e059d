// SPDX-License-Identifier: Apache-2.0
// What plan_create said in a run, in every process of it: its answer depends on the descriptor alone. What a plugin accepted once it
// may not decline later, and what it declined it may not accept.
#pragma once

#include <string>

#include "case.hpp"

namespace backplane::conformance {

// The memory in which the processes of a run note the answers. Made before the first process; used until it ends.
class PlanSupport {
 public:
  explicit PlanSupport(const Catalogue& catalogue);
  PlanSupport(const PlanSupport&) = delete;
  PlanSupport& operator=(const PlanSupport&) = delete;
  ~PlanSupport();

  using Slot = decltype(bp_device_api::plan_create);
  // The slot to call in place of an instance's own, which notes each answer. One slot is watched at a time: an instance that has another
  // one than those that live gets its own back, unwatched.
  static Slot watch(Slot own);
  static void unwatch(Slot own);  // the instance ended

  // Of the running case.
  static void begin(const Case& which);
  static std::string broken();  // since then: slot, descriptor, and the case that got the other answer; empty: none

  // Asks again for descriptors that were accepted, one of each operator and dtypes: for the one that `number` picks, or for all.
  static void query_one(bp_device* device, uint64_t number);
  static void query_all(bp_device* device);

 private:
  void* memory_ = nullptr;
  void* before_ = nullptr;
  const Catalogue* catalogue_before_ = nullptr;
};

}  // namespace backplane::conformance
