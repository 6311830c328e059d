// SPDX-License-Identifier: Apache-2.0
// The numeric cases by family of operators: each appends its own.
#pragma once

#include "harness/case.hpp"

namespace bp::conformance::numeric {

void add_elementwise(Catalogue& catalogue);  // unary, binary, compare, select
void add_movement(Catalogue& catalogue);     // fill, copy, cast, iota

}  // namespace bp::conformance::numeric
