// SPDX-License-Identifier: Apache-2.0
// Tests the list of numeric cases, and runs a sample of them in this process on the reference
// plugin.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "cases/catalogue.hpp"
#include "harness/context.hpp"
#include "oracle/table.hpp"
#include "report/verdict.hpp"

namespace backplane::conformance::test {
namespace {

bool is_numeric(const Case& which) { return which.id.starts_with("numeric."); }

TEST(Numeric, IdsAreUniqueAndOfTheirAlphabet) {
  std::set<std::string> seen;
  for (const Case& which : enumerate()) {
    EXPECT_TRUE(seen.insert(which.id).second) << which.id << " twice";
    EXPECT_EQ(which.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_+-."), std::string::npos) << which.id;
    EXPECT_FALSE(which.requirements.empty()) << which.id;
  }
}

TEST(Numeric, EveryPrimitiveHasCasesInEveryDtype) {
  std::map<uint32_t, uint64_t> dtypes;
  for (const Case& which : enumerate()) {
    if (is_numeric(which)) dtypes[which.op] |= BP_DTYPE_BIT(which.dtype);
  }
  for (const oracle::Operator& row : oracle::kOperators) {
    EXPECT_EQ(dtypes[row.id], row.kind == BP_KIND_PRIMITIVE ? row.dtypes : dtypes[row.id]) << row.name;
  }
}

// A composite is optional, and its decomposition is mandatory in the dtypes that a profile requires.
TEST(Numeric, DecompositionsAreMandatory) {
  const std::set<uint32_t> random = {BP_OP_UNIFORM, BP_OP_NORMAL, BP_OP_DROPOUT};
  std::set<uint32_t> mandatory;
  for (const Case& which : enumerate()) {
    if (!is_numeric(which) || !which.id.ends_with(".decomposed")) continue;
    EXPECT_EQ(which.profile, random.contains(which.op) ? uint32_t{BP_PROFILE_TRAIN} : uint32_t{BP_PROFILE_INFER})
        << which.id;
    EXPECT_EQ(is_mandatory(which), which.extension.empty()) << which.id;
    EXPECT_TRUE(which.dtype != BP_F64 || which.extension == "f64") << which.id;
    if (is_mandatory(which)) mandatory.insert(which.op);
  }
  for (const oracle::Operator& row : oracle::kOperators) {
    EXPECT_TRUE(row.kind == BP_KIND_PRIMITIVE || mandatory.contains(row.id)) << row.name;
  }
}

// docs/requirements.md must contain each operator's sentence from the operator table, with `|`
// escaped.
TEST(Numeric, RequirementsOfOperatorsAreTheTablesSentences) {
  const char* const source = std::getenv("BACKPLANE_TEST_SOURCE");
  ASSERT_NE(source, nullptr);
  std::ifstream file(std::string(source) + "/docs/requirements.md");
  std::set<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.insert(line);
  for (const oracle::Operator& row : oracle::kOperators) {
    std::string sentence;
    for (const char letter : std::string_view(row.doc))
      sentence += letter == '|' ? std::string("\\|") : std::string(1, letter);
    const std::string line = fmt::format("| BP-OPR-{:03} | {}. | `conformance` |", row.id, sentence);
    EXPECT_TRUE(lines.count(line) == 1) << "docs/requirements.md lacks: " << line;
  }
}

// The sample contains every 61st case, which is dense enough to include each operator.
TEST(Numeric, TheReferencePluginPassesASample) {
  const char* const plugin = std::getenv("BACKPLANE_TEST_REFERENCE");
  ASSERT_NE(plugin, nullptr);
  const Catalogue catalogue = enumerate();
  Session session;
  session.path = plugin;
  session.seed = 7;
  size_t index = 0, ran = 0;
  for (const Case& which : catalogue) {
    if (!is_numeric(which) || which.extension == "LARGE" || index++ % 61 != 0) continue;
    try {
      Context context(session, which);
      which.run(context);
      ++ran;
    } catch (const CaseEnd& end) {
      // The reference plugin has every primitive and no native composite.
      const bool native = which.profile == BP_PROFILE_COMPOSITE;
      if (!native || end.outcome != Outcome::not_claimed) ADD_FAILURE() << which.id << ": " << end.message;
    }
  }
  session.close();
  EXPECT_GT(ran, 400u);
}

}  // namespace
}  // namespace backplane::conformance::test
