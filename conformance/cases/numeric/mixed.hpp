// SPDX-License-Identifier: Apache-2.0
// Cases of operators with operands of several dtypes. The data are those of a plain case, with some
// operands converted to the dtypes that the dtype rules allow.
#pragma once

#include <backplane/rules/mixed.hpp>

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

namespace rules = backplane::rules;

// One mixture of operand dtypes: what differs from the plain form, and the dtype if there is a
// choice.
struct Mix {
  uint32_t mixed = 0;  // rules::Mixed
  uint32_t other = 0;  // of halves, masks and scales; else 0
};
// All mixtures that are legal for T = `dtype`.
std::vector<Mix> mixes_of(uint32_t op, uint32_t dtype);
// As "parameters+state" or "halves_f16".
std::string name_of(const Mix& mix);

// Converts the operands of a plain setup to the dtypes of the mix, with values that only the wider
// dtypes represent. Statistics are always f32.
void mix(const Mix& mix, Setup& setup, Random& random);

// How the setup's operands differ from the plain form, as rules::Mixed.
uint32_t mixed_of(const Setup& setup);

// Adds the plain `problem` with every legal mixture of its operands, native and decomposed.
void add_mixed(Catalogue& catalogue, const Problem& problem, std::string_view more);

}  // namespace backplane::conformance::numeric
