// SPDX-License-Identifier: Apache-2.0
// Cases of operators whose operands are of several dtypes: a plain case's data, with what departs in the dtype that the rules
// give it.
#pragma once

#include <backplane/rules/mixed.hpp>

#include "cases/numeric/spec.hpp"

namespace bp::conformance::numeric {

namespace rules = backplane::rules;

// A way that an operator's operands may be mixed: what departs, and the other dtype where there is a choice.
struct Mix {
  uint32_t mixed = 0;  // rules::Mixed
  uint32_t other = 0;  // of halves, masks and scales; else 0
};
// All that are legal for T = `dtype`.
std::vector<Mix> mixes_of(uint32_t op, uint32_t dtype);
// "parameters+state", "halves_f16"
std::string name_of(const Mix& mix);

// Brings the operands of a plain job to the dtypes of the mix, with values that the wider dtypes alone have. Statistics are
// f32 whether it is mixed or not.
void mix(const Mix& mix, Job& job, Random& random);

// What the job's operands depart from the plain form in.
uint32_t mixed_of(const Job& job);

// `spec`, plain otherwise, in every way that its operands may be mixed: natively where the plugin claims it, and decomposed.
void add_mixed(Catalogue& catalogue, const Spec& spec, std::string_view more);

}  // namespace bp::conformance::numeric
