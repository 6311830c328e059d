// SPDX-License-Identifier: Apache-2.0
// Cases of operators with operands of several dtypes. The data are those of a plain case, with some
// operands converted to the dtypes that the dtype rules allow.
#pragma once

#include <backplane/rules/mixed.hpp>

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

namespace rules = backplane::rules;

// One mixture of operand dtypes: which operands differ from the plain form, and their dtype if
// there is a choice.
struct Mix {
  uint32_t mixed = 0;  // a mask of rules::Mixed
  uint32_t other = 0;  // the dtype of halves, masks and scales; otherwise 0
};
// All mixtures that are legal for T = `dtype`.
std::vector<Mix> mixes_of(uint32_t op, uint32_t dtype);
// For example "parameters+state" or "halves_f16".
std::string name_of(const Mix& mix);

// Converts the operands of a plain setup to the dtypes of the mix, with values that only the wider
// dtypes represent. Statistics are always f32.
void mix(const Mix& mix, Setup& setup, Random& random);

// Which of the setup's operands differ from the plain form, as a mask of rules::Mixed.
uint32_t mixed_of(const Setup& setup);

// Adds the plain `problem` with every legal mixture of its operands, native and decomposed.
void add_mixed(Catalogue& catalogue, const Problem& problem, std::string_view more);

}  // namespace backplane::conformance::numeric
