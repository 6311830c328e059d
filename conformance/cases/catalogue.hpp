// SPDX-License-Identifier: Apache-2.0
// The parts of the catalogue: each appends its cases.
#pragma once

#include "harness/case.hpp"

namespace bp::conformance {

void add_abi_cases(Catalogue& catalogue);        // what the library is: symbols, versions, struct sizes
void add_runtime_cases(Catalogue& catalogue);    // what device, memory, streams and events do
void add_negative_cases(Catalogue& catalogue);   // each slot at each documented error
void add_host_cases(Catalogue& catalogue);       // through the host library, as a framework uses the plugin
void add_numeric_cases(Catalogue& catalogue);    // what the operators compute
void add_first_use_cases(Catalogue& catalogue);  // with nothing before: uses the cases of the operators
void add_promise_cases(Catalogue& catalogue);    // whether answers stay: behind all the others

}  // namespace bp::conformance
