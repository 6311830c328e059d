// SPDX-License-Identifier: Apache-2.0
// The certificate: one JSON document that says who was measured, with what, and what came out. The other forms, and
// `verify`, read nothing else.
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
  std::string started{};  // UTC, as 2026-01-31T12:00:00Z
  double seconds = 0;
  bool resumed = false;
  size_t not_reached = 0;  // cases that a run left out when it stopped at its first failure
};

// SHA-256 of the suite's sources, of the build that is running.
std::string_view suite_digest();
std::string_view suite_version();

nlohmann::json certificate_of(const Catalogue& catalogue, const std::vector<size_t>& selection,
                              const std::vector<Result>& results, const Verdict& verdict, const Facts& facts,
                              const RunFacts& run);

// The line that runs one case again, ready to paste into a shell.
std::string repro_line(const Target& target, uint64_t seed, std::string_view id, uint32_t profile);

// The digest over everything else in the certificate; `certificate_of` put it under "digest".
std::string digest_of(const nlohmann::json& certificate);

// As JUnit XML, a test suite a group; and as one self-contained HTML page.
std::string junit_of(const nlohmann::json& certificate);
std::string html_of(const nlohmann::json& certificate);

}  // namespace backplane::conformance
