// SPDX-License-Identifier: Apache-2.0
#include "report/certificate.hpp"

#include <gmock/gmock.h>

#include "realistic.hpp"
#include "report/digest.hpp"
#include "report/escape.hpp"
#include "verify.hpp"

namespace backplane::conformance::test {
namespace {

using Json = nlohmann::json;

const std::string kAnyFile = "/proc/self/exe";

TEST(Certificate, ItsDigestSurvivesTextOfEveryForm) {
  for (const Kind kind : {Kind::passing, Kind::failing, Kind::silent}) {
    const Json certificate = realistic_run(kind, kAnyFile).certificate;
    EXPECT_EQ(certificate["digest"], digest_of(certificate));
    for (const int indent : {-1, 1, 4}) {
      for (const bool ascii : {false, true}) {
        const Json again = Json::parse(certificate.dump(indent, ' ', ascii));
        EXPECT_EQ(certificate["digest"], digest_of(again)) << indent << ascii;
      }
    }
  }
}

TEST(Certificate, ItsDigestChangesWithEveryPart) {
  const Json certificate = realistic_run(Kind::failing, kAnyFile).certificate;
  for (const auto& [key, value] : certificate.items()) {
    Json edited = certificate;
    edited[key] = "edited";
    EXPECT_EQ(certificate["digest"] == digest_of(edited), key == "digest") << key;
  }
}

TEST(Certificate, ListsEveryCaseThatDidNotPass) {
  const auto made = realistic_run(Kind::failing, kAnyFile);
  size_t listed = 0, failures = 0;
  for (const Result& result : made.results) {
    listed += result.outcome != Outcome::pass ? 1 : 0;
    failures += is_failure(result.outcome) ? 1 : 0;
  }
  ASSERT_EQ(made.certificate["non_passes"].size(), listed);
  size_t with_repro = 0;
  for (const Json& each : made.certificate["non_passes"]) {
    EXPECT_FALSE(each["requirements"].empty());
    if (!each.contains("repro")) continue;
    ++with_repro;
    EXPECT_THAT(each["repro"].get<std::string>(),
                testing::AllOf(testing::StartsWith("backplane certify "), testing::HasSubstr(" --seed 7 "),
                               testing::EndsWith(" --filter " + each["id"].get<std::string>())));
  }
  EXPECT_EQ(with_repro, failures);
  EXPECT_GT(failures, 0u);
}

TEST(Certificate, WritesNamesOfBits) {
  const Json device = realistic_run(Kind::passing, kAnyFile).certificate["device"];
  EXPECT_EQ(device["type"], "npu");
  EXPECT_EQ(device["memory_kinds"], Json({"device", "host"}));
  EXPECT_EQ(device["capabilities"], Json({"deterministic", "timing", "bit 40"}));
}

TEST(Certificate, AReproLineIsSafeInAShell) {
  EXPECT_EQ(repro_line({"/a/b.so", 1}, 5, "numeric.add", BP_PROFILE_CORE),
            "backplane certify /a/b.so --device 1 --profile core --seed 5 --filter numeric.add");
  EXPECT_THAT(repro_line({"/my dir/it's $(x).so", 0}, 5, "a.b", BP_PROFILE_TRAIN),
              testing::HasSubstr("'/my dir/it'\\''s $(x).so'"));
}

TEST(Digest, IsSha256) {
  // Example B.1 of FIPS 180-2.
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_base64("abc"), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
  EXPECT_THROW(sha256_of_file("/nowhere"), std::runtime_error);
}

TEST(Escape, LeavesNothingThatMarkupWouldRead) {
  EXPECT_EQ(escaped("<a href='x'>&\"</a>"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;");
  EXPECT_EQ(escaped(std::string("a\0b\x1b\x7f\r\n\t", 8)), "a b \x7f \n\t") << "no control characters but line and tab";
  EXPECT_EQ(escaped("\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbd"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(escaped("µ \xef\xbc\xa1"), "µ \xef\xbc\xa1");
}

TEST(Errors, OfATallyMustBePossible) {
  const Json tally = Json::parse(R"({"counts": {"pass": 3, "fail": 0, "not_claimed": 1},
    "error": {"worst_share": 0.7, "bins": [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0]}})");
  EXPECT_EQ(error_fault(tally), "");
  Json edited = tally;
  edited["error"]["worst_share"] = 0.4;
  EXPECT_NE(error_fault(edited), "") << "it is of another bin";
  edited = tally;
  edited["error"]["bins"][3] = 7u;
  EXPECT_NE(error_fault(edited), "") << "more cases than there are";
  edited = tally;
  edited["error"] = Json::parse(R"({"worst_share": 1.5, "bins": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]})");
  EXPECT_NE(error_fault(edited), "") << "over the bound, and nothing failed";
  edited["counts"]["fail"] = 1u;
  EXPECT_EQ(error_fault(edited), "");
  edited["error"]["bins"] = "many";
  EXPECT_NE(error_fault(edited), "");
}

TEST(Differences, AreFoundWhereverTheyAre) {
  const Json one = {{"a", {1, {{"b", "x"}}}}, {"seconds", 1}};
  EXPECT_EQ(first_difference(one, one, ""), "");
  EXPECT_EQ(first_difference(one, {{"a", {1, {{"b", "x"}}}}, {"seconds", 2}}, ""), "") << "times are free";
  EXPECT_THAT(first_difference(one, {{"a", {1, {{"b", "y"}}}}, {"seconds", 1}}, ""),
              testing::StartsWith("/a/1/b is \"y\""));
  EXPECT_THAT(first_difference(one, {{"a", {1}}, {"seconds", 1}}, ""), testing::StartsWith("/a is"));
  EXPECT_EQ(first_difference(one, {{"seconds", 1}}, ""), "/a is missing");
  EXPECT_EQ(first_difference(one, {{"a", {1, {{"b", "x"}}}}, {"c", 1}}, ""), "/c does not belong there");
}

TEST(Form, EachFieldIsNeededAndOfItsKind) {
  const Json certificate = realistic_run(Kind::failing, kAnyFile).certificate;
  ASSERT_EQ(form_fault(certificate), "");
  for (const char* path :
       {"/schema", "/version", "/digest", "/suite/cases", "/plugin/sha256", "/device/index", "/run/seed",
        "/run/profile", "/run/resumed", "/verdict/level", "/matrix", "/groups", "/non_passes"}) {
    const Json::json_pointer pointer(path);
    Json edited = certificate;
    edited[pointer] = nullptr;
    EXPECT_NE(form_fault(edited), "") << path;
    edited[pointer.parent_pointer()].erase(pointer.back());
    EXPECT_NE(form_fault(edited), "") << path;
  }
  Json edited = certificate;
  edited["groups"]["runtime.event"]["counts"]["pass"] = -1;
  EXPECT_NE(form_fault(edited), "");
  edited = certificate;
  edited["groups"]["runtime.event"]["counts"]["odd"] = "many";
  EXPECT_NE(form_fault(edited), "");
  edited = certificate;
  edited["version"] = 2;
  EXPECT_THAT(form_fault(edited), testing::HasSubstr("version is 2"));
}

TEST(Form, IsReadOnlyIfItIsUnambiguous) {
  EXPECT_NO_THROW(read_certificate("{\"a\": {\"b\": 1}, \"b\": [{\"a\": 1}, {\"a\": 2}]}"));
  EXPECT_THROW(read_certificate("{\"a\": 1, \"b\": {\"c\": 1, \"c\": 2}}"), std::runtime_error) << "a key twice";
  EXPECT_NO_THROW(read_certificate(std::string(32, '[') + std::string(32, ']')));
  EXPECT_THROW(read_certificate(std::string(33, '[') + std::string(33, ']')), std::runtime_error) << "too deep";
  EXPECT_THROW(read_certificate("{\"a\": 1"), std::runtime_error);
  EXPECT_THROW(read_certificate("{} {}"), std::runtime_error);
  EXPECT_THROW(read_certificate(""), std::runtime_error);
}

}  // namespace
}  // namespace backplane::conformance::test
