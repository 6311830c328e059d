// SPDX-License-Identifier: Apache-2.0
// The parts of a result's message: the cause comes first; marks begin the details of a single case.
#pragma once

#include <string_view>

namespace backplane::conformance {

// In the message of a case that was given up: the message of the earlier cases follows.
inline constexpr std::string_view kGivenUpMark = " before it, each with: ";

inline constexpr std::string_view kOutputMark = "; its last output: ";          // output of the case's process
inline constexpr std::string_view kChangerMark = "; seen first after ";         // the slot that changed the thread
inline constexpr std::string_view kStepsMark = "; step ";                       // the latest calls
inline constexpr std::string_view kOperandMarks[] = {"; input ", "; output "};  // operands of a numeric case

// `reason` without the details of a single case.
constexpr std::string_view shared_part(std::string_view reason) {
  for (const std::string_view mark : {kOutputMark, kChangerMark, kStepsMark, kOperandMarks[0], kOperandMarks[1]})
    reason = reason.substr(0, reason.find(mark));
  return reason;
}

}  // namespace backplane::conformance
