// SPDX-License-Identifier: Apache-2.0
// The rules of the layer `validation`, with their ids and sentences.
#pragma once

#include <span>

namespace backplane::core::layers {

struct Rule {
  const char* id;
  const char* sentence;
};

namespace rule {
#define BP_VAL_RULE(number, name, sentence) inline constexpr Rule name = {"BP-VAL-" #number, sentence};
#include "layers/validation/rules.def"
#undef BP_VAL_RULE
}  // namespace rule

// Returns the rules in the order of rules.def.
std::span<const Rule> all_rules() noexcept;

}  // namespace backplane::core::layers
