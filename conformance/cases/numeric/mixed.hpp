// SPDX-License-Identifier: Apache-2.0
// Cases of operators with operands of several dtypes: a plain case's data, where departing operands have the dtype that
// the rules give them.
#pragma once

#include <backplane/rules/mixed.hpp>

#include "cases/numeric/problem.hpp"

namespace backplane::conformance::numeric {

namespace rules = backplane::rules;

// One mixture of an operator's operands: the departures, and the other dtype where there is a choice.
struct Mix {
  uint32_t mixed = 0;  // rules::Mixed
  uint32_t other = 0;  // of halves, masks and scales; else 0
};
// All mixtures that are legal for T = `dtype`.
std::vector<Mix> mixes_of(uint32_t op, uint32_t dtype);
// "parameters+state", "halves_f16"
std::string name_of(const Mix& mix);

// Converts the operands of a plain setup to the dtypes of the mix, with values that only the wider dtypes hold.
// Statistics are f32, mixed or not.
void mix(const Mix& mix, Setup& setup, Random& random);

// The departures of the setup's operands from the plain form.
uint32_t mixed_of(const Setup& setup);

// `problem`, otherwise plain, in every legal mixture of its operands: natively where the plugin claims it, and decomposed.
void add_mixed(Catalogue& catalogue, const Problem& problem, std::string_view more);

}  // namespace backplane::conformance::numeric
