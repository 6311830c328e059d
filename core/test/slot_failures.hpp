// SPDX-License-Identifier: Apache-2.0
// Makes the slots of fake plugins fail. Every fake plugin of these tests derives from
// SlotFailures, so all tests inject failures with the same functions.
#pragma once

#include <backplane/base.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace backplane::core::test {

// Fills the record of a failure, if there is a record. Returns `status`.
inline bp_status report(bp_error* error, bp_status status, const std::string& message) {
  if (error != nullptr && error->struct_size >= BP_ERROR_MIN_SIZE) {
    error->status = status;
    error->vendor_code = 77;
    error->op = 0;
    error->message_length = static_cast<uint32_t>(std::min(message.size(), sizeof(error->message) - 1));
    std::memcpy(error->message, message.data(), error->message_length);
    error->message[error->message_length] = '\0';
  }
  return status;
}

// Selects the calls of a slot that fail, and the message of these calls.
struct FailingCalls {
  uint32_t skip = 0;         // number of calls that succeed before the first failure
  uint32_t times = 1;        // number of calls that fail
  std::string message = {};  // text of the error record; if empty, the text names the slot
};

class SlotFailures {
 public:
  // Makes the next calls of `slot` return `status` instead of succeeding. Replaces failures of the
  // slot that a test has set before.
  void fail(const std::string& slot, bp_status status, FailingCalls calls = {}) {
    if (calls.message.empty()) calls.message = "the test made " + slot + " fail";
    const std::lock_guard lock(mutex_);
    failures_[slot] = {status, std::move(calls)};
  }
  // Makes the next call of `slot` return OK with a null result, which breaks the ABI.
  void return_null(const std::string& slot) { fail(slot, BP_OK); }

  // Describes a call that does not succeed. The status OK means that the call returns a null
  // result.
  struct Outcome {
    bp_status status = BP_OK;
    std::string message;
  };
  // Decides whether a call of `slot` fails. Returns nullopt if the call succeeds. A fake plugin calls
  // this function once in each call of a slot.
  std::optional<Outcome> take(const std::string& slot) {
    const std::lock_guard lock(mutex_);
    const auto found = failures_.find(slot);
    if (found == failures_.end()) return std::nullopt;
    auto& [status, calls] = found->second;
    if (calls.skip != 0) {
      --calls.skip;
      return std::nullopt;
    }
    if (calls.times == 0) return std::nullopt;
    --calls.times;
    return Outcome{status, calls.message};
  }

 private:
  struct Failure {
    bp_status status = BP_OK;
    FailingCalls calls;
  };
  std::mutex mutex_;
  std::map<std::string, Failure> failures_;
};

}  // namespace backplane::core::test
