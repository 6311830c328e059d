// SPDX-License-Identifier: Apache-2.0
// A complete certification, from the path of a library to a certificate.
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
  size_t absent = 0;             // cases that are not claimed
  double seconds = 0;            // since the start
  double seconds_left = -1;      // negative: unknown
  const Case* latest = nullptr;  // the case that has just ended; null: none
  const Result* result = nullptr;
  // A case that has been running for some seconds; null: none.
  const Case* slow = nullptr;
  double slow_seconds = 0;
  std::string_view slot{};  // the case's current slot; empty: no watched slot
  double slot_seconds = 0;  // duration of the current call
};

struct CertifyOptions {
  Target target{};
  Selection selection{};
  uint64_t seed = 0;
  unsigned jobs = 1;
  Limits limits{};
  bool fail_fast = false;
  bool in_process = false;
  std::string journal{};  // path of the journal; empty: none
  bool resume = false;
  std::function<void(const Progress&)> progress{};
};

// Returns the error message for filters that match no case of the profile; empty if all match.
std::string no_match_text(const std::vector<std::string>& filters, uint32_t profile);

// Throws std::runtime_error if the run cannot start. Errors of the plugin are in the certificate.
nlohmann::json certify(const CertifyOptions& options);

}  // namespace backplane::conformance
