// SPDX-License-Identifier: Apache-2.0
// Failures by what they say: a plugin that fails a thousand cases for one reason is told once.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

namespace backplane::conformance {

// What equal reasons have in common: numbers, shapes, dtypes and ids of cases are masked, the operands and the output of one
// case are cut off, and a case that was given up says what the others before it said.
std::string cause_of(std::string_view reason);

// The failures of `non_passes`, one object a cause, as the schema of the certificate has it: the most frequent first.
nlohmann::json causes_of(const nlohmann::json& non_passes);

// What a known reason means for its reader. Empty: nothing more than the reason says.
struct Advice {
  std::string_view words{};  // of the reason
  std::string_view requirement{};
  std::string_view remedy{};
  std::string_view guide{};
};
Advice advice_for(std::string_view reason);  // the first row whose words are in the reason
std::span<const Advice> advice_rows();

}  // namespace backplane::conformance
