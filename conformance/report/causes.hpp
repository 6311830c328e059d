// SPDX-License-Identifier: Apache-2.0
// Groups failures by their message, so that a thousand failures with one reason are reported once.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

namespace backplane::conformance {

// Returns the part of the reason that is equal for all failures with the same cause. Numbers,
// shapes, dtypes and case ids are masked, and the operands and output of a single case are removed.
// A case that was not run after equal failures has the cause of those failures.
std::string cause_of(std::string_view reason);

// Groups the failures of `non_passes` into one object per cause, as the certificate's schema
// defines it. The most frequent cause comes first.
nlohmann::json causes_of(const nlohmann::json& non_passes);

// Advice for a known reason. All fields are empty if there is no advice.
struct Advice {
  std::string_view words{};  // text that the reason contains
  std::string_view requirement{};
  std::string_view remedy{};
  std::string_view guide{};
};
// Returns the first row of advice_rows() whose `words` occur in the reason.
Advice advice_for(std::string_view reason);
std::span<const Advice> advice_rows();

}  // namespace backplane::conformance
