// SPDX-License-Identifier: Apache-2.0
// The verdict of a run: the profile, the extensions, and the supported fraction of the suite.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/run.hpp"
#include "harness/select.hpp"

namespace backplane::conformance {

using Counts = std::array<uint64_t, kOutcomeCount>;  // by Outcome

// Bins of error ratios. Bin i contains (2^(i-11), 2^(i-10)], bin 0 all smaller ratios, and bin 11
// errors that exceed the bound.
inline constexpr size_t kRatioBinCount = 12;
size_t bin_of_ratio(double ratio);

struct Tally {
  Counts counts{};
  uint64_t nanoseconds = 0;
  double worst_ratio = -1;  // maximum ratio of an error to its bound; negative: not measured
  std::array<uint64_t, kRatioBinCount> ratio_bins{};
  void add(const Result& result);
  uint64_t of(Outcome outcome) const { return counts[static_cast<size_t>(outcome)]; }
  uint64_t failures() const;
  uint64_t total() const;
  // "pass", "fail", "not_claimed", or "partial" if some pass and some are not claimed.
  std::string_view state() const;
};

// Whether the case is mandatory: a plugin that declines it does not reach the profile.
inline bool is_mandatory(const Case& which) { return which.extension.empty() && which.profile != BP_PROFILE_COMPOSITE; }

struct ProfileState {
  uint64_t mandatory = 0;  // cases that a plugin may not decline
  uint64_t absent = 0;     // mandatory cases that were declined
  // failures among all cases in the profile that ran, including claimed extensions
  uint64_t failures = 0;
  bool complete = false;  // every case of the profile ran
  bool reached = false;
  std::vector<std::string> reasons{};  // why the profile is not reached; empty if it is
};

struct Verdict {
  uint32_t level = 0;  // BP_PROFILE_*: the highest profile that is reached; 0: none
  std::string statement{};
  Tally all{};
  // Passes as a fraction of all cases that ran or were declined. Composites without a native
  // version do not count.
  double supported_fraction = 0;
  std::map<uint32_t, ProfileState> profiles{};
  std::map<std::string, Tally, std::less<>> extensions{};
  std::map<std::string, Tally, std::less<>> groups{};
  std::map<std::pair<uint32_t, uint32_t>, Tally> matrix{};  // by operator and dtype
};

Verdict judge(const Catalogue& catalogue, const std::vector<size_t>& selection, const std::vector<Result>& results,
              const Selection& asked, const Facts& facts);

}  // namespace backplane::conformance
