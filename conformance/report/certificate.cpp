// SPDX-License-Identifier: Apache-2.0
#include "certificate.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "causes.hpp"
#include "digest.hpp"
#include "harness/reason.hpp"
#include "harness/supervisor.hpp"
#include "names.hpp"
#include "suite_digest.h"

namespace backplane::conformance {

namespace {

using Json = nlohmann::json;

Json counts_of(const Tally& tally) {
  Json counts = Json::object();
  for (size_t outcome = 0; outcome < tally.counts.size(); ++outcome)
    counts[std::string(name_of(static_cast<Outcome>(outcome)))] = tally.counts[outcome];
  return counts;
}

Json tally_of(const Tally& tally) {
  Json json = {{"state", tally.state()},
               {"counts", counts_of(tally)},
               {"seconds", static_cast<double>(tally.nanoseconds) * 1e-9}};
  if (tally.worst_ratio >= 0) json["error"] = {{"worst_share", tally.worst_ratio}, {"bins", tally.ratio_bins}};
  return json;
}

// Returns the canonical text of a document: sorted keys, no spaces and only ASCII. Each float is the
// shortest text that parses to the same value. Python's json.dumps(document, sort_keys=True,
// separators=(",", ":")) returns the same text.
std::string canonical(const Json& json) {
  std::string text;
  if (json.is_object()) {
    for (const auto& [key, value] : json.items())
      text += fmt::format("{}{}:{}", text.empty() ? "" : ",", Json(key).dump(-1, ' ', true), canonical(value));
    return "{" + text + "}";
  }
  if (json.is_array()) {
    for (const Json& value : json) text += (text.empty() ? "" : ",") + canonical(value);
    return "[" + text + "]";
  }
  if (!json.is_number_float()) return json.dump(-1, ' ', true);
  text = fmt::format("{}", json.get<double>());
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

Json plugin_of(const Facts& facts, const RunFacts& run) {
  return {
      {"name", facts.plugin},
      {"version", facts.version},
      {"file", std::filesystem::path(run.target.path).filename().string()},
      {"sha256", sha256_of_file(run.target.path)},
      {"abi", {{"built_for", version_text(facts.abi_version)}, {"oldest_host", version_text(facts.abi_version_min)}}},
      {"build_flags", build_flag_names(facts.build_flags)}};
}

Json device_of(const Facts& facts, const RunFacts& run) {
  return {{"index", run.target.device_index},
          {"name", facts.device},
          {"driver", facts.driver},
          {"type", device_type_name(facts.device_type)},
          {"alignment", facts.alignment},
          {"max_buffer_bytes", facts.max_buffer_bytes},
          {"memory_kinds", memory_kind_names(facts.memory_kinds)},
          {"capabilities", capability_names(facts.capabilities)}};
}

Json verdict_of(const Verdict& verdict, uint32_t abi_version) {
  Json profiles = Json::object();
  for (const auto& [profile, state] : verdict.profiles) {
    profiles[std::string(profile_name(profile))] = {
        {"reached", state.reached},   {"mandatory", state.mandatory}, {"mandatory_not_claimed", state.absent},
        {"failures", state.failures}, {"complete", state.complete},   {"reasons", state.reasons}};
  }
  Json extensions = Json::object();
  for (const auto& [name, tally] : verdict.extensions) extensions[name] = tally_of(tally);
  return {{"level", profile_name(verdict.level)},
          {"abi", version_text(abi_version)},
          {"statement", verdict.statement},
          {"supported_fraction", verdict.supported_fraction},
          {"counts", counts_of(verdict.all)},
          {"profiles", profiles},
          {"extensions", extensions}};
}

// Returns the number of cases that the selection omits because their `since` is later than the
// measured ABI version.
size_t not_requested(const Catalogue& catalogue, Selection selection) {
  const size_t requested = select(catalogue, selection).size();
  selection.abi_version = UINT32_MAX;
  return select(catalogue, selection).size() - requested;
}

// Returns the names of the groups whose remaining cases were not run after repeated failures.
Json stopped_groups(const Json& non_passes) {
  std::set<std::string> names;
  for (const Json& each : non_passes) {
    if (each["outcome"] == "not_run" &&
        each["reason"].get_ref<const std::string&>().find(kGivenUpMark) != std::string::npos)
      names.insert(group_of(each["id"].get_ref<const std::string&>()));
  }
  return names;
}

}  // namespace

std::string_view suite_digest() { return BACKPLANE_SUITE_DIGEST; }
std::string_view suite_version() { return BACKPLANE_SUITE_VERSION; }

std::string repro_line(const Target& target, uint64_t seed, std::string_view id, uint32_t profile) {
  std::string path;  // the library's path, with its quotes escaped for a shell
  for (const char c : target.path) path += c == '\'' ? std::string("'\\''") : std::string(1, c);
  const bool plain = target.path.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+") == std::string::npos;
  return fmt::format("backplane certify {} --device {} --profile {} --seed {} --filter {}",
                     plain ? path : "'" + path + "'", target.device_index, profile_name(profile), seed, id);
}

std::string digest_of(const Json& certificate) {
  Json remaining = certificate;
  remaining.erase("digest");
  return sha256(canonical(remaining));
}

Json certificate_of(const Catalogue& catalogue, const std::vector<size_t>& selection,
                    const std::vector<Result>& results, const Verdict& verdict, const Facts& facts,
                    const RunFacts& run) {
  Json matrix = Json::array(), groups = Json::object(), non_passes = Json::array();
  for (const auto& [cell, tally] : verdict.matrix) {
    Json json = tally_of(tally);
    json["op"] = op_name(cell.first);
    json["dtype"] = dtype_name(cell.second);
    matrix.push_back(std::move(json));
  }
  for (const auto& [name, tally] : verdict.groups) groups[name] = tally_of(tally);
  for (size_t index = 0; index < selection.size(); ++index) {
    const Result& result = results[index];
    if (result.outcome == Outcome::pass) continue;
    const Case& which = catalogue[selection[index]];
    Json json = {{"id", which.id},
                 {"outcome", name_of(result.outcome)},
                 {"reason", result.message},
                 {"requirements", which.requirements}};
    if (is_failure(result.outcome)) json["repro"] = repro_line(run.target, run.seed, which.id, run.selection.profile);
    if (result.outcome == Outcome::not_claimed && is_mandatory(which)) json["mandatory"] = profile_name(which.profile);
    non_passes.push_back(std::move(json));
  }
  Json certificate = {
      {"schema", "backplane.certificate"},
      {"version", 1},
      {"suite", {{"version", suite_version()}, {"digest", suite_digest()}, {"cases", catalogue.size()}}},
      {"plugin", plugin_of(facts, run)},
      {"device", device_of(facts, run)},
      {"run",
       {{"profile", profile_name(run.selection.profile)},
        {"filters", run.selection.filters},
        {"error", facts.error},
        {"seed", run.seed},
        {"cases", selection.size()},
        {"not_asked", not_requested(catalogue, run.selection)},
        {"not_reached", run.not_reached},
        {"jobs", run.jobs},
        {"started", run.started},
        {"seconds", run.seconds},
        {"resumed", run.resumed},
        {"in_process", run.selection.in_process}}},
      {"verdict", verdict_of(verdict, run.selection.abi_version)},
      {"matrix", matrix},
      {"groups", groups},
      {"non_passes", non_passes}};
  if (!run.selection.in_process) {  // a run in one process has no limits
    certificate["run"]["timeout_seconds"] = static_cast<double>(run.limits.case_ns) / 1e9;
    certificate["run"]["memory_limit_mib"] = run.limits.resident_bytes >> 20;
  }
  // Serializes and parses the certificate once. This round trip replaces invalid UTF-8 in a
  // plugin's messages, and rounds numbers to the values that a reader will see.
  certificate = Json::parse(certificate.dump(-1, ' ', false, Json::error_handler_t::replace));
  certificate["run"]["stopped_groups"] = stopped_groups(certificate["non_passes"]);
  certificate["causes"] = causes_of(certificate["non_passes"]);
  certificate["digest"] = digest_of(certificate);
  return certificate;
}

}  // namespace backplane::conformance
