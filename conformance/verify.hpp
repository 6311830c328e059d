// SPDX-License-Identifier: Apache-2.0
// Verifies that a run of this suite on this plugin gives the certificate. Checks each part of the
// certificate and runs a sample of its cases again.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "certify.hpp"

namespace backplane::conformance {

struct VerifyOptions {
  std::string certificate{};         // the certificate's text
  std::string library{};             // absolute path of the plugin
  std::optional<uint32_t> device{};  // empty: the certificate's index
  size_t sample = 200;               // number of cases to run again; 0: nothing is measured
  uint64_t seed = 0;                 // selects the cases to run again and their data
  unsigned jobs = 1;
  Limits limits{};
  std::function<void(const Progress&)> progress{};
};

struct Part {
  enum class State { good, warning, refused, unchecked };
  std::string_view name;  // file, form, digest, suite, plugin, run, verdict, device, sample
  State state = State::unchecked;
  std::string message{};  // the finding, or why it is refused
};
std::string_view name_of(Part::State state);

// A case whose outcome differs from the certificate's.
struct Difference {
  std::string id{};
  std::string listed{};  // the outcome in the certificate
  Result now{};
  std::string repro{};
};

struct Verification {
  std::vector<Part> parts{};
  std::string statement{};  // the certificate's statement; empty if it could not be read
  size_t compared = 0;      // number of cases that ran again
  std::vector<Difference> differences{};
  bool verified() const;  // all parts were checked and none is refused
};

Verification verify(const VerifyOptions& options);

// ---- Implementation

// Throws std::runtime_error for invalid or truncated JSON, or a duplicate key.
nlohmann::json read_certificate(const std::string& text);
// Returns why `certificate` does not have the form of this program's certificates; empty: it has.
std::string form_fault(const nlohmann::json& certificate);
// Returns the first difference between two documents, except in free fields (times, reasons,
// errors). Empty: none.
std::string first_difference(const nlohmann::json& derived, const nlohmann::json& given, const std::string& place);
// Rejects impossible error statistics: a ratio above the bound without a failure, or more entries
// than cases.
std::string error_fault(const nlohmann::json& tally);

}  // namespace backplane::conformance
