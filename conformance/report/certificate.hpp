// SPDX-License-Identifier: Apache-2.0
// Defines the certificate, a JSON document about the plugin, the suite and the results. The JUnit
// and HTML reports depend on this document alone, and `verify` checks it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "verdict.hpp"

namespace backplane::conformance {

struct RunFacts {
  Target target{};
  Selection selection{};
  uint64_t seed = 0;
  unsigned jobs = 1;
  std::string started{};  // start time in UTC, for example 2026-01-31T12:00:00Z
  double seconds = 0;
  bool resumed = false;
  // Number of cases that were not run because the run stopped at its first failure.
  size_t not_reached = 0;
  Limits limits{};
};

// Returns the SHA-256 of the running suite's sources.
std::string_view suite_digest();
std::string_view suite_version();

nlohmann::json certificate_of(const Catalogue& catalogue, const std::vector<size_t>& selection,
                              const std::vector<Result>& results, const Verdict& verdict, const Facts& facts,
                              const RunFacts& run);

// Returns the shell command that runs one case again.
std::string repro_line(const Target& target, uint64_t seed, std::string_view id, uint32_t profile);

// Returns the digest of the certificate without its field "digest", which stores the digest.
std::string digest_of(const nlohmann::json& certificate);

// These functions return the certificate as JUnit XML with one test suite per group, and as one
// self-contained HTML page.
std::string junit_of(const nlohmann::json& certificate);
std::string html_of(const nlohmann::json& certificate);

}  // namespace backplane::conformance
