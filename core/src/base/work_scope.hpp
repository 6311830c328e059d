// SPDX-License-Identifier: Apache-2.0
// The reason why this thread calls a plugin. A trace shows the reason for calls that core makes on
// its own initiative. Only slow paths set the reason, so an eager call has no extra cost
// (docs/decisions/0017-information-for-the-trace-layer.md).
#pragma once

namespace backplane::core {

struct WorkCause {
  // A static string: "staging", "fallback" or "composite". Null if the framework requested the
  // call.
  const char* why = nullptr;
  const char* op = nullptr;  // static string with the operator's name
};
inline constinit thread_local WorkCause work_cause = {};

class WorkScope {
 public:
  WorkScope(const char* why, const char* op) noexcept : before_(work_cause) { work_cause = {why, op}; }
  WorkScope(const WorkScope&) = delete;
  WorkScope& operator=(const WorkScope&) = delete;
  ~WorkScope() { work_cause = before_; }

 private:
  WorkCause before_;
};

}  // namespace backplane::core
