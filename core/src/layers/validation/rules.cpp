// SPDX-License-Identifier: Apache-2.0
// The table of the rules in rules.def.
#include "layers/validation/rules.hpp"

namespace backplane::core::layers {

namespace {

constexpr Rule kRules[] = {
#define BP_VAL_RULE(number, name, sentence) rule::name,
#include "layers/validation/rules.def"
#undef BP_VAL_RULE
};

}  // namespace

std::span<const Rule> all_rules() noexcept { return kRules; }

}  // namespace backplane::core::layers
