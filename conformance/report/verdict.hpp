// SPDX-License-Identifier: Apache-2.0
// Computes the verdict of a run: the profile, the extensions, and the supported fraction of the
// suite.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/run.hpp"
#include "harness/select.hpp"

namespace backplane::conformance {

using Counts = std::array<uint64_t, kOutcomeCount>;  // indexed by Outcome

// Number of bins for error ratios. Bin 0 contains ratios up to 2^-10, and bin 11 contains ratios
// above 1. Each bin i between them contains ratios in (2^(i-11), 2^(i-10)].
inline constexpr size_t kRatioBinCount = 12;
size_t bin_of_ratio(double ratio);

struct Tally {
  Counts counts{};
  uint64_t nanoseconds = 0;
  double worst_ratio = -1;  // maximum ratio of an error to its bound; negative if not measured
  std::array<uint64_t, kRatioBinCount> ratio_bins{};
  void add(const Result& result);
  uint64_t of(Outcome outcome) const { return counts[static_cast<size_t>(outcome)]; }
  uint64_t failures() const;
  uint64_t total() const;
  // Returns "fail" if a case fails, "partial" if some cases pass and others are not claimed, and otherwise "pass" or
  // "not_claimed".
  std::string_view state() const;
};

// Returns whether the case is mandatory. A plugin that declines a mandatory case does not reach the
// profile. Native composites (BP_PROFILE_COMPOSITE) are optional, and their decompositions are not.
inline bool is_mandatory(const Case& which) { return which.extension.empty() && which.profile != BP_PROFILE_COMPOSITE; }

struct ProfileState {
  uint64_t mandatory = 0;  // number of cases that a plugin must not decline
  uint64_t absent = 0;     // number of mandatory cases that were declined
  // Number of failures among all cases of the profile, including cases of claimed extensions.
  uint64_t failures = 0;
  bool complete = false;  // whether every case of the profile was run, in processes with limits
  bool reached = false;
  std::vector<std::string> reasons{};  // reasons why the profile is not reached
};

struct Verdict {
  uint32_t level = 0;  // highest profile that is reached (BP_PROFILE_*); 0 for none
  std::string statement{};
  Tally all{};
  // Number of passed cases divided by the number of selected cases. Neither number includes
  // composites that the plugin does not implement natively.
  double supported_fraction = 0;
  std::map<uint32_t, ProfileState> profiles{};
  std::map<std::string, Tally, std::less<>> extensions{};
  std::map<std::string, Tally, std::less<>> groups{};
  std::map<std::pair<uint32_t, uint32_t>, Tally> matrix{};  // keyed by operator and dtype
};

Verdict judge(const Catalogue& catalogue, const std::vector<size_t>& selection, const std::vector<Result>& results,
              const Selection& requested, const Facts& facts);

}  // namespace backplane::conformance
