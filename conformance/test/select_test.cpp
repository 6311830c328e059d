// SPDX-License-Identifier: Apache-2.0
#include "harness/select.hpp"

#include <gmock/gmock.h>

namespace backplane::conformance {
namespace {

using testing::ElementsAre;

Catalogue small() {
  Catalogue catalogue;
  for (const char* id :
       {"abi.library.loads", "numeric.add.f32.tail", "numeric.add.f32.tail_of_3", "numeric.addmm.f32.tail"})
    catalogue.push_back({.id = id});
  return catalogue;
}

std::vector<size_t> selected(std::vector<std::string> filters) {
  return select(small(), {.filters = std::move(filters)});
}

TEST(Select, WithoutFiltersAllCasesMatch) { EXPECT_THAT(selected({}), ElementsAre(0, 1, 2, 3)); }

TEST(Select, APrefixEndsAtADot) {
  EXPECT_THAT(selected({"numeric.add"}), ElementsAre(1, 2));
  EXPECT_THAT(selected({"numeric"}), ElementsAre(1, 2, 3));
  EXPECT_THAT(selected({"numeric."}), ElementsAre());
  EXPECT_THAT(selected({"numeric.ad"}), ElementsAre());
  EXPECT_THAT(selected({""}), ElementsAre());
}

TEST(Select, AnIdMatchesOneCase) {
  EXPECT_THAT(selected({"numeric.add.f32.tail"}), ElementsAre(1));
  EXPECT_THAT(selected({"numeric.add.f32.tail.of_4"}), ElementsAre());
}

TEST(Select, FiltersOfSeveralLengthsAndPatternsAddCases) {
  EXPECT_THAT(selected({"numeric.addmm", "abi", "numeric.add.f32.tail"}), ElementsAre(0, 1, 3));
  EXPECT_THAT(selected({"*.tail_*", "abi.library"}), ElementsAre(0, 2));
}

TEST(Select, FiltersWithoutAMatchAreReturned) {
  EXPECT_THAT(without_match(small(), {.filters = {"abi", "numeric.ad", "*.add.*", "runtime.*"}}),
              ElementsAre("numeric.ad", "runtime.*"));
}

// If two filters match the same case, both filters have a match.
TEST(Select, FiltersThatMatchTheSameCaseAllMatch) {
  EXPECT_THAT(without_match(small(), {.filters = {"numeric", "numeric.add", "numeric.add.f32.tail", "*.tail"}}),
              ElementsAre());
}

}  // namespace
}  // namespace backplane::conformance
