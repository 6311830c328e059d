// SPDX-License-Identifier: Apache-2.0
#include "verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "harness/supervisor.hpp"

namespace bp::conformance {

void Tally::add(const Result& result) {
  ++counts[static_cast<size_t>(result.outcome)];
  nanoseconds += result.nanoseconds;
  if (result.error_share < 0) return;
  worst_share = std::max(worst_share, result.error_share);
  const int power = result.error_share > 0 ? static_cast<int>(std::ceil(std::log2(result.error_share))) : -100;
  ++share_bins[static_cast<size_t>(std::clamp(power + 10, 0, 11))];
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

// The second profile asks for storage and matmul in one of the 16-bit floats.
bool has_half(const Verdict& verdict) {
  const auto all_of = [&](uint32_t dtype) {
    for (const uint32_t op : {BP_OP_COPY, BP_OP_CAST, BP_OP_MATMUL}) {
      const auto cell = verdict.matrix.find({op, dtype});
      if (cell == verdict.matrix.end() || cell->second.state() != "pass") return false;
    }
    return true;
  };
  return all_of(BP_F16) || all_of(BP_BF16);
}

std::string why_not(const Verdict& verdict, uint32_t profile) {
  const ProfileState& state = verdict.profiles.at(profile);
  std::vector<std::string> reasons;
  if (state.failures != 0) reasons.push_back(fmt::format("{} failed", state.failures));
  if (state.absent != 0) reasons.push_back(fmt::format("{} mandatory cases are not claimed", state.absent));
  if (!state.complete) reasons.push_back("the run was of a part only");
  if (reasons.empty()) reasons.push_back("neither f16 nor bf16 is there for copy, cast and matmul");
  return fmt::format("{}", fmt::join(reasons, ", "));
}

// How many operators have a dtype that passes whatever was asked of it.
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

std::string statement_of(const Verdict& verdict, const Facts& facts, uint32_t asked) {
  if (!facts.error.empty()) return fmt::format("not certified: {}", facts.error);
  const std::string who = fmt::format("{} {} on {}", facts.plugin, facts.version, facts.device);
  const size_t operators = passing_operators(verdict);
  const std::string claims = fmt::format("it supports {:.1f} % of what was asked", 100 * verdict.supported_fraction);
  if (verdict.level == asked) return fmt::format("{} is certified at {}; {}", who, upper(profile_name(asked)), claims);
  const std::string reached =
      verdict.level == 0 ? "" : fmt::format("certified at {}, and ", upper(profile_name(verdict.level)));
  return fmt::format("{} is {}not certified at {}: {}; {}, {} operator{} pass{}", who, reached,
                     upper(profile_name(asked)), why_not(verdict, asked), claims, operators, operators == 1 ? "" : "s",
                     operators == 1 ? "es" : "");
}

}  // namespace

Verdict judge(const Catalogue& catalogue, const std::vector<size_t>& selection, const std::vector<Result>& results,
              const Selection& asked, const Facts& facts) {
  Verdict verdict;
  for (uint32_t profile = BP_PROFILE_CORE; profile <= asked.profile; ++profile) verdict.profiles[profile] = {};
  for (size_t index = 0; index < selection.size(); ++index) {
    const Case& which = catalogue[selection[index]];
    const Result& result = results[index];
    verdict.all.add(result);
    verdict.groups[group_of(which.id)].add(result);
    if (!which.extension.empty()) verdict.extensions[std::string(which.extension)].add(result);
    if (which.op != 0) verdict.matrix[{which.op, which.dtype}].add(result);
    const bool mandatory = which.extension.empty() && which.profile != BP_PROFILE_COMPOSITE;
    for (auto& [profile, state] : verdict.profiles) {
      if (!within(which.profile, profile)) continue;
      state.mandatory += mandatory ? 1 : 0;
      state.absent += mandatory && result.outcome == Outcome::not_claimed ? 1 : 0;
      state.failures += is_failure(result.outcome) ? 1 : 0;
    }
  }
  const uint64_t total = verdict.all.total();
  verdict.supported_fraction =
      total == 0 ? 0 : 1 - static_cast<double>(verdict.all.of(Outcome::not_claimed)) / static_cast<double>(total);
  for (auto& [profile, state] : verdict.profiles) {
    state.complete = asked.filters.empty() && facts.error.empty();
    state.reached = state.complete && state.mandatory != 0 && state.absent == 0 && state.failures == 0 &&
                    (profile < BP_PROFILE_INFER || has_half(verdict)) && verdict.level + 1 == profile;
    if (state.reached) verdict.level = profile;
  }
  verdict.statement = statement_of(verdict, facts, asked.profile);
  return verdict;
}

}  // namespace bp::conformance
