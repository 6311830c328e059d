// SPDX-License-Identifier: Apache-2.0
// The parts of a result's message: what went wrong comes first, and marks begin what is about one case alone.
#pragma once

#include <string_view>

namespace backplane::conformance {

// In the message of a case that was given up for those before it: what follows is what they said.
inline constexpr std::string_view given_up_mark = " before it, each with: ";

inline constexpr std::string_view output_mark = "; its last output: ";          // of the case's process
inline constexpr std::string_view changer_mark = "; seen first after ";         // the slot that changed the thread
inline constexpr std::string_view steps_mark = "; step ";                       // the latest calls
inline constexpr std::string_view operand_marks[] = {"; input ", "; output "};  // operands of a numeric case

// `reason` without what is about one case alone.
constexpr std::string_view shared_part(std::string_view reason) {
  for (const std::string_view mark : {output_mark, changer_mark, steps_mark, operand_marks[0], operand_marks[1]})
    reason = reason.substr(0, reason.find(mark));
  return reason;
}

}  // namespace backplane::conformance
