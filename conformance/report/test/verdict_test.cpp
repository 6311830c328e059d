// SPDX-License-Identifier: Apache-2.0
// Tests the verdict on small catalogues.
#include "report/verdict.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "report/names.hpp"

namespace backplane::conformance::test {
namespace {

Case one(std::string id, uint32_t profile = BP_PROFILE_CORE, std::string_view extension = "", uint32_t op = 0,
         uint32_t dtype = 0) {
  Case made;
  made.id = std::move(id);
  made.profile = profile;
  made.extension = extension;
  made.op = op;
  made.dtype = dtype;
  made.requirements = {"BP-REF-001"};
  return made;
}

// Returns one mandatory case per profile, a case of the extension f64, a native composite and its decompositions, and
// the 16-bit cases that INFER requires.
Catalogue small() {
  Catalogue catalogue = {one("numeric.add.f32", BP_PROFILE_CORE, "", BP_OP_ADD, BP_F32),
                         one("numeric.add.f64", BP_PROFILE_CORE, "f64", BP_OP_ADD, BP_F64),
                         one("numeric.sort.f32", BP_PROFILE_INFER, "", BP_OP_SORT, BP_F32),
                         one("numeric.philox.u32", BP_PROFILE_TRAIN, "", BP_OP_PHILOX, BP_U32),
                         one("numeric.gelu.f32.native", BP_PROFILE_COMPOSITE, "", BP_OP_GELU, BP_F32),
                         one("numeric.gelu.f32.decomposed", BP_PROFILE_INFER, "", BP_OP_GELU, BP_F32),
                         one("numeric.gelu.f64.native", BP_PROFILE_COMPOSITE, "f64", BP_OP_GELU, BP_F64),
                         one("numeric.gelu.f64.decomposed", BP_PROFILE_INFER, "f64", BP_OP_GELU, BP_F64)};
  for (const auto& [op, name] : {std::pair{BP_OP_COPY, "copy"}, {BP_OP_CAST, "cast"}, {BP_OP_MATMUL, "matmul"}}) {
    catalogue.push_back(one(std::string("numeric.") + name + ".f16", BP_PROFILE_CORE, "f16", op, BP_F16));
    catalogue.push_back(one(std::string("numeric.") + name + ".bf16", BP_PROFILE_CORE, "bf16", op, BP_BF16));
  }
  catalogue.push_back(one("numeric.matmul.f16.narrow", BP_PROFILE_CORE, "F16ACC", BP_OP_MATMUL, BP_F16));
  return catalogue;
}

Facts facts() {
  Facts made;
  made.plugin = "acme";
  made.version = "1.0";
  made.device = "Acme 9000";
  return made;
}

using Changes = std::vector<std::pair<std::string, Outcome>>;

// Judges a run in which every case passes, except the cases whose ids begin with a prefix in
// `changes`.
Verdict judged(const Changes& changes, Selection requested = {BP_PROFILE_TRAIN, {}}, Facts of = facts()) {
  const Catalogue catalogue = small();
  const std::vector<size_t> selection = select(catalogue, requested);
  std::vector<Result> results;
  for (const size_t index : selection) {
    Result result{Outcome::pass};
    for (const auto& [id, outcome] : changes) {
      if (catalogue[index].id.starts_with(id)) result.outcome = outcome;
    }
    results.push_back(result);
  }
  return judge(catalogue, selection, results, requested, of);
}

TEST(Verdict, APassingRunReachesTheRequestedProfile) {
  EXPECT_EQ(judged({}).level, BP_PROFILE_TRAIN);
  EXPECT_EQ(judged({}, {BP_PROFILE_INFER, {}}).level, BP_PROFILE_INFER);
  EXPECT_EQ(judged({}, {BP_PROFILE_CORE, {}}).level, BP_PROFILE_CORE);
  EXPECT_EQ(judged({}).statement, "acme 1.0 on Acme 9000 is certified at TRAIN of ABI " + version_text(BP_ABI_VERSION) +
                                      "; it supports 100 % of the requested cases");
}

// A plugin that was built for an older ABI version must keep its profile in a newer suite.
TEST(Verdict, ANewerSuiteInvalidatesNoCertificate) {
  constexpr uint32_t next = BP_ABI_VERSION + 1;
  Catalogue grown = small();
  grown.insert(grown.begin() + 1, one("abi.growth.of_core"));
  grown.push_back(one("numeric.sort.f32.later", BP_PROFILE_INFER, "", BP_OP_SORT, BP_F32));
  grown[1].since = grown.back().since = next;
  const auto measured = [&](uint32_t version, Outcome of_newer) {
    const Selection requested = {BP_PROFILE_TRAIN, {}, version};
    const std::vector<size_t> selection = select(grown, requested);
    std::vector<Result> results;
    for (const size_t index : selection) results.push_back({grown[index].since == next ? of_newer : Outcome::pass});
    return judge(grown, selection, results, requested, facts());
  };
  const Verdict before = judged({});
  for (const Outcome outcome : {Outcome::pass, Outcome::fail, Outcome::not_claimed}) {
    const Verdict old_plugin = measured(BP_ABI_VERSION, outcome);
    EXPECT_EQ(old_plugin.level, before.level);
    EXPECT_EQ(old_plugin.statement, before.statement);
    EXPECT_EQ(old_plugin.all.counts, before.all.counts);
    const Verdict new_plugin = measured(next, outcome);
    EXPECT_EQ(new_plugin.level, outcome == Outcome::pass ? uint32_t{BP_PROFILE_TRAIN} : 0u) << name_of(outcome);
    EXPECT_EQ(new_plugin.all.total(), before.all.total() + 2);
    EXPECT_NE(new_plugin.statement.find(" of ABI " + version_text(next)), std::string::npos) << new_plugin.statement;
  }
}

TEST(Verdict, APluginIsMeasuredByItsOwnVersionAsFarAsTheSuiteKnowsIt) {
  EXPECT_EQ(measured_version(BP_ABI_VERSION), BP_ABI_VERSION);
  EXPECT_EQ(measured_version(BP_ABI_VERSION_OLDEST), BP_ABI_VERSION_OLDEST);
  EXPECT_EQ(measured_version(BP_ABI_VERSION_OLDEST - 1), BP_ABI_VERSION) << "no host loads it";
  EXPECT_EQ(measured_version(BP_ABI_VERSION + 7), BP_ABI_VERSION) << "newer than the suite";
  EXPECT_EQ(measured_version(0), BP_ABI_VERSION) << "it did not load";
  for (const uint32_t version : {0u, BP_ABI_VERSION, BP_VERSION(1, 0), BP_VERSION(0xFFFF, 0xFFFF)})
    EXPECT_EQ(version_number(version_text(version)), version);
  for (const char* text : {"", "0", "0.", ".2", "0.2 ", " 0.2", "0.2.1", "00.2", "-1.2", "0.70000", "x", "0.0x2"})
    EXPECT_EQ(version_number(text), std::nullopt) << text;
}

TEST(Verdict, AMandatoryAbsenceEndsAtTheProfileBelow) {
  const Verdict verdict = judged({{"numeric.philox", Outcome::not_claimed}});
  EXPECT_EQ(verdict.level, BP_PROFILE_INFER);
  EXPECT_EQ(verdict.profiles.at(BP_PROFILE_TRAIN).reasons,
            std::vector<std::string>{"1 of its 4 mandatory cases are not claimed"});
  EXPECT_TRUE(verdict.profiles.at(BP_PROFILE_INFER).reasons.empty());
  EXPECT_EQ(judged({{"numeric.add.f32", Outcome::not_claimed}}).level, 0u);
}

TEST(Verdict, AFailureOfAnyProfileBelowKeepsAllAbove) {
  const Verdict verdict = judged({{"numeric.sort", Outcome::fail}});
  EXPECT_EQ(verdict.level, BP_PROFILE_CORE);
  EXPECT_EQ(verdict.profiles.at(BP_PROFILE_TRAIN).failures, 1u);
  EXPECT_NE(verdict.statement.find("certified at CORE of ABI " + version_text(BP_ABI_VERSION) +
                                   ", and not certified at TRAIN: 1 of its cases failed"),
            std::string::npos)
      << verdict.statement;
}

TEST(Verdict, EveryOutcomeButPassAndNotClaimedIsAFailure) {
  for (const Outcome outcome :
       {Outcome::fail, Outcome::crash, Outcome::hang, Outcome::leak, Outcome::suspect, Outcome::not_run})
    EXPECT_EQ(judged({{"numeric.add.f32", outcome}}).level, 0u) << name_of(outcome);
}

TEST(Verdict, AnExtensionMayBeAbsentAndMayNotFail) {
  EXPECT_EQ(judged({{"numeric.add.f64", Outcome::not_claimed}}).level, BP_PROFILE_TRAIN);
  const Verdict failed = judged({{"numeric.add.f64", Outcome::fail}});
  EXPECT_EQ(failed.level, 0u);
  EXPECT_EQ(failed.extensions.at("f64").state(), "fail");
}

TEST(Verdict, ACompositeThatIsNotNativeIsNoMandatoryAbsence) {
  EXPECT_EQ(judged({{"numeric.gelu.f32.native", Outcome::not_claimed}}).level, BP_PROFILE_TRAIN);
  EXPECT_EQ(judged({{"numeric.gelu.f32.native", Outcome::fail}}).level, BP_PROFILE_CORE);
}

TEST(Verdict, ACompositeThatIsNotDecomposedIsAMandatoryAbsence) {
  const Changes absent = {{"numeric.gelu.f32.decomposed", Outcome::not_claimed}};
  const Verdict verdict = judged(absent);
  EXPECT_EQ(verdict.level, BP_PROFILE_CORE);
  EXPECT_EQ(verdict.profiles.at(BP_PROFILE_INFER).absent, 1u);
  EXPECT_EQ(judged(absent, {BP_PROFILE_CORE, {}}).level, BP_PROFILE_CORE);
  const double all = static_cast<double>(small().size());
  EXPECT_DOUBLE_EQ(verdict.supported_fraction, (all - 1) / all);
}

TEST(Verdict, ADecompositionInADtypeOfAnExtensionMayBeAbsent) {
  const Verdict verdict = judged({{"numeric.gelu.f64", Outcome::not_claimed}});
  EXPECT_EQ(verdict.level, BP_PROFILE_TRAIN);
  EXPECT_EQ(verdict.extensions.at("f64").of(Outcome::not_claimed), 1u) << "the decomposition, not the native composite";
  EXPECT_EQ(verdict.extensions.at("f64").state(), "partial");
}

TEST(Verdict, InferNeedsOneOfTheSixteenBitFloats) {
  EXPECT_EQ(judged({{"numeric.copy.f16", Outcome::not_claimed}}).level, BP_PROFILE_TRAIN);
  EXPECT_EQ(judged({{"numeric.matmul.bf16", Outcome::not_claimed}}).level, BP_PROFILE_TRAIN);
  const Verdict neither =
      judged({{"numeric.cast.f16", Outcome::not_claimed}, {"numeric.matmul.bf16", Outcome::not_claimed}});
  EXPECT_EQ(neither.level, BP_PROFILE_CORE);
  EXPECT_EQ(neither.profiles.at(BP_PROFILE_INFER).reasons,
            std::vector<std::string>{"neither f16 nor bf16 passes everywhere in copy, cast and matmul"});
  // The rule for 16-bit floats ignores cases of an extension other than f16 and bf16, even if they
  // have the same operator and dtype.
  EXPECT_EQ(
      judged({{"numeric.matmul.f16.narrow", Outcome::not_claimed}, {"numeric.copy.bf16", Outcome::not_claimed}}).level,
      BP_PROFILE_TRAIN);
}

TEST(Verdict, APartOfTheCasesCertifiesNothing) {
  const Verdict verdict = judged({}, {BP_PROFILE_CORE, {"numeric.add"}});
  EXPECT_EQ(verdict.level, 0u);
  EXPECT_EQ(verdict.all.total(), 2u);
  EXPECT_EQ(verdict.statement,
            "acme 1.0 on Acme 9000: in a part of CORE of ABI " + version_text(BP_ABI_VERSION) +
                ", 2 cases pass, 0 fail, 0 are not claimed; 1 operator passes: add (f32, f64). A part "
                "certifies no profile");
}

TEST(Verdict, ARunInOneProcessCertifiesNothing) {
  Selection requested = {BP_PROFILE_CORE, {}};
  requested.in_process = true;
  const Verdict verdict = judged({}, requested);
  EXPECT_EQ(verdict.level, 0u);
  const ProfileState& core = verdict.profiles.at(BP_PROFILE_CORE);
  EXPECT_FALSE(core.complete);
  EXPECT_EQ(core.reasons, std::vector<std::string>{"the run used one process and no limits"});
  EXPECT_EQ(verdict.statement, "acme 1.0 on Acme 9000: in CORE of ABI " + version_text(BP_ABI_VERSION) +
                                   ", 9 cases pass, 0 fail, 0 are not claimed; 4 operators pass: copy (f16, bf16), "
                                   "cast (f16, bf16), add (f32, f64), matmul (f16, bf16). A run in one process and "
                                   "without limits certifies no profile");
}

TEST(Verdict, AnOperatorPassesOnlyByItsNumericCases) {
  Catalogue catalogue = {one("numeric.add.f32", BP_PROFILE_CORE, "", BP_OP_ADD, BP_F32),
                         one("numeric.add.f32.far", BP_PROFILE_CORE, "LARGE", BP_OP_ADD, BP_F32),
                         one("numeric.add.i32", BP_PROFILE_CORE, "", BP_OP_ADD, BP_I32),
                         one("numeric.mul.f32", BP_PROFILE_CORE, "", BP_OP_MUL, BP_F32),
                         one("abi.supports.mul", BP_PROFILE_CORE, "", BP_OP_MUL),
                         one("runtime.execute.sub", BP_PROFILE_CORE, "", BP_OP_SUB, BP_F32)};
  const Selection requested = {BP_PROFILE_CORE, {}};
  using enum Outcome;
  const auto operators = [&](const std::vector<Outcome>& outcomes) {
    std::vector<Result> results;
    for (const Outcome outcome : outcomes) results.push_back({outcome});
    const std::string statement = judge(catalogue, select(catalogue, requested), results, requested, facts()).statement;
    return statement.substr(statement.rfind(", ", statement.find(" operator")) + 2);
  };
  EXPECT_EQ(operators({pass, not_claimed, not_claimed, fail, pass, pass}), "1 operator passes: add (f32)");
  EXPECT_EQ(operators({pass, pass, fail, pass, fail, pass}), "0 operators pass") << "one case of each failed";
  EXPECT_EQ(operators({pass, pass, pass, pass, pass, not_claimed}), "2 operators pass: add (i32, f32), mul (f32)");
}

TEST(Verdict, APluginThatDoesNotLoadHasAReason) {
  Facts broken;
  broken.error = "it did not load";
  const Verdict verdict = judged({{"numeric", Outcome::not_run}}, {BP_PROFILE_TRAIN, {}}, broken);
  EXPECT_EQ(verdict.level, 0u);
  EXPECT_EQ(verdict.statement, "not certified: it did not load");
  EXPECT_EQ(verdict.supported_fraction, 0);
  EXPECT_EQ(verdict.profiles.at(BP_PROFILE_CORE).reasons, std::vector<std::string>{"nothing could be run"});
}

TEST(Verdict, TheSupportedFractionCountsPassesAlone) {
  const size_t all = small().size();
  EXPECT_DOUBLE_EQ(judged({{"numeric.add.f64", Outcome::not_claimed}}).supported_fraction,
                   static_cast<double>(all - 1) / static_cast<double>(all));
  EXPECT_DOUBLE_EQ(judged({{"numeric.add.f64", Outcome::fail}}).supported_fraction,
                   static_cast<double>(all - 1) / static_cast<double>(all))
      << "a claim that fails supports nothing";
  EXPECT_DOUBLE_EQ(judged({{"numeric.gelu.f32.native", Outcome::not_claimed}}).supported_fraction, 1)
      << "it runs by decomposition";
}

TEST(Tally, StateIsOfItsCounts) {
  Tally tally;
  tally.add({Outcome::not_claimed});
  EXPECT_EQ(tally.state(), "not_claimed");
  tally.add({Outcome::pass});
  EXPECT_EQ(tally.state(), "partial");
  tally.add({Outcome::suspect});
  EXPECT_EQ(tally.state(), "fail");
  EXPECT_EQ(tally.failures(), 1u);
  EXPECT_EQ(tally.total(), 3u);
  Tally passed;
  passed.add({Outcome::pass});
  EXPECT_EQ(passed.state(), "pass");
}

TEST(Tally, SharesFallIntoTheirBins) {
  EXPECT_EQ(bin_of_ratio(0), 0u);
  EXPECT_EQ(bin_of_ratio(0x1p-10), 0u);
  EXPECT_EQ(bin_of_ratio(std::nextafter(0x1p-10, 1)), 1u);
  EXPECT_EQ(bin_of_ratio(0.5), 9u);
  EXPECT_EQ(bin_of_ratio(std::nextafter(0.5, 1)), 10u);
  EXPECT_EQ(bin_of_ratio(1), 10u) << "at the bound is not over it";
  EXPECT_EQ(bin_of_ratio(std::nextafter(1, 2)), 11u);
  EXPECT_EQ(bin_of_ratio(std::numeric_limits<double>::infinity()), 11u);
  EXPECT_EQ(bin_of_ratio(std::numeric_limits<double>::quiet_NaN()), 11u);
}

TEST(Tally, ErrorsThatAreNoNumbersStayNumbersInTheCertificate) {
  for (const double share :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(), 1e300}) {
    Tally tally;
    tally.add({Outcome::fail, "", 0, share});
    EXPECT_TRUE(std::isfinite(tally.worst_ratio)) << share;
    EXPECT_GT(tally.worst_ratio, 1);
    EXPECT_EQ(tally.ratio_bins[kRatioBinCount - 1], 1u);
  }
  Tally none;
  none.add({Outcome::pass});
  EXPECT_LT(none.worst_ratio, 0);
}

}  // namespace
}  // namespace backplane::conformance::test
