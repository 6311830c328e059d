// SPDX-License-Identifier: Apache-2.0
// Declares the functions that build the catalogue of all test cases.
#pragma once

#include "harness/case.hpp"

namespace backplane::conformance {

// Returns every case, in the order of the report. Creates no test data.
Catalogue enumerate();

// ---- Functions that append the cases of one topic

// Test cases for the plugin's library: symbols, versions and struct sizes.
void add_abi_cases(Catalogue& catalogue);
// Test cases for devices, memory, streams and events.
void add_runtime_cases(Catalogue& catalogue);
// Test cases that make every slot return each of its documented errors.
void add_negative_cases(Catalogue& catalogue);
// Test cases that use the plugin through the host library, as a framework does.
void add_host_cases(Catalogue& catalogue);
// Test cases for the results of the operators.
void add_numeric_cases(Catalogue& catalogue);
// Test cases for the first use of a slot or an operator in a new process.
void add_first_use_cases(Catalogue& catalogue);
// Test cases for consistent results of plan_create. These cases must run after all other cases.
void add_promise_cases(Catalogue& catalogue);

}  // namespace backplane::conformance
