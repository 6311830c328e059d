// SPDX-License-Identifier: Apache-2.0
// Whether a certificate is what a run of this suite on this plugin gives: its parts one by one, and a sample run again.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "certify.hpp"

namespace backplane::conformance {

struct VerifyOptions {
  std::string certificate{};         // its text
  std::string library{};             // path of the plugin, absolute
  std::optional<uint32_t> device{};  // none: the certificate's index
  size_t sample = 200;               // cases that are run again; 0: none, and then nothing is verified by measurement
  uint64_t seed = 0;                 // which cases, and their data
  unsigned jobs = 1;
  Limits limits{};
  std::function<void(const Progress&)> progress{};
};

struct Part {
  enum class State { good, warning, refused, unchecked };
  std::string_view name;  // file, form, digest, suite, plugin, run, verdict, device, sample
  State state = State::unchecked;
  std::string message{};  // what was seen, or why it is refused
};
std::string_view name_of(Part::State state);

// A case that came out otherwise.
struct Difference {
  std::string id{};
  std::string listed{};  // its outcome in the certificate
  Result now{};
  std::string repro{};
};

struct Verification {
  std::vector<Part> parts{};
  std::string statement{};  // of the certificate; empty if it could not be read
  size_t compared = 0;      // cases that were run again
  std::vector<Difference> differences{};
  bool verified() const;  // no part is refused, and all were checked
};

Verification verify(const VerifyOptions& options);

// ---- for verify itself

// Throws std::runtime_error with what is wrong: no JSON, cut off, or a key twice in one object.
nlohmann::json read_certificate(const std::string& text);
// What keeps `certificate` from being read as one of this program; empty: nothing.
std::string form_fault(const nlohmann::json& certificate);
// The first place where two documents differ, other than in what a run measures or words freely: times, reasons, errors.
// Empty: nowhere.
std::string first_difference(const nlohmann::json& derived, const nlohmann::json& given, const std::string& place);
// What a tally's errors cannot be: over the bound where nothing failed, or of more cases than there were.
std::string error_fault(const nlohmann::json& tally);

}  // namespace backplane::conformance
