// SPDX-License-Identifier: Apache-2.0
// The numeric cases by family of operators: each appends its own.
#pragma once

#include "harness/case.hpp"

namespace bp::conformance::numeric {

void add_elementwise(Catalogue& catalogue);  // unary, binary, compare, select
void add_movement(Catalogue& catalogue);     // fill, copy, cast, iota
void add_index(Catalogue& catalogue);        // gather, scatter
void add_reduce(Catalogue& catalogue);       // reduce_sum, reduce_prod, reduce_max, reduce_min
void add_scan(Catalogue& catalogue);         // argmax, argmin, cumsum, sort
void add_matmul(Catalogue& catalogue);
void add_philox(Catalogue& catalogue);
void add_large(Catalogue& catalogue);  // far apart elements, of any operator

}  // namespace bp::conformance::numeric
