// SPDX-License-Identifier: Apache-2.0
// The catalogue: every case, and the groups that it consists of.
#pragma once

#include "harness/case.hpp"

namespace backplane::conformance {

// Returns every case, in the order of the report. Creates no test data.
Catalogue enumerate();

// Each function appends the cases of its group.
// properties of the library: symbols, versions, struct sizes
void add_abi_cases(Catalogue& catalogue);
void add_runtime_cases(Catalogue& catalogue);   // behaviour of device, memory, streams and events
void add_negative_cases(Catalogue& catalogue);  // each slot at each documented error
// the plugin behind the host library, as a framework uses it
void add_host_cases(Catalogue& catalogue);
void add_numeric_cases(Catalogue& catalogue);    // results of the operators
void add_first_use_cases(Catalogue& catalogue);  // first uses in a new process; they run cases of the operators
// consistent answers of plan_create; must run after all other cases
void add_promise_cases(Catalogue& catalogue);

}  // namespace backplane::conformance
