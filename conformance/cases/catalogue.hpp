// SPDX-License-Identifier: Apache-2.0
// The catalogue: every case, and the groups that it consists of.
#pragma once

#include "harness/case.hpp"

namespace backplane::conformance {

// Every case there is, in the order of the report. Enumerating makes no data.
Catalogue enumerate();

// Each appends the cases of its group.
void add_abi_cases(Catalogue& catalogue);        // what the library is: symbols, versions, struct sizes
void add_runtime_cases(Catalogue& catalogue);    // what device, memory, streams and events do
void add_negative_cases(Catalogue& catalogue);   // each slot at each documented error
void add_host_cases(Catalogue& catalogue);       // through the host library, as a framework uses the plugin
void add_numeric_cases(Catalogue& catalogue);    // what the operators compute
void add_first_use_cases(Catalogue& catalogue);  // first uses in a new process; they run cases of the operators
void add_promise_cases(Catalogue& catalogue);    // whether plan_create's answers stay the same: after all the others

}  // namespace backplane::conformance
