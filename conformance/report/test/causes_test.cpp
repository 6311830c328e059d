// SPDX-License-Identifier: Apache-2.0
// Tests that failure reasons have the same cause if they differ only in values such as numbers, and
// different causes otherwise.
#include "report/causes.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <set>

#include "harness/reason.hpp"

namespace backplane::conformance::test {
namespace {

using Json = nlohmann::json;

Json failure(const std::string& id, const std::string& outcome, const std::string& reason) {
  Json made = {{"id", id}, {"outcome", outcome}, {"reason", reason}, {"repro", "again " + id}};
  made["requirements"] = Json::array({"BP-OPR-001"});
  return made;
}

TEST(Cause, IsTheSameForOtherNumbersShapesDtypesAndIds) {
  EXPECT_EQ(cause_of("it did not end within 30 s"), cause_of("it did not end within 5 s"));
  EXPECT_EQ(cause_of("element 7 of 12 is -inf; expected 3.4e+38"),
            cause_of("element 1024 of 1025 is 0x7f; expected nan"));
  EXPECT_EQ(cause_of("add f32[2x3] (0,1) is wrong"), cause_of("add bf16[17] () is wrong"));
  EXPECT_EQ(cause_of("after numeric.add.f32.tail: gone."), cause_of("after abi.library.loads: gone."));
  EXPECT_EQ(cause_of("strides [4, 2, 1] are refused"), cause_of("strides [1] are refused"));
  EXPECT_EQ(cause_of("signal 11 (Segmentation fault); its last output: one"),
            cause_of("signal 11 (Segmentation fault); its last output: two"));
  EXPECT_EQ(cause_of("1 of 7 elements are wrong; input 0 f32[7] immediate"),
            cause_of("3 of 9 elements are wrong; input 0 f16[9] strides [2] at byte 256; output 0 f16[9]"));
}

TEST(Cause, IsAnotherForOtherWords) {
  const std::set<std::string> causes = {cause_of("plan_create returned INTERNAL (9): no kernel"),
                                        cause_of("plan_create returned UNSUPPORTED (2): no kernel"),
                                        cause_of("plan_execute returned INTERNAL (9): no kernel"),
                                        cause_of("plan_create returned INTERNAL (9): no compiler"), cause_of("")};
  EXPECT_EQ(causes.size(), 5u);
}

TEST(Causes, AreCountedAndTheMostFrequentIsFirst) {
  const std::string given_up = "8 cases of a.b failed alike" + std::string(kGivenUpMark) + "buffer 3 is lost";
  Json non_passes = Json::array();
  non_passes.push_back(failure("a.b.one", "fail", "another thing"));
  non_passes.push_back(failure("a.b.two", "not_run", given_up));
  non_passes.push_back(failure("a.b.none", "not_claimed", "buffer 1 is lost"));
  non_passes.push_back(failure("a.b.three", "fail", "buffer 1 is lost"));
  non_passes.push_back(failure("c.d.four", "crash", "buffer 2 is lost"));
  const Json causes = causes_of(non_passes);
  ASSERT_EQ(causes.size(), 2u);
  EXPECT_EQ(causes[0]["count"], 3);
  EXPECT_EQ(causes[0]["outcomes"], Json({{"fail", 1}, {"crash", 1}, {"not_run", 1}}));
  EXPECT_EQ(causes[0]["groups"], Json({{"a.b", 2}, {"c.d", 1}}));
  EXPECT_EQ(causes[0]["first"], "a.b.three") << "a case that was run says more than one that was not";
  EXPECT_EQ(causes[0]["reason"], "buffer 1 is lost");
  EXPECT_EQ(causes[0]["repro"], "again a.b.three");
  EXPECT_EQ(causes[0]["requirements"], Json::array({"BP-OPR-001"}));
  EXPECT_EQ(causes[1]["first"], "a.b.one");
  EXPECT_EQ(causes_of(Json::array()), Json::array());
}

Json cause_with(const std::string& reason) {
  Json non_passes = Json::array();
  non_passes.push_back(failure("a.b.c", "fail", reason));
  return causes_of(non_passes)[0];
}

TEST(Causes, NameTheSlotThatTheReasonNames) {
  EXPECT_EQ(cause_with("plan_create returned INTERNAL (9): no")["slot"], "plan_create");
  EXPECT_EQ(cause_with("signal 10 has another handler now; seen first after device_open")["slot"], "device_open");
  EXPECT_EQ(cause_with("copy returned INTERNAL (9): no")["slot"], "copy");
  EXPECT_EQ(cause_with("the copy is close to nothing")["slot"], "");
}

TEST(Causes, TheSlotIsTheOneThatMostCasesSaw) {
  Json non_passes = Json::array();
  for (const char* slot : {"stream_wait", "plan_create", "plan_create"})
    non_passes.push_back(
        failure(std::string("a.b.") + slot, "fail", std::string("it moved; seen first after ") + slot));
  const Json causes = causes_of(non_passes);
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_EQ(causes[0]["slot"], "plan_create");
  EXPECT_EQ(causes[0]["first"], "a.b.plan_create");
}

TEST(Causes, KnownReasonsHaveRuleRemedyAndGuide) {
  const Json cause = cause_with("a slot did not restore the state of the thread: signal 10 has another handler now");
  EXPECT_EQ(cause["requirements"], Json::array({"BP-THR-008"}));
  EXPECT_THAT(cause["remedy"].get<std::string>(), testing::HasSubstr("restore"));
  EXPECT_EQ(cause["guide"], "docs/writing_a_backend.md#rules-that-bite");
}

std::string content(const std::string& path) {
  const char* root = std::getenv("BACKPLANE_TEST_SOURCE");
  std::ifstream file(std::string(root == nullptr ? "." : root) + "/" + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns whether `text` contains the heading for `anchor`. The heading "## Rules that bite", for
// example, has the anchor "rules-that-bite".
bool has_heading(const std::string& text, std::string_view anchor) {
  for (size_t at = text.find("\n#"); at != std::string::npos; at = text.find("\n#", at + 1)) {
    std::string heading = text.substr(at, text.find('\n', at + 1) - at);
    heading.erase(0, heading.find(' ') + 1);
    std::transform(heading.begin(), heading.end(), heading.begin(),
                   [](unsigned char c) { return c == ' ' ? '-' : static_cast<char>(std::tolower(c)); });
    if (heading == anchor) return true;
  }
  return false;
}

TEST(Advice, NamesExistingRulesAndPages) {
  const std::string requirements = content("docs/requirements.md");
  ASSERT_FALSE(requirements.empty()) << "BACKPLANE_TEST_SOURCE names no source tree";
  for (const Advice& row : advice_rows()) {
    EXPECT_EQ(advice_for(row.words).remedy, row.remedy) << row.words << ": an earlier row takes its reasons";
    if (!row.requirement.empty()) {
      EXPECT_NE(requirements.find("| " + std::string(row.requirement) + " |"), std::string::npos) << row.requirement;
    }
    const size_t hash = row.guide.find('#');
    ASSERT_NE(hash, std::string_view::npos) << row.guide;
    EXPECT_TRUE(has_heading(content(std::string(row.guide.substr(0, hash))), row.guide.substr(hash + 1))) << row.guide;
  }
}

}  // namespace
}  // namespace backplane::conformance::test
