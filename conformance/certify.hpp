// SPDX-License-Identifier: Apache-2.0
// Runs a complete certification, from the path of a library to a certificate.
#pragma once

#include <atomic>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "harness/run.hpp"
#include "harness/select.hpp"

namespace backplane::conformance {

struct Progress {
  size_t done = 0;
  size_t total = 0;
  size_t failures = 0;
  size_t absent = 0;             // number of cases with the outcome not_claimed
  double seconds = 0;            // time since the start of the run
  double seconds_left = -1;      // estimated remaining time; negative if unknown
  const Case* latest = nullptr;  // case that finished last, or null
  const Result* result = nullptr;
  // A case that has been running for several seconds, or null.
  const Case* slow = nullptr;
  double slow_seconds = 0;
  std::string_view slot{};  // watched slot that the slow case is calling, or empty
  double slot_seconds = 0;  // duration of the slow case's current call
};

struct CertifyOptions {
  Target target{};
  Selection selection{};
  uint64_t seed = 0;
  unsigned jobs = 1;
  Limits limits{};
  bool fail_fast = false;
  bool in_process = false;
  std::string journal{};  // path of the journal; empty means no journal
  bool resume = false;
  // The run stops soon after this value becomes true. The result then describes only the cases that ran, the journal
  // remains, and /run/not_reached counts the other cases. May be null.
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const Progress&)> progress{};
};

// Returns the error message for `filters`, none of which matches a case of `profile`. `filters`
// must not be empty.
std::string no_match_text(const std::vector<std::string>& filters, uint32_t profile);

// Throws std::runtime_error if the run cannot start. The certificate reports errors of the plugin.
nlohmann::json certify(const CertifyOptions& options);

}  // namespace backplane::conformance
