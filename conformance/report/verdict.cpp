// SPDX-License-Identifier: Apache-2.0
#include "verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <backplane/rules/dtypes.hpp>
#include <cctype>
#include <cmath>
#include <span>

#include "harness/supervisor.hpp"
#include "names.hpp"

namespace backplane::conformance {

constexpr double kMostRatio = 1e12;
constexpr size_t kMostOperatorsShown = 12;  // maximum number of operators that the statement names

size_t bin_of_ratio(double ratio) {
  if (!(ratio <= 1)) return kRatioBinCount - 1;
  int exponent = 0;  // ratio = part * 2^exponent with part in [1/2, 1)
  const double part = std::frexp(ratio, &exponent);
  // The smallest power with ratio <= 2^power.
  const int power = ratio > 0 ? exponent - (part == 0.5 ? 1 : 0) : -100;
  return static_cast<size_t>(std::max(0, power + 10));
}

void Tally::add(const Result& result) {
  ++counts[static_cast<size_t>(result.outcome)];
  nanoseconds += result.nanoseconds;
  if (result.error_ratio < 0) return;  // the case measured no error
  // JSON has no infinity or NaN, so a large finite number replaces them.
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

// Checks INFER's rule for 16-bit floats. All cases of copy, cast and matmul with the extension f16
// must pass, or all with the extension bf16. The rule ignores cases with another extension.
class HalfRule {
 public:
  void add(const Case& which, Outcome outcome) {
    for (size_t half = 0; half < kDtypes.size(); ++half) {
      for (size_t op = 0; op < kOps.size(); ++op) {
        if (which.dtype != kDtypes[half] || which.op != kOps[op] || which.extension != kNames[half]) continue;
        ++(outcome == Outcome::pass ? passed_ : others_)[half][op];
      }
    }
  }
  bool holds() const {
    for (size_t half = 0; half < kDtypes.size(); ++half) {
      bool all = true;
      for (size_t op = 0; op < kOps.size(); ++op) all = all && passed_[half][op] != 0 && others_[half][op] == 0;
      if (all) return true;
    }
    return false;
  }

 private:
  static constexpr std::array<uint32_t, 2> kDtypes = {BP_F16, BP_BF16};
  static constexpr std::array<std::string_view, 2> kNames = {"f16", "bf16"};
  static constexpr std::array<uint32_t, 3> kOps = {BP_OP_COPY, BP_OP_CAST, BP_OP_MATMUL};
  std::array<std::array<uint64_t, 3>, 2> passed_{}, others_{};
};

// Finds the operators that pass. An operator passes if none of its cases fails and, for at least
// one dtype, all numeric cases pass. The plugin may decline cases whose extension is not that
// dtype.
class PassingOperators {
 public:
  void add(const Case& which, Outcome outcome) {
    if (which.op == 0) return;
    Operator& op = operators_[which.op];
    op.failed = op.failed || is_failure(outcome);
    const bool due = which.extension.empty() || which.extension == rules::dtype_name(which.dtype);
    if (which.dtype == 0 || !due || !std::string_view(which.id).starts_with("numeric.")) return;
    Dtype& dtype = op.dtypes[which.dtype];
    ++(outcome == Outcome::pass ? dtype.passed : dtype.declined);
  }
  // Returns a text for each operator, for example "add (f32, i32)".
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [id, op] : operators_) {
      std::vector<std::string_view> dtypes;
      for (const auto& [dtype, cases] : op.dtypes) {
        if (cases.passed != 0 && cases.declined == 0) dtypes.emplace_back(rules::dtype_name(dtype));
      }
      if (!op.failed && !dtypes.empty()) names.push_back(fmt::format("{} ({})", op_name(id), fmt::join(dtypes, ", ")));
    }
    return names;
  }

 private:
  struct Dtype {
    uint64_t passed = 0, declined = 0;
  };
  struct Operator {
    bool failed = false;
    std::map<uint32_t, Dtype> dtypes;
  };
  std::map<uint32_t, Operator> operators_;
};

bool is_part(const Selection& selection) { return !selection.filters.empty() || selection.cut; }

std::vector<std::string> reasons_of(const ProfileState& state, uint32_t profile, uint32_t level, bool half,
                                    const Selection& requested, const std::string& error) {
  std::vector<std::string> reasons;
  if (!error.empty()) return {"nothing could be run"};
  if (is_part(requested)) reasons.push_back("the run was of a part only");
  if (requested.in_process) reasons.push_back("the run used one process and no limits");
  if (state.failures != 0) reasons.push_back(fmt::format("{} of its cases failed", state.failures));
  if (state.absent != 0)
    reasons.push_back(fmt::format("{} of its {} mandatory cases are not claimed", state.absent, state.mandatory));
  if (state.mandatory == 0) reasons.push_back("no mandatory case was requested");
  if (profile >= BP_PROFILE_INFER && !half && state.complete)
    reasons.push_back("neither f16 nor bf16 passes everywhere in copy, cast and matmul");
  if (reasons.empty() && level + 1 < profile)
    reasons.push_back(fmt::format("{} is not reached", profile_name(profile - 1)));
  return reasons;
}

// Rounds down, so that "100 %" means every case.
std::string percent(double fraction) {
  return fraction >= 1 ? "100 %" : fmt::format("{:.1f} %", std::floor(1000 * fraction) / 10);
}

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return static_cast<char>(std::toupper(c)); });
  return result;
}

// Returns text such as "2 operators pass: add (f32), mul (f32)".
std::string passing_text(const std::vector<std::string>& operators) {
  const std::span<const std::string> shown(operators.data(), std::min(operators.size(), kMostOperatorsShown));
  const size_t hidden = operators.size() - shown.size();
  return fmt::format("{} operator{} pass{}{}{}{}", operators.size(), operators.size() == 1 ? "" : "s",
                     operators.size() == 1 ? "es" : "", shown.empty() ? "" : ": ", fmt::join(shown, ", "),
                     hidden == 0 ? "" : fmt::format(" and {} more", hidden));
}

std::string statement_of(const Verdict& verdict, const Facts& facts, const Selection& selection,
                         const std::vector<std::string>& operators) {
  if (!facts.error.empty()) return fmt::format("not certified: {}", facts.error);
  const std::string subject = fmt::format("{} {} on {}", facts.plugin, facts.version, facts.device);
  const auto at = [&](uint32_t profile) {
    return fmt::format("{} of ABI {}", upper(profile_name(profile)), version_text(selection.abi_version));
  };
  const uint32_t requested = selection.profile;
  const ProfileState& state = verdict.profiles.at(requested);
  if (!state.complete) {
    return fmt::format("{}: in {}{}, {} cases pass, {} fail, {} are not claimed; {}. {} certifies no profile", subject,
                       is_part(selection) ? "a part of " : "", at(requested), verdict.all.of(Outcome::pass),
                       verdict.all.failures(), verdict.all.of(Outcome::not_claimed), passing_text(operators),
                       selection.in_process ? "A run in one process and without limits" : "A part");
  }
  const std::string claims = fmt::format("it supports {} of the requested cases", percent(verdict.supported_fraction));
  if (verdict.level == requested) return fmt::format("{} is certified at {}; {}", subject, at(requested), claims);
  const std::string reached = verdict.level == 0 ? "" : fmt::format("certified at {}, and ", at(verdict.level));
  return fmt::format("{} is {}not certified at {}: {}; {}, {}", subject, reached,
                     verdict.level == 0 ? at(requested) : upper(profile_name(requested)),
                     fmt::join(state.reasons, ", "), claims, passing_text(operators));
}

}  // namespace

Verdict judge(const Catalogue& catalogue, const std::vector<size_t>& selection, const std::vector<Result>& results,
              const Selection& requested, const Facts& facts) {
  Verdict verdict;
  HalfRule half;
  PassingOperators operators;
  uint64_t requested_cases = 0;
  for (uint32_t profile = BP_PROFILE_CORE; profile <= requested.profile; ++profile) verdict.profiles[profile] = {};
  for (size_t index = 0; index < selection.size(); ++index) {
    const Case& which = catalogue[selection[index]];
    const Result& result = results[index];
    verdict.all.add(result);
    half.add(which, result.outcome);
    operators.add(which, result.outcome);
    verdict.groups[group_of(which.id)].add(result);
    // Core's decomposition replaces a native composite, so a plugin that does not claim the composite lacks nothing. A
    // separate case tests the decomposition, and belongs to another profile.
    const bool replaced = which.profile == BP_PROFILE_COMPOSITE && result.outcome == Outcome::not_claimed;
    requested_cases += replaced ? 0 : 1;
    if (!which.extension.empty() && !replaced) verdict.extensions[std::string(which.extension)].add(result);
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
      requested_cases == 0 ? 0
                           : static_cast<double>(verdict.all.of(Outcome::pass)) / static_cast<double>(requested_cases);
  for (auto& [profile, state] : verdict.profiles) {
    state.complete = !is_part(requested) && !requested.in_process && facts.error.empty();
    state.reasons = reasons_of(state, profile, verdict.level, half.holds(), requested, facts.error);
    state.reached = state.reasons.empty();
    if (state.reached) verdict.level = profile;
  }
  verdict.statement = statement_of(verdict, facts, requested, operators.names());
  return verdict;
}

}  // namespace backplane::conformance
