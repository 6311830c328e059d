// SPDX-License-Identifier: Apache-2.0
// Operators whose outputs depend on one element of each input, or on none. Each returns one Expected an output.
#pragma once

#include "oracle.hpp"

namespace bp::conformance::oracle {

std::vector<Expected> unary(const Call& call);
std::vector<Expected> binary(const Call& call);
std::vector<Expected> compare(const Call& call);
std::vector<Expected> select(const Call& call);
std::vector<Expected> cast(const Call& call);
std::vector<Expected> copy(const Call& call);
std::vector<Expected> fill(const Call& call);
std::vector<Expected> iota(const Call& call);

// |got - value| <= k ulps of the output, one for the halves; poles, exact infinities and NaN are exact.
Element within_ulps(uint32_t dtype, long double value, double ulps);

}  // namespace bp::conformance::oracle
