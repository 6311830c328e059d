// SPDX-License-Identifier: Apache-2.0
// Declares the list of illegal calls, each with the status that the contract documents. The
// negative cases, the error record cases and the leak cases use this list.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/context.hpp"

namespace backplane::conformance {

struct Refusal {
  std::string slot;
  std::string what;
  std::vector<bp_status> expected;
  std::string_view requirement;
  // Makes the illegal call and returns its status. Fails the case if the call leaves a non-null
  // output handle.
  std::function<bp_status(Context& context, bp_error* error)> call;
  uint32_t op = 0;                  // operator that the error record must name; 0 means any
  std::string_view extension = {};  // extension that the call needs; empty if none
};

std::vector<Refusal> query_refusals();
std::vector<Refusal> device_refusals();
std::vector<Refusal> buffer_refusals();
std::vector<Refusal> stream_refusals();
std::vector<Refusal> plan_refusals();      // rejections by plan_create that do not depend on an operator
std::vector<Refusal> operator_refusals();  // rejections by plan_create, for every primitive
std::vector<Refusal> all_refusals();       // all rejections except operator_refusals

// Returns a nonzero handle, which the callee must replace with null.
template <typename Handle>
Handle* poisoned() {
  return reinterpret_cast<Handle*>(static_cast<uintptr_t>(0x5A5A5A50));
}
template <typename Handle>
bp_status require_null(Context& context, bp_status status, const Handle* out, std::string_view slot) {
  context.require(status == BP_OK || out == nullptr, "{} failed and left *out at {}; a failure leaves it null", slot,
                  static_cast<const void*>(out));
  return status;
}

}  // namespace backplane::conformance
