// SPDX-License-Identifier: Apache-2.0
// Groups failures by their message, so that a thousand failures with one reason are reported once.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

namespace backplane::conformance {

// The common part of equal reasons. Numbers, shapes, dtypes and case ids are masked; operands and
// output of a single case are cut off. A given-up case has the cause of the earlier cases.
std::string cause_of(std::string_view reason);

// Groups the failures of `non_passes` into one object per cause, as in the certificate's schema.
// The most frequent cause comes first.
nlohmann::json causes_of(const nlohmann::json& non_passes);

// Explains a known reason. Empty if there is no explanation.
struct Advice {
  std::string_view words{};  // text that the reason contains
  std::string_view requirement{};
  std::string_view remedy{};
  std::string_view guide{};
};
// returns the first row whose words occur in the reason
Advice advice_for(std::string_view reason);
std::span<const Advice> advice_rows();

}  // namespace backplane::conformance
