// SPDX-License-Identifier: Apache-2.0
// The operators by family: what `evaluate` chooses from. Each returns one Expected an output.
#pragma once

#include "oracle.hpp"

namespace bp::conformance::oracle {

std::vector<Expected> gather(const Call& call);
std::vector<Expected> scatter(const Call& call);
std::vector<Expected> reduce(const Call& call);  // reduce_sum, _prod, _max, _min
std::vector<Expected> arg(const Call& call);     // argmax, argmin
std::vector<Expected> cumsum(const Call& call);
std::vector<Expected> matmul(const Call& call);
std::vector<Expected> sort(const Call& call);
std::vector<Expected> philox(const Call& call);

}  // namespace bp::conformance::oracle
