// SPDX-License-Identifier: Apache-2.0
// Verifies a certificate. Checks each part of the certificate and runs a sample of its cases again.
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
  std::optional<uint32_t> device{};  // index of the device; the default is the index in the certificate
  size_t sample = 200;               // number of cases to run again; with 0, the check of the sample fails
  uint64_t seed = 0;                 // selects the cases to run again and their data
  unsigned jobs = 1;
  // Limits of a case. The defaults are the limits in the certificate, or those of Limits if an older certificate states
  // none.
  std::optional<double> case_seconds{};
  std::optional<uint64_t> resident_mib{};
  std::function<void(const Progress&)> progress{};
};

struct Part {
  enum class State { good, warning, refused, unchecked };
  std::string_view name;  // file, form, digest, suite, plugin, run, verdict, device or sample
  State state = State::unchecked;
  std::string message{};  // result of the check, or reason for the refusal
};
std::string_view name_of(Part::State state);

// A case whose outcome in this run differs from its outcome in the certificate.
struct Difference {
  std::string id{};
  std::string listed{};  // outcome in the certificate
  Result now{};
  std::string repro{};
};

struct Verification {
  std::vector<Part> parts{};
  std::string statement{};  // statement of the certificate; empty if the certificate could not be read
  size_t compared = 0;      // number of cases that were run again
  std::vector<Difference> differences{};
  bool verified() const;  // true if all parts were checked and no part was refused
};

Verification verify(const VerifyOptions& options);

// ---- Functions that the tests and the command also call

// Throws std::runtime_error for invalid or truncated JSON, a duplicate key, or more than 32 levels of nesting.
nlohmann::json read_certificate(const std::string& text);
// Returns the reason why `certificate` does not have the form of this program's certificates. Returns "" if the form is
// right.
std::string form_fault(const nlohmann::json& certificate);
// Returns the first difference between two documents, or "". Fields such as times, reasons and
// errors are not compared. `path` is the path of both documents in the certificate.
std::string first_difference(const nlohmann::json& derived, const nlohmann::json& given, const std::string& path);
// Returns the reason why the error statistics in `tally` are contradictory, or "". For example, an
// error above its bound requires a failure.
std::string error_fault(const nlohmann::json& tally);

}  // namespace backplane::conformance
