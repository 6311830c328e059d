// SPDX-License-Identifier: Apache-2.0
// Every case of behaviour in this process against the reference plugin: what a sound plugin must pass.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "cases/catalogue.hpp"
#include "harness/context.hpp"
#include "harness/probe.hpp"

namespace bp::conformance {

namespace {

Catalogue behaviour() {
  Catalogue all;
  add_abi_cases(all);
  add_runtime_cases(all);
  add_negative_cases(all);
  add_host_cases(all);
  return all;
}

class Behaviour : public testing::TestWithParam<size_t> {
 protected:
  static void SetUpTestSuite() {
    session().path = std::getenv("BACKPLANE_TEST_REFERENCE");
    session().seed = 1;
  }
  static void TearDownTestSuite() { session().close(); }
  static Session& session() {
    static Session shared;
    return shared;
  }
};

const Catalogue& cases() {
  static const Catalogue all = behaviour();
  return all;
}

TEST_P(Behaviour, OfTheReferencePlugin) {
  const Case& which = cases()[GetParam()];
  Context context(session(), which);
  try {
    which.run(context);
  } catch (const CaseEnd& end) {
    if (is_failure(end.outcome)) {
      session().close();
      ADD_FAILURE() << name_of(end.outcome) << ": " << end.message;
    } else {
      GTEST_SKIP() << end.message;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Case, Behaviour, testing::Range(size_t{0}, cases().size()),
                         [](const testing::TestParamInfo<size_t>& at) {
                           std::string name = cases()[at.param].id;
                           for (char& letter : name)
                             if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
                           return name;
                         });

TEST(BehaviourCatalogue, IdsAreUniqueAndCite) {
  std::set<std::string> seen;
  for (const Case& each : cases()) {
    EXPECT_TRUE(seen.insert(each.id).second) << each.id;
    EXPECT_FALSE(each.requirements.empty()) << each.id;
    EXPECT_TRUE(each.run) << each.id;
  }
}

}  // namespace

}  // namespace bp::conformance

int main(int argc, char** argv) {
  bp::conformance::serve_probe(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
