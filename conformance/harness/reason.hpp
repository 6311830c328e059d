// SPDX-License-Identifier: Apache-2.0
// The parts of a result's message. The cause comes first; each mark begins details of a single
// case.
#pragma once

#include <string_view>

namespace backplane::conformance {

// Part of the message of a case that was given up. The message of the earlier cases follows.
inline constexpr std::string_view kGivenUpMark = " before it, each with: ";

// the output of the case's process follows
inline constexpr std::string_view kOutputMark = "; its last output: ";
// the slot that changed the thread follows
inline constexpr std::string_view kChangerMark = "; seen first after ";
inline constexpr std::string_view kStepsMark = "; step ";  // a list of the latest calls follows
// an operand of a numeric case follows
inline constexpr std::string_view kOperandMarks[] = {"; input ", "; output "};

// Returns `reason` without the details of a single case.
constexpr std::string_view shared_part(std::string_view reason) {
  for (const std::string_view mark : {kOutputMark, kChangerMark, kStepsMark, kOperandMarks[0], kOperandMarks[1]})
    reason = reason.substr(0, reason.find(mark));
  return reason;
}

}  // namespace backplane::conformance
