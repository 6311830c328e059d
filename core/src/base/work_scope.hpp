// SPDX-License-Identifier: Apache-2.0
// Why this thread calls the plugin. A trace shows the reason for calls that the caller did not make
// itself. Only slow paths set it, so an eager call pays nothing
// (docs/decisions/0017-what-a-trace-is-told.md).
#pragma once

namespace backplane::core {

struct WorkCause {
  // "staging", "fallback" or "composite", static; null for the caller's own call.
  const char* why = nullptr;
  const char* op = nullptr;  // the operator's name, static
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
