// SPDX-License-Identifier: Apache-2.0
#include "verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "harness/supervisor.hpp"
#include "names.hpp"

namespace backplane::conformance {

constexpr double kMostRatio = 1e12;

size_t bin_of_ratio(double ratio) {
  if (!(ratio <= 1)) return kRatioBinCount - 1;
  int exponent = 0;  // ratio = part * 2^exponent with part in [1/2, 1)
  const double part = std::frexp(ratio, &exponent);
  const int power = ratio > 0 ? exponent - (part == 0.5 ? 1 : 0) : -100;  // the least with ratio <= 2^power
  return static_cast<size_t>(std::max(0, power + 10));
}

void Tally::add(const Result& result) {
  ++counts[static_cast<size_t>(result.outcome)];
  nanoseconds += result.nanoseconds;
  if (result.error_ratio < 0) return;  // not measured
  // JSON has no infinity and no NaN; such errors exceed every bound.
  const double ratio = result.error_ratio < kMostRatio ? result.error_ratio : kMostRatio;
  worst_ratio = std::max(worst_ratio, ratio);
  ++ratio_bins[bin_of_ratio(ratio)];
}

uint64_t Tally::failures() const {
  uint64_t sum = 0;
  for (size_t outcome = 0; outcome < counts.size(); ++outcome)
    sum += is_failure(static_cast<Outcome>(outcome)) ? counts[outcome] : 0;
  return sum;
}

uint64_t Tally::total() const {
  uint64_t sum = 0;
  for (const uint64_t count : counts) sum += count;
  return sum;
}

std::string_view Tally::state() const {
  if (failures() != 0) return "fail";
  if (of(Outcome::pass) == 0) return "not_claimed";
  return of(Outcome::not_claimed) == 0 ? "pass" : "partial";
}

namespace {

// INFER requires storage and matmul in f16 or bf16: all cases of these operators with the extension
// of that name must pass. Cases of further extensions, such as other accumulators, do not count
// here.
class HalfRule {
 public:
  void add(const Case& which, Outcome outcome) {
    for (size_t half = 0; half < kDtypes.size(); ++half) {
      for (size_t op = 0; op < kOps.size(); ++op) {
        if (which.dtype != kDtypes[half] || which.op != kOps[op] || which.extension != kNames[half]) continue;
        ++(outcome == Outcome::pass ? passed_ : rest_)[half][op];
      }
    }
  }
  bool holds() const {
    for (size_t half = 0; half < kDtypes.size(); ++half) {
      bool all = true;
      for (size_t op = 0; op < kOps.size(); ++op) all = all && passed_[half][op] != 0 && rest_[half][op] == 0;
      if (all) return true;
    }
    return false;
  }

 private:
  static constexpr std::array<uint32_t, 2> kDtypes = {BP_F16, BP_BF16};
  static constexpr std::array<std::string_view, 2> kNames = {"f16", "bf16"};
  static constexpr std::array<uint32_t, 3> kOps = {BP_OP_COPY, BP_OP_CAST, BP_OP_MATMUL};
  std::array<std::array<uint64_t, 3>, 2> passed_{}, rest_{};
};

std::vector<std::string> reasons_of(const ProfileState& state, uint32_t profile, uint32_t level, bool half,
                                    const std::string& error) {
  std::vector<std::string> reasons;
  if (!error.empty()) return {"nothing could be run"};
  if (!state.complete) reasons.push_back("the run was of a part only");
  if (state.failures != 0) reasons.push_back(fmt::format("{} of its cases failed", state.failures));
  if (state.absent != 0)
    reasons.push_back(fmt::format("{} of its {} mandatory cases are not claimed", state.absent, state.mandatory));
  if (state.mandatory == 0) reasons.push_back("no mandatory case was asked");
  if (profile >= BP_PROFILE_INFER && !half && state.complete)
    reasons.push_back("neither f16 nor bf16 passes everywhere in copy, cast and matmul");
  if (reasons.empty() && level + 1 < profile)
    reasons.push_back(fmt::format("{} is not reached", profile_name(profile - 1)));
  return reasons;
}

// 100 % is reserved for all.
std::string percent(double fraction) {
  return fraction >= 1 ? "100 %" : fmt::format("{:.1f} %", std::floor(1000 * fraction) / 10);
}

// The number of operators with a dtype whose cases all pass.
size_t passing_operators(const Verdict& verdict) {
  uint32_t last = 0;
  size_t count = 0;
  for (const auto& [cell, tally] : verdict.matrix) {
    if (cell.first == last || tally.state() != "pass") continue;
    last = cell.first;
    ++count;
  }
  return count;
}

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return static_cast<char>(std::toupper(c)); });
  return result;
}

std::string statement_of(const Verdict& verdict, const Facts& facts, const Selection& selection) {
  if (!facts.error.empty()) return fmt::format("not certified: {}", facts.error);
  const std::string who = fmt::format("{} {} on {}", facts.plugin, facts.version, facts.device);
  const size_t operators = passing_operators(verdict);
  const std::string claims = fmt::format("it supports {} of what was asked", percent(verdict.supported_fraction));
  const auto at = [&](uint32_t profile) {
    return fmt::format("{} of ABI {}", upper(profile_name(profile)), version_text(selection.abi_version));
  };
  const uint32_t asked = selection.profile;
  if (verdict.level == asked) return fmt::format("{} is certified at {}; {}", who, at(asked), claims);
  const std::string reached = verdict.level == 0 ? "" : fmt::format("certified at {}, and ", at(verdict.level));
  return fmt::format("{} is {}not certified at {}: {}; {}, {} operator{} pass{}", who, reached,
                     verdict.level == 0 ? at(asked) : upper(profile_name(asked)),
                     fmt::join(verdict.profiles.at(asked).reasons, ", "), claims, operators, operators == 1 ? "" : "s",
                     operators == 1 ? "es" : "");
}

}  // namespace

Verdict judge(const Catalogue& catalogue, const std::vector<size_t>& selection, const std::vector<Result>& results,
              const Selection& asked, const Facts& facts) {
  Verdict verdict;
  HalfRule half;
  uint64_t asked_for = 0;
  for (uint32_t profile = BP_PROFILE_CORE; profile <= asked.profile; ++profile) verdict.profiles[profile] = {};
  for (size_t index = 0; index < selection.size(); ++index) {
    const Case& which = catalogue[selection[index]];
    const Result& result = results[index];
    verdict.all.add(result);
    half.add(which, result.outcome);
    verdict.groups[group_of(which.id)].add(result);
    // A composite that is not native is decomposed, so nothing is missing.
    const bool decomposed = which.profile == BP_PROFILE_COMPOSITE && result.outcome == Outcome::not_claimed;
    asked_for += decomposed ? 0 : 1;
    if (!which.extension.empty() && !decomposed) verdict.extensions[std::string(which.extension)].add(result);
    if (which.op != 0) verdict.matrix[{which.op, which.dtype}].add(result);
    const bool mandatory = is_mandatory(which);
    for (auto& [profile, state] : verdict.profiles) {
      if (!within(which.profile, profile)) continue;
      state.mandatory += mandatory ? 1 : 0;
      state.absent += mandatory && result.outcome == Outcome::not_claimed ? 1 : 0;
      state.failures += is_failure(result.outcome) ? 1 : 0;
    }
  }
  verdict.supported_fraction =
      asked_for == 0 ? 0 : static_cast<double>(verdict.all.of(Outcome::pass)) / static_cast<double>(asked_for);
  for (auto& [profile, state] : verdict.profiles) {
    state.complete = asked.filters.empty() && !asked.cut && facts.error.empty();
    state.reasons = reasons_of(state, profile, verdict.level, half.holds(), facts.error);
    state.reached = state.reasons.empty();
    if (state.reached) verdict.level = profile;
  }
  verdict.statement = statement_of(verdict, facts, asked);
  return verdict;
}

}  // namespace backplane::conformance
