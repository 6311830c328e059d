// SPDX-License-Identifier: Apache-2.0
// A whole certification: from a library's path to a certificate.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/run.hpp"
#include "harness/select.hpp"

namespace bp::conformance {

struct Progress {
  size_t done = 0;
  size_t total = 0;
  size_t failures = 0;
  size_t absent = 0;             // not claimed
  double seconds = 0;            // since the start
  double seconds_left = -1;      // negative: not known yet
  const Case* latest = nullptr;  // the case that just ended; null: none did
  const Result* result = nullptr;
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

// Throws std::runtime_error for what keeps the run from beginning; what the plugin does wrong is in the certificate.
nlohmann::json certify(const CertifyOptions& options);

}  // namespace bp::conformance
