// SPDX-License-Identifier: Apache-2.0
// Tests `verify` on certificates of the reference plugin. The certificates are intact, edited or
// truncated, belong to another plugin, or contain false outcomes.
#include "verify.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <regex>
#include <set>

#include "cases/catalogue.hpp"
#include "harness/probe.hpp"
#include "harness/supervisor.hpp"
#include "report/certificate.hpp"
#include "verify_sample.hpp"

namespace backplane::conformance::test {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

std::string library() {
  const char* path = std::getenv("BACKPLANE_TEST_PLUGIN");
  return path == nullptr ? "" : path;
}

using Outcomes = std::map<std::string, Outcome>;

// Returns a certificate in which the cases of `outcomes` have these outcomes and all other cases
// pass.
Json certificate_with(const Outcomes& outcomes = {}, const std::string& path = library()) {
  static const Catalogue catalogue = enumerate();
  static const Facts facts = query_facts({library(), 0});
  RunFacts run{{path, 0}, {BP_PROFILE_CORE, {}}, 7, 2, "2026-01-31T12:00:00Z", 41.7, false};
  const std::vector<size_t> selection = select(catalogue, run.selection);
  std::vector<Result> results;
  for (const size_t index : selection) {
    const std::string& id = catalogue[index].id;
    const auto found = outcomes.find(id);
    Outcome outcome = found == outcomes.end() ? Outcome::pass : found->second;
    // The reference plugin does not have this capability.
    if (id == "abi.capability.synchronous") outcome = Outcome::not_claimed;
    results.push_back({outcome, outcome == Outcome::pass ? "" : "so it was", 1000});
  }
  const Verdict verdict = judge(catalogue, selection, results, run.selection, facts);
  return certificate_of(catalogue, selection, results, verdict, facts, run);
}

Verification verified(const std::string& text, const std::string& path = library(), size_t sample = 1,
                      uint64_t seed = 1) {
  VerifyOptions options;
  options.certificate = text;
  options.library = path;
  options.sample = sample;
  options.seed = seed;
  return verify(options);
}

std::vector<std::string> refused(const Verification& verification) {
  std::vector<std::string> names;
  for (const Part& part : verification.parts) {
    if (part.state == Part::State::refused) names.emplace_back(part.name);
  }
  return names;
}

std::string message_of(const Verification& verification, std::string_view name) {
  for (const Part& part : verification.parts) {
    if (part.name == name) return part.message;
  }
  return "";
}

Json sealed(Json certificate) {
  certificate["digest"] = digest_of(certificate);
  return certificate;
}

Json edited(const Json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number_unsigned()) return value.get<uint64_t>() + 1;
  if (value.is_number()) return value.get<double>() + 0.5;
  return value.get<std::string>() + "x";
}

// Returns the part that `verify` refuses if the field at `path` is edited and the digest is
// updated. Returns "" for a field that `verify` does not check.
std::string part_of(const std::string& path) {
  static const std::pair<std::regex, const char*> parts[] = {
      {std::regex("/(schema|version)"), "form"},
      {std::regex("/suite/.*"), "suite"},
      {std::regex("/plugin/file"), ""},
      {std::regex("/plugin/(name|version)"), "verdict"},  // the verdict's statement contains the name and the version
      {std::regex("/plugin/abi/built_for"), "form"},
      {std::regex("/plugin/.*"), "plugin"},
      {std::regex("/device/(driver|max_buffer_bytes)"), ""},
      // The commands that reproduce failures contain the device index.
      {std::regex("/device/index"), "verdict"},
      {std::regex("/device/name"), "verdict"},
      {std::regex("/device/.*"), "device"},
      {std::regex("/run/profile"), "form"},
      {std::regex("/run/(cases|error|not_reached|in_process)"), "run"},
      {std::regex("/run/(seed|not_asked|stopped_groups).*"), "verdict"},
      {std::regex("/run/.*"), ""},
      {std::regex("/non_passes/[0-9]+/reason|.*/seconds"), ""},
      {std::regex("/(verdict|matrix|groups|non_passes|causes)/.*"), "verdict"}};
  for (const auto& [pattern, part] : parts) {
    if (std::regex_match(path, pattern)) return part;
  }
  return "unexpected";
}

// Returns the paths of the certificate's fields. Includes only the first group, the first cell of
// the matrix and the first extension.
std::vector<std::string> paths_of(const Json& certificate) {
  std::vector<std::string> paths;
  const std::string group = "/groups/" + certificate["groups"].begin().key() + "/";
  const std::string extension = "/verdict/extensions/" + certificate["verdict"]["extensions"].begin().key() + "/";
  const Json flat = certificate.flatten();
  for (const auto& [path, value] : flat.items()) {
    const auto skip = [&](std::string_view list, std::string_view first) {
      return path.starts_with(list) && !path.starts_with(first);
    };
    if (skip("/groups/", group) || skip("/matrix/", "/matrix/0/") || skip("/verdict/extensions/", extension) ||
        value.is_null() || value.is_array() || path == "/digest")
      continue;
    paths.push_back(path);
  }
  return paths;
}

// A case that passes. If a certificate lists the case as failed, `verify` must run the case again
// to detect the false outcome.
const std::string kPassingCase = "abi.library.loads_and_shuts_down";

class VerifyTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_FALSE(library().empty()) << "BACKPLANE_TEST_PLUGIN names no library"; }
};

TEST_F(VerifyTest, AcceptsATrueCertificate) {
  const Verification verification = verified(certificate_with().dump(1), library(), 40);
  EXPECT_THAT(refused(verification), testing::IsEmpty())
      << message_of(verification, refused(verification).empty() ? "" : refused(verification)[0]);
  EXPECT_TRUE(verification.verified());
  EXPECT_EQ(verification.compared, 40u);
}

TEST_F(VerifyTest, AnyEditIsRefusedByTheDigest) {
  const Json certificate = certificate_with({{kPassingCase, Outcome::fail}});
  const std::vector<std::string> paths = paths_of(certificate);
  EXPECT_GT(paths.size(), 80u);
  for (const std::string& path : paths) {
    Json changed = certificate;
    changed[Json::json_pointer(path)] = edited(changed[Json::json_pointer(path)]);
    if (!form_fault(changed).empty()) continue;  // the next test covers this field
    EXPECT_NE(changed["digest"], digest_of(changed)) << path;
  }
  Json changed = certificate;
  changed["run"]["started"] = "2027-01-31T12:00:00Z";
  const Verification verification = verified(changed.dump(1));
  EXPECT_EQ(refused(verification), std::vector<std::string>{"digest"});
  EXPECT_EQ(verification.compared, 0u) << "nothing is run for a certificate that is refused";
  changed = certificate;
  changed["digest"] = std::string(64, '0');
  EXPECT_EQ(refused(verified(changed.dump(1))), std::vector<std::string>{"digest"});
}

TEST_F(VerifyTest, AnEditWithANewDigestIsRefusedByItsPart) {
  const Json certificate = certificate_with({{kPassingCase, Outcome::fail}});
  for (const std::string& path : paths_of(certificate)) {
    const std::string part = part_of(path);
    if (part.empty()) continue;
    Json changed = certificate;
    changed[Json::json_pointer(path)] = edited(changed[Json::json_pointer(path)]);
    // An edit may cause `verify` to refuse several parts. The part that contains the edited field
    // must be one of them.
    const std::vector<std::string> names = refused(verified(sealed(changed).dump(1)));
    EXPECT_THAT(names, testing::Contains(part)) << path;
  }
}

TEST_F(VerifyTest, AVerdictMustFollow) {
  const Json certificate = certificate_with({{kPassingCase, Outcome::fail}});
  Json better = certificate;
  better["non_passes"] = Json::array();
  EXPECT_EQ(refused(verified(sealed(better).dump())), std::vector<std::string>{"verdict"})
      << "a failure taken from the list";
  better = certificate;
  better["verdict"]["level"] = "core";
  const Verification verification = verified(sealed(better).dump());
  EXPECT_THAT(message_of(verification, "verdict"),
              testing::HasSubstr("/verdict/level is \"core\"; what is listed gives \"none\""));
  better = certificate;
  better["non_passes"].push_back(better["non_passes"][0]);
  EXPECT_THAT(message_of(verified(sealed(better).dump()), "verdict"), testing::HasSubstr("twice"));
  better = certificate;
  better["blessed"] = true;
  EXPECT_THAT(message_of(verified(sealed(better).dump()), "verdict"),
              testing::HasSubstr("/blessed does not belong there"));
}

TEST_F(VerifyTest, ACutFileIsRefused) {
  const std::string whole = certificate_with().dump(1);
  for (const size_t length : {size_t{0}, size_t{1}, whole.size() / 4, whole.size() / 2, whole.size() - 1})
    EXPECT_EQ(refused(verified(whole.substr(0, length))), std::vector<std::string>{"file"}) << length;
  EXPECT_EQ(refused(verified("[]")), std::vector<std::string>{"form"});
  EXPECT_EQ(refused(verified("{\"schema\": \"backplane.info\", \"version\": 1}")), std::vector<std::string>{"form"});
}

TEST_F(VerifyTest, ADeeplyNestedFileIsRefused) {
  constexpr size_t depth = 200'000;
  const std::string nested = std::string(depth, '[') + std::string(depth, ']');
  EXPECT_EQ(refused(verified(nested)), std::vector<std::string>{"file"});
  const Verification verification = verified("{\"version\": " + nested + "," + certificate_with().dump().substr(1));
  EXPECT_EQ(refused(verification), std::vector<std::string>{"file"});
  EXPECT_THAT(message_of(verification, "file"), testing::HasSubstr("nested deeper than 32"));
}

TEST_F(VerifyTest, ACountOfAnotherKindIsRefused) {
  const Json certificate = certificate_with();
  for (const char* part : {"groups", "matrix"}) {
    Json changed = certificate;
    changed[part].begin().value()["counts"]["odd"] = "many";
    EXPECT_EQ(refused(verified(sealed(changed).dump())), std::vector<std::string>{"form"}) << part;
  }
}

TEST_F(VerifyTest, ADamagedFileIsRefusedAndNeverCrashes) {
  const Json certificate = certificate_with({{kPassingCase, Outcome::fail}});
  const std::string whole = certificate.dump();
  std::mt19937_64 random(7);
  for (int round = 0; round < 25; ++round) {
    std::string damaged = whole;
    damaged[random() % damaged.size()] ^= static_cast<char>(1u << random() % 7);
    // The changed bit may have no effect, for example if it changes 1e5 to 1E5.
    if (Json::parse(damaged, nullptr, false) == certificate) continue;
    EXPECT_FALSE(verified(damaged).verified()) << damaged;
  }
}

TEST_F(VerifyTest, AnotherPluginIsRefused) {
  const fs::path other = fs::temp_directory_path() / ("backplane-verify-" + std::to_string(getpid()) + ".so");
  fs::copy_file(library(), other, fs::copy_options::overwrite_existing);
  std::ofstream(other, std::ios::app) << "x";
  const Verification verification = verified(certificate_with().dump(1), other.string());
  fs::remove(other);
  EXPECT_EQ(refused(verification), std::vector<std::string>{"plugin"});
  EXPECT_THAT(message_of(verification, "plugin"), testing::HasSubstr("another file"));
}

TEST_F(VerifyTest, AnotherSuiteIsRefused) {
  Json other = certificate_with();
  other["suite"]["digest"] = std::string(64, '1');
  const Verification verification = verified(sealed(other).dump(1));
  EXPECT_EQ(refused(verification), std::vector<std::string>{"suite"});
  EXPECT_EQ(message_of(verification, "verdict"), "") << "by other rules nothing can be derived";
}

TEST_F(VerifyTest, APartOfARunIsRefused) {
  Json part = certificate_with();
  part["run"]["filters"] = {"abi"};
  EXPECT_THAT(refused(verified(sealed(part).dump(1))), testing::Contains("run"));
}

TEST_F(VerifyTest, ARunInOneProcessIsRefused) {
  Json inside = certificate_with();
  inside["run"]["in_process"] = true;
  const Verification verification = verified(sealed(inside).dump(1));
  EXPECT_THAT(refused(verification), testing::Contains("run"));
  EXPECT_THAT(message_of(verification, "run"), testing::HasSubstr("certify without --in-process"));
}

TEST_F(VerifyTest, ACertificateWithoutAddedFieldsIsAccepted) {
  Json older = certificate_with();
  for (const char* added : {"in_process", "timeout_seconds", "memory_limit_mib"}) older["run"].erase(added);
  EXPECT_THAT(refused(verified(sealed(older).dump(1), library(), 40)), testing::IsEmpty());
  older["run"]["in_process"] = "no";
  EXPECT_EQ(refused(verified(sealed(older).dump(1))), std::vector<std::string>{"form"});
}

// The processes of the sample exceed the memory limit of the certificate, and do not exceed the limit of the options.
TEST_F(VerifyTest, LimitsAreThoseOfTheCertificateUnlessTheOptionsStateOthers) {
  Json small = certificate_with();
  EXPECT_EQ(small["run"]["timeout_seconds"], 30);
  EXPECT_EQ(small["run"]["memory_limit_mib"], 4096);
  for (const auto& [field, value] : {std::pair<const char*, Json>{"timeout_seconds", 0.01},
                                     {"timeout_seconds", 1e6},
                                     {"memory_limit_mib", 63},
                                     {"memory_limit_mib", uint64_t{1} << 63}}) {
    Json other = small;
    other["run"][field] = value;
    EXPECT_EQ(refused(verified(sealed(other).dump(1))), std::vector<std::string>{"form"}) << field << " " << value;
  }
  VerifyOptions options;
  options.library = library();
  options.sample = 20;
  options.seed = 1;
  const auto has_leaks = [&] {
    const Verification verification = verify(options);
    return std::any_of(verification.differences.begin(), verification.differences.end(),
                       [](const Difference& each) { return each.now.outcome == Outcome::leak; });
  };
  small["run"]["memory_limit_mib"] = kLeastResidentMib;
  options.certificate = sealed(small).dump(1);
  EXPECT_TRUE(has_leaks());
  options.resident_mib = 4096;
  EXPECT_FALSE(has_leaks());
}

TEST_F(VerifyTest, AnotherDriverIsReportedAndAnotherDeviceRefused) {
  Json other = certificate_with();
  other["device"]["driver"] = "driver 9.9";
  other["device"]["capabilities"].push_back("bit 60");
  const Verification warned = verified(sealed(other).dump(1));
  EXPECT_TRUE(warned.verified());
  EXPECT_THAT(message_of(warned, "device"),
              testing::AllOf(testing::HasSubstr("driver 9.9"), testing::HasSubstr("bit 60")));
  other = certificate_with();
  other["device"]["type"] = "gpu";
  EXPECT_EQ(refused(verified(sealed(other).dump(1))), std::vector<std::string>{"device"});
  VerifyOptions absent;
  absent.certificate = certificate_with().dump();
  absent.library = library();
  absent.device = 99;
  EXPECT_EQ(refused(verify(absent)), std::vector<std::string>{"device"});
}

uint64_t seed_that_chooses(const std::string& id, size_t sample) {
  const Catalogue catalogue = enumerate();
  const std::vector<size_t> selection = select(catalogue, {BP_PROFILE_CORE, {}});
  const std::vector<Result> results(selection.size(), Result{Outcome::pass});
  for (uint64_t seed = 1;; ++seed) {
    for (const size_t index : choose_sample({catalogue, selection, results, BP_PROFILE_CORE, 7}, sample, seed)) {
      if (catalogue[selection[index]].id == id) return seed;
    }
  }
}

// One case has a false outcome. A sample that contains the case detects the false outcome.
TEST_F(VerifyTest, ASampleFindsFalseResults) {
  for (const Outcome outcome : {Outcome::fail, Outcome::not_claimed}) {
    const Verification verification = verified(certificate_with({{kPassingCase, outcome}}).dump(), library(), 60,
                                               seed_that_chooses(kPassingCase, 60));
    EXPECT_EQ(refused(verification), std::vector<std::string>{"sample"});
    size_t found = 0;
    for (const Difference& difference : verification.differences) {
      if (difference.id != kPassingCase) {  // the certificate says that all other cases pass
        EXPECT_EQ(difference.now.outcome, Outcome::not_claimed) << difference.id;
        continue;
      }
      ++found;
      EXPECT_EQ(difference.listed, name_of(outcome));
      EXPECT_EQ(difference.now.outcome, Outcome::pass);
      EXPECT_THAT(difference.repro, testing::EndsWith("--filter " + kPassingCase));
    }
    EXPECT_EQ(found, 1u);
  }
}

TEST(Sample, HasEveryGroupAndFewFailures) {
  const Catalogue catalogue = enumerate();
  const std::vector<size_t> selection = select(catalogue, {BP_PROFILE_CORE, {}});
  std::vector<Result> results(selection.size(), Result{Outcome::pass});
  std::map<std::string, size_t> sizes;
  for (size_t index = 0; index < selection.size(); ++index) {
    ++sizes[group_of(catalogue[selection[index]].id)];
    results[index].outcome = index % 3 == 0 ? Outcome::fail : index % 3 == 1 ? Outcome::pass : Outcome::not_run;
  }
  const Listed listed{catalogue, selection, results, BP_PROFILE_CORE, 7};
  const std::vector<size_t> chosen = choose_sample(listed, 300, 1);
  EXPECT_EQ(chosen, choose_sample(listed, 300, 1));
  EXPECT_NE(chosen, choose_sample(listed, 300, 2));
  EXPECT_EQ(chosen.size(), std::min<size_t>(300, selection.size() / 3 + 40));
  size_t failures = 0;
  for (const size_t index : chosen) {
    EXPECT_NE(results[index].outcome, Outcome::not_run);
    failures += is_failure(results[index].outcome) ? 1 : 0;
  }
  EXPECT_LE(failures, 40u);
  results.assign(selection.size(), Result{Outcome::pass});
  std::set<std::string> groups;
  for (const size_t index : choose_sample(listed, sizes.size(), 3))
    groups.insert(group_of(catalogue[selection[index]].id));
  EXPECT_EQ(groups.size(), sizes.size());
}

}  // namespace
}  // namespace backplane::conformance::test

// Some cases execute this program again in a new process, in which serve_probe runs the probe.
int main(int argc, char** argv) {
  backplane::conformance::serve_probe(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
