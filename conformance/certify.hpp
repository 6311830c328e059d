// SPDX-License-Identifier: Apache-2.0
// A whole certification: from a library's path to a certificate.
#pragma once

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
  size_t absent = 0;             // not claimed
  double seconds = 0;            // since the start
  double seconds_left = -1;      // negative: not known yet
  const Case* latest = nullptr;  // the case that just ended; null: none did
  const Result* result = nullptr;
  // The case that has run for some seconds; null: none has.
  const Case* slow = nullptr;
  double slow_seconds = 0;
  std::string_view slot{};  // that it is in; empty: none that is watched
  double slot_seconds = 0;  // of this call
};

struct CertifyOptions {
  Target target{};
  Selection selection{};
  uint64_t seed = 0;
  unsigned jobs = 1;
  Limits limits{};
  bool fail_fast = false;
  bool in_process = false;
  std::string journal{};  // path; empty: none
  bool resume = false;
  std::function<void(const Progress&)> progress{};
};

// What is wrong with filters that match no case of the profile.
std::string no_match_text(const std::vector<std::string>& filters, uint32_t profile);

// Throws std::runtime_error for what keeps the run from beginning; what the plugin does wrong is in the certificate.
nlohmann::json certify(const CertifyOptions& options);

}  // namespace backplane::conformance
