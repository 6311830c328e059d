// SPDX-License-Identifier: Apache-2.0
#include "verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cases/catalogue.hpp"
#include "report/causes.hpp"
#include "report/certificate.hpp"
#include "report/digest.hpp"
#include "report/names.hpp"
#include "report/verdict.hpp"
#include "verify_sample.hpp"

namespace backplane::conformance {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kPartNames[] = {"file", "form",    "digest", "suite", "plugin",
                                           "run",  "verdict", "device", "sample"};

std::optional<Outcome> outcome_named(const std::string& name) {
  for (int outcome = 0; outcome < kOutcomeCount; ++outcome) {
    if (name_of(static_cast<Outcome>(outcome)) == name) return static_cast<Outcome>(outcome);
  }
  return std::nullopt;
}

class Verifier {
 public:
  explicit Verifier(const VerifyOptions& options) : options_(options) {
    for (const std::string_view name : kPartNames) verification_.parts.push_back({name});
  }
  Verification run();

 private:
  Part& part(std::string_view name) {
    return *std::find_if(verification_.parts.begin(), verification_.parts.end(),
                         [&](const Part& each) { return each.name == name; });
  }
  void good(std::string_view name, std::string message) { part(name) = {name, Part::State::good, std::move(message)}; }
  void warn(std::string_view name, std::string message) {
    part(name) = {name, Part::State::warning, std::move(message)};
  }
  void refuse(std::string_view name, std::string message) {
    part(name) = {name, Part::State::refused, std::move(message)};
  }
  bool is_good(std::string_view name) {
    return part(name).state != Part::State::refused && part(name).state != Part::State::unchecked;
  }

  void check_digest();
  void check_suite();
  void check_plugin();
  void check_run();
  void check_verdict();
  std::string take_results();
  Json derive() const;
  void check_device();
  std::string plugin_difference(const Facts& facts) const;
  Limits limits() const;
  void check_sample();

  const VerifyOptions& options_;
  Verification verification_{};
  Json certificate_{};
  Catalogue catalogue_{};
  Selection requested_{};
  std::vector<size_t> selection_{};
  std::vector<Result> listed_{};  // results that the certificate lists, one per entry of selection_
  Target target_{};
};

void Verifier::check_digest() {
  const std::string digest = digest_of(certificate_);
  if (certificate_["digest"] != digest)
    return refuse("digest",
                  fmt::format("the content gives {:.16}…, and the certificate says {:.16}…: it was edited or damaged",
                              digest, certificate_["digest"].get<std::string>()));
  good("digest", fmt::format("{:.16}… is that of the content", digest));
}

void Verifier::check_suite() {
  const Json& suite = certificate_["suite"];
  if (suite["version"] != suite_version() || suite["digest"] != suite_digest())
    return refuse(
        "suite", fmt::format("it is of suite {} {:.16}…, and this program has {} {:.16}…; verify with the program that "
                             "certified, or certify again",
                             suite["version"].get<std::string>(), suite["digest"].get<std::string>(), suite_version(),
                             suite_digest()));
  if (suite["cases"] != catalogue_.size())
    return refuse("suite", fmt::format("it is of {} cases, and this suite has {}", suite["cases"].get<uint64_t>(),
                                       catalogue_.size()));
  good("suite", fmt::format("{} {:.16}… with {} cases, as this program has it", suite_version(), suite_digest(),
                            catalogue_.size()));
}

void Verifier::check_plugin() {
  const std::string digest = sha256_of_file(options_.library);
  if (certificate_["plugin"]["sha256"] != digest)
    return refuse("plugin", fmt::format("it is of another file: SHA-256 {:.16}…, and {} has {:.16}…",
                                        certificate_["plugin"]["sha256"].get<std::string>(), options_.library, digest));
  good("plugin", fmt::format("{} {}, SHA-256 {:.16}…", certificate_["plugin"]["name"].get<std::string>(),
                             certificate_["plugin"]["version"].get<std::string>(), digest));
}

void Verifier::check_run() {
  const Json& run = certificate_["run"];
  if (!run["error"].get<std::string>().empty())
    return refuse("run", fmt::format("nothing was run: {}", run["error"].get<std::string>()));
  if (!run["filters"].empty())
    return refuse(
        "run",
        fmt::format("it is of a part of the profile, with {} filters: that certifies nothing; certify without --filter",
                    run["filters"].size()));
  if (run["not_reached"] != 0)
    return refuse(
        "run", fmt::format("it stopped at its first failure, {} cases before its end: that certifies nothing; certify "
                           "without --fail-fast",
                           run["not_reached"].get<uint64_t>()));
  if (requested_.in_process)
    return refuse("run", "it used one process and no limits: that certifies nothing; certify without --in-process");
  if (run["cases"] != selection_.size())
    return refuse("run", fmt::format("it is of {} cases, and the profile has {}", run["cases"].get<uint64_t>(),
                                     selection_.size()));
  good("run", fmt::format("all {} cases of {} of ABI {}, seed {}", selection_.size(), run["profile"].get<std::string>(),
                          version_text(requested_.abi_version), run["seed"].get<uint64_t>()));
}

// Reads the results of the cases that did not pass, and marks all other cases as passed. Returns
// the error in the list, or "".
std::string Verifier::take_results() {
  std::map<std::string_view, size_t> indices;
  for (size_t index = 0; index < selection_.size(); ++index) indices[catalogue_[selection_[index]].id] = index;
  listed_.assign(selection_.size(), {Outcome::pass});
  for (const Json& each : certificate_["non_passes"]) {
    const auto& id = each["id"].get_ref<const std::string&>();
    const std::optional<Outcome> outcome = outcome_named(each["outcome"].get<std::string>());
    const auto entry = indices.find(id);
    if (entry == indices.end()) return fmt::format("it lists {}, which is no case of the run, or lists it twice", id);
    if (!outcome || *outcome == Outcome::pass)
      return fmt::format("{} is listed as \"{}\", which is no outcome of a case that did not pass", id,
                         each["outcome"].get<std::string>());
    listed_[entry->second] = {*outcome, each["reason"].get<std::string>()};
    indices.erase(entry);
  }
  return "";
}

// Derives the certificate from the listed outcomes. Other functions check the properties of the
// plugin and the device.
Json Verifier::derive() const {
  Facts facts;
  facts.plugin = certificate_["plugin"]["name"];
  facts.version = certificate_["plugin"]["version"];
  facts.device = certificate_["device"]["name"];
  facts.error = certificate_["run"]["error"];
  RunFacts run{{options_.library, certificate_["device"]["index"].get<uint32_t>()}, requested_};
  run.seed = certificate_["run"]["seed"];
  const Verdict verdict = judge(catalogue_, selection_, listed_, requested_, facts);
  Json derived = certificate_of(catalogue_, selection_, listed_, verdict, facts, run);
  for (const char* own : {"plugin", "device"}) derived[own] = certificate_[own];
  // Older certificates do not have this field.
  if (!certificate_["run"].contains("in_process")) derived["run"].erase("in_process");
  for (size_t index = 0; index < derived["non_passes"].size(); ++index) {
    // A repro line may differ from the line in the certificate only in the path of the library.
    Json& repro = derived["non_passes"][index];
    const Json& given = certificate_["non_passes"][index];
    if (!repro.contains("repro") || !given.contains("repro") || !given["repro"].is_string()) continue;
    const std::string theirs = given["repro"], ours = repro["repro"];
    if (theirs.starts_with("backplane certify ") && theirs.ends_with(ours.substr(ours.rfind(" --device "))))
      repro["repro"] = theirs;
  }
  derived["causes"] = causes_of(derived["non_passes"]);
  return derived;
}

void Verifier::check_verdict() {
  if (std::string fault = take_results(); !fault.empty()) return refuse("verdict", std::move(fault));
  std::string fault = first_difference(derive(), certificate_, "");
  const auto look = [&](const Json& tally, const std::string& path) {
    const std::string found = error_fault(tally);
    if (fault.empty() && !found.empty()) fault = fmt::format("{}/error {}", path, found);
  };
  for (const auto& [name, tally] : certificate_["groups"].items()) look(tally, "/groups/" + name);
  for (const auto& [name, tally] : certificate_["verdict"]["extensions"].items())
    look(tally, "/verdict/extensions/" + name);
  for (size_t index = 0; index < certificate_["matrix"].size(); ++index)
    look(certificate_["matrix"][index], fmt::format("/matrix/{}", index));
  if (!fault.empty()) return refuse("verdict", fmt::format("it does not follow from what is listed: {}", fault));
  good("verdict", fmt::format("follows from the {} cases and the {} listed as no pass", selection_.size(),
                              certificate_["non_passes"].size()));
}

std::string Verifier::plugin_difference(const Facts& facts) const {
  const Json& plugin = certificate_["plugin"];
  if (plugin["name"] != facts.plugin || plugin["version"] != facts.version)
    return fmt::format("it says {} {}, and the plugin says {} {}", plugin["name"].get<std::string>(),
                       plugin["version"].get<std::string>(), facts.plugin, facts.version);
  const Json abi = {{"built_for", version_text(facts.abi_version)},
                    {"oldest_host", version_text(facts.abi_version_min)}};
  if (plugin["abi"] != abi)
    return fmt::format("it says ABI {}, and the plugin says {}", plugin["abi"].dump(), abi.dump());
  const Json flags = build_flag_names(facts.build_flags);
  if (plugin["build_flags"] != flags)
    return fmt::format("it says build {}, and the plugin says {}", plugin["build_flags"].dump(), flags.dump());
  return "";
}

// Refuses a certificate for another device. For the same device with another driver, only warns,
// because a verifier rarely has the same driver.
void Verifier::check_device() {
  const Json& device = certificate_["device"];
  const Facts facts = query_facts(target_);
  if (!facts.error.empty()) return refuse("device", facts.error);
  if (std::string found = plugin_difference(facts); !found.empty()) return refuse("plugin", std::move(found));
  if (device["name"] != facts.device || device["type"] != device_type_name(facts.device_type))
    return refuse("device", fmt::format("it is of {} ({}), and device {} here is {} ({}); --device chooses another",
                                        device["name"].get<std::string>(), device["type"].get<std::string>(),
                                        target_.device_index, facts.device, device_type_name(facts.device_type)));
  std::string other;
  const auto compare = [&](const char* what, const Json& own) {
    if (other.empty() && device[what] != own)
      other = fmt::format("{} is {} in the certificate and {} now", what, device[what].dump(), own.dump());
  };
  compare("alignment", facts.alignment);
  compare("memory_kinds", memory_kind_names(facts.memory_kinds));
  compare("capabilities", capability_names(facts.capabilities));
  if (device["driver"] == facts.driver) {
    if (!other.empty()) return refuse("device", fmt::format("with the same driver, {}", other));
    return good("device",
                fmt::format("{} with driver {}", facts.device, facts.driver.empty() ? "unnamed" : facts.driver));
  }
  warn("device",
       fmt::format("{} with driver {}, and the certificate is of driver {}: the results below are of this driver{}{}",
                   facts.device, facts.driver, device["driver"].get<std::string>(), other.empty() ? "" : "; ", other));
}

Limits Verifier::limits() const {
  const Json& run = certificate_["run"];
  Limits limits;
  std::optional<double> seconds = options_.case_seconds;
  std::optional<uint64_t> mib = options_.resident_mib;
  if (!seconds && run.contains("timeout_seconds")) seconds = run["timeout_seconds"].get<double>();
  if (!mib && run.contains("memory_limit_mib")) mib = run["memory_limit_mib"].get<uint64_t>();
  if (seconds) limits.case_ns = static_cast<uint64_t>(*seconds * 1e9);
  if (mib) limits.resident_bytes = *mib << 20;
  return limits;
}

void Verifier::check_sample() {
  const Listed listed{catalogue_, selection_, listed_, requested_.profile, certificate_["run"]["seed"], limits()};
  const std::vector<size_t> chosen = choose_sample(listed, options_.sample, options_.seed);
  if (chosen.empty()) return refuse("sample", "no case was run again; use --sample 1 or more");
  verification_.differences = run_sample(listed, chosen, target_, options_);
  verification_.compared = chosen.size();
  if (!verification_.differences.empty()) {
    const Difference& first = verification_.differences.front();
    return refuse("sample", fmt::format("{} of {} cases came out otherwise; {} was {} and is {}: {}",
                                        verification_.differences.size(), verification_.compared, first.id,
                                        first.listed, name_of(first.now.outcome), first.now.message));
  }
  good("sample", fmt::format("{} cases came out as listed; seed {}", chosen.size(), options_.seed));
}

Verification Verifier::run() {
  try {
    certificate_ = read_certificate(options_.certificate);
  } catch (const std::runtime_error& error) {
    refuse("file", fmt::format("it is no JSON document, or only a part of one: {}", error.what()));
    return std::move(verification_);
  }
  good("file", fmt::format("{} bytes of JSON", options_.certificate.size()));
  if (std::string fault = form_fault(certificate_); !fault.empty()) {
    refuse("form", std::move(fault));
    return std::move(verification_);
  }
  good("form", "a certificate, version 1");
  verification_.statement = certificate_["verdict"]["statement"];
  catalogue_ = enumerate();
  requested_ = {profile_of(certificate_["run"]["profile"].get<std::string>()),
                certificate_["run"]["filters"].get<std::vector<std::string>>(),
                measured_version(*version_number(certificate_["plugin"]["abi"]["built_for"].get<std::string>()))};
  requested_.in_process = certificate_["run"].value("in_process", false);
  selection_ = select(catalogue_, requested_);
  target_ = {options_.library, options_.device.value_or(certificate_["device"]["index"].get<uint32_t>())};
  check_digest();
  check_suite();
  check_plugin();
  if (!is_good("suite")) return std::move(verification_);
  check_run();
  check_verdict();
  const auto all_good = [&] {
    return std::none_of(verification_.parts.begin(), verification_.parts.end(),
                        [](const Part& each) { return each.state == Part::State::refused; });
  };
  if (all_good()) check_device();  // loads the plugin, so all earlier checks must pass
  if (all_good()) check_sample();
  return std::move(verification_);
}

}  // namespace

std::string_view name_of(Part::State state) {
  constexpr std::string_view names[] = {"good", "warning", "refused", "unchecked"};
  return names[static_cast<size_t>(state)];
}

bool Verification::verified() const {
  return std::all_of(parts.begin(), parts.end(), [](const Part& each) {
    return each.state == Part::State::good || each.state == Part::State::warning;
  });
}

Verification verify(const VerifyOptions& options) { return Verifier(options).run(); }

}  // namespace backplane::conformance
