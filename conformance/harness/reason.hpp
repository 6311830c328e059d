// SPDX-License-Identifier: Apache-2.0
// Defines the marks in a result's message. The message begins with the cause, and each mark is a
// fixed text that precedes details of a single case.
#pragma once

#include <string_view>

namespace backplane::conformance {

// A mark in the message of a case that was not run, because several earlier cases of its group
// failed with equal messages. The message of those cases follows the mark.
inline constexpr std::string_view kGivenUpMark = " before it, each with: ";

// Precedes the output of the case's process.
inline constexpr std::string_view kOutputMark = "; its last output: ";
// Precedes the name of the slot that changed the thread's state.
inline constexpr std::string_view kChangerMark = "; seen first after ";
inline constexpr std::string_view kStepsMark = "; step ";  // precedes a list of the latest calls
// Each mark precedes the description of an operand of a numeric case.
inline constexpr std::string_view kOperandMarks[] = {"; input ", "; output "};

// Returns `reason` without the details of a single case.
constexpr std::string_view shared_part(std::string_view reason) {
  for (const std::string_view mark : {kOutputMark, kChangerMark, kStepsMark, kOperandMarks[0], kOperandMarks[1]})
    reason = reason.substr(0, reason.find(mark));
  return reason;
}

}  // namespace backplane::conformance
