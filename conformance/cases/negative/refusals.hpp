// SPDX-License-Identifier: Apache-2.0
// Every documented way to make a slot of a healthy device reject a call. The negative cases, the
// cases of the error record and the leak cases use this list.
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
  // Makes the illegal call. Also checks that its output is null and that nothing else was written.
  std::function<bp_status(Context& context, bp_error* error)> call;
  uint32_t op = 0;                  // the operator that the record must name
  std::string_view extension = {};  // the extension that the call needs; empty: none
};

std::vector<Refusal> query_refusals();
std::vector<Refusal> device_refusals();
std::vector<Refusal> buffer_refusals();
std::vector<Refusal> stream_refusals();
std::vector<Refusal> plan_refusals();      // for plan_create, except those of single operators
std::vector<Refusal> operator_refusals();  // for plan_create, for every primitive
std::vector<Refusal> all_refusals();       // all except operator_refusals

// A value that the callee must overwrite with null.
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
