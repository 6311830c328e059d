// SPDX-License-Identifier: Apache-2.0
#include "certify_summary.hpp"

#include <algorithm>
#include <vector>

#include "table.hpp"

namespace tool {

namespace {

using Certificate = nlohmann::json;

constexpr size_t kMostSummedCauses = 8;
constexpr size_t kMostGroups = 4;
constexpr size_t kMostMissing = 5;         // maximum number of printed groups of cases that are not claimed
constexpr size_t kMostSummedReason = 400;  // maximum length of a printed reason in bytes

std::string list(const Certificate& names) {
  std::string result;
  for (const Certificate& name : names) result += (result.empty() ? "" : ", ") + name.get<std::string>();
  return result;
}

// Lists the groups with the most cases, the largest group first, and states the number of the other groups.
std::string groups_text(const Certificate& groups) {
  std::vector<std::pair<std::string, uint64_t>> sorted;
  for (const auto& [name, count] : groups.items()) sorted.emplace_back(name, count);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string result;
  for (size_t index = 0; index < std::min(sorted.size(), kMostGroups); ++index)
    result += fmt::format("{}{} {}", index == 0 ? "" : ", ", sorted[index].first, sorted[index].second);
  if (sorted.size() > kMostGroups) result += fmt::format(" and {} more groups", sorted.size() - kMostGroups);
  return result;
}

std::string outcomes_text(const Certificate& outcomes) {
  std::string result;
  for (const auto& [name, count] : outcomes.items())
    result += fmt::format("{}{} {}", result.empty() ? "" : ", ", count.get<uint64_t>(), name);
  return result;
}

// Returns the text of the field `reason`. Escapes and shortens the text, because a plugin's message may be long or
// contain control characters.
std::string reason_of(const Certificate& cause) {
  std::string reason = printable(cause["reason"].get<std::string>());
  if (reason.size() <= kMostSummedReason) return reason;
  return valid_utf8(reason.substr(0, kMostSummedReason)) + " … (cut; the certificate has it whole)";
}

void print_cause(Session& session, const Certificate& cause) {
  const uint64_t count = cause["count"];
  const std::string outcome = count == 1 ? cause["outcomes"].items().begin().key() : outcomes_text(cause["outcomes"]);
  session.print("\n{}{} {}\n  {}\n", styled(outcome, Style::bad, session.colour), count == 1 ? "" : ", first",
                cause["first"].get<std::string>(), reason_of(cause));
  const auto row = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) session.print("  {:<12} {}\n", name, value);
  };
  row("slot", cause["slot"]);
  row("requirement", list(cause["requirements"]));
  row("remedy", cause["remedy"]);
  row("guide", cause["guide"]);
  if (count > 1) row("where", groups_text(cause["groups"]));
  session.print("  {}\n", cause["repro"].get<std::string>());
}

void print_causes(Session& session, const Certificate& causes) {
  if (causes.empty()) return;
  uint64_t failures = 0;
  for (const Certificate& cause : causes) failures += cause["count"].get<uint64_t>();
  const uint64_t first = causes[0]["count"];
  if (causes.size() == 1 && failures > 1) {
    session.print("\nOne cause explains all {} failures.\n", failures);
  } else if (causes.size() > 1 && 2 * first >= failures) {
    session.print("\nOne cause explains {} of {} failures; {} more have the rest.\n", first, failures,
                  causes.size() - 1);
  }
  const size_t shown = std::min(causes.size(), kMostSummedCauses);
  for (size_t index = 0; index < shown; ++index) print_cause(session, causes[index]);
  if (causes.size() > shown) session.print("\n{} more causes are in the certificate.\n", causes.size() - shown);
}

// Prints the groups of mandatory cases that the plugin declined. Each group is printed with its
// first case and the plugin's reason.
void print_missing(Session& session, const Certificate& non_passes) {
  std::vector<std::pair<std::string, std::vector<const Certificate*>>> groups;
  size_t count = 0;
  for (const Certificate& each : non_passes) {
    if (!each.contains("mandatory")) continue;
    ++count;
    const std::string id = each["id"];
    const std::string name = id.substr(0, id.find('.', id.find('.') + 1));
    if (groups.empty() || groups.back().first != name) groups.push_back({name, {}});
    groups.back().second.push_back(&each);
  }
  if (count == 0) return;
  session.print("Mandatory and not claimed: {}; the certificate lists all\n", count);
  for (size_t index = 0; index < std::min(groups.size(), kMostMissing); ++index) {
    const Certificate& first = *groups[index].second.front();
    session.print("  {:<4} {}: {}\n", groups[index].second.size(), first["id"].get<std::string>(), reason_of(first));
  }
  if (groups.size() > kMostMissing) session.print("  and {} more groups\n", groups.size() - kMostMissing);
}

}  // namespace

void print_interrupted(Session& session, const Certificate& certificate) {
  print_causes(session, certificate["causes"]);
  const Certificate& run = certificate["run"];
  session.print("\nInterrupted: {} cases ran, and {} cases were not reached. To continue, add: --resume --seed {}\n",
                run["cases"].get<uint64_t>(), run["not_reached"].get<uint64_t>(), run["seed"].get<uint64_t>());
}

void print_summary(Session& session, const Certificate& certificate) {
  const Certificate& verdict = certificate["verdict"];
  print_causes(session, certificate["causes"]);
  session.print("\n{}\n", verdict["statement"].get<std::string>());
  std::string counts;
  for (const auto& [name, count] : verdict["counts"].items()) {
    if (count != 0) counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count.get<uint64_t>(), name);
  }
  session.print("{} cases in {:.1f} s: {}; seed {}\n", certificate["run"]["cases"].get<uint64_t>(),
                certificate["run"]["seconds"].get<double>(), counts, certificate["run"]["seed"].get<uint64_t>());
  if (const uint64_t left = certificate["run"]["not_reached"]; left != 0)
    session.print("The run stopped at its first failure: {} more cases were not reached\n", left);
  if (const Certificate& groups = certificate["run"]["stopped_groups"]; !groups.empty())
    session.print("{} stopped after equal failures (--equal-failures) or three hangs\n",
                  groups.size() == 1 ? "The group " + list(groups) : fmt::format("{} groups", groups.size()));
  for (const auto& [name, state] : verdict["profiles"].items()) {
    session.print("  {:<6} {}\n", name,
                  state["reached"]
                      ? "reached"
                      : fmt::format("not reached: {} failed, {} of {} mandatory cases not claimed",
                                    state["failures"].get<uint64_t>(), state["mandatory_not_claimed"].get<uint64_t>(),
                                    state["mandatory"].get<uint64_t>()));
  }
  print_missing(session, certificate["non_passes"]);
  std::string extensions;
  for (const auto& [name, tally] : verdict["extensions"].items())
    extensions += fmt::format("{}{} {}", extensions.empty() ? "" : ", ", name, tally["state"].get<std::string>());
  if (!extensions.empty()) session.print("  extensions: {}\n", extensions);
}

}  // namespace tool
