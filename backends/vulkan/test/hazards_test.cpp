// SPDX-License-Identifier: Apache-2.0
#include "runtime/hazards.hpp"

#include <gtest/gtest.h>

namespace backplane::vulkan::test {

namespace {

constexpr Access kRead{100, 200, false}, kWrite{100, 200, true};

bool conflict(const Access& earlier, const Access& later) {
  Hazards hazards;
  hazards.note({&earlier, 1});
  return hazards.conflict({&later, 1});
}

TEST(Hazards, ReadsDoNotWaitForReads) { EXPECT_FALSE(conflict(kRead, kRead)); }
TEST(Hazards, AReadWaitsForAWrite) { EXPECT_TRUE(conflict(kWrite, kRead)); }
TEST(Hazards, AWriteWaitsForARead) { EXPECT_TRUE(conflict(kRead, kWrite)); }
TEST(Hazards, AWriteWaitsForAWrite) { EXPECT_TRUE(conflict(kWrite, kWrite)); }

TEST(Hazards, OnlyOverlappingAccessesWait) {
  EXPECT_FALSE(conflict(kWrite, {200, 300, true}));
  EXPECT_FALSE(conflict(kWrite, {0, 100, true}));
  EXPECT_TRUE(conflict(kWrite, {199, 300, true}));
  EXPECT_TRUE(conflict(kWrite, {0, 101, false}));
  EXPECT_TRUE(conflict(kWrite, {120, 130, false}));
}

TEST(Hazards, AccessesBeyondTheListsCapacityStillWait) {
  Accesses many;
  for (uint64_t i = 0; i < 1000; ++i) many.add({i * 10, i * 10 + 5, i == 500});
  Hazards hazards;
  hazards.note(many);
  EXPECT_TRUE(hazards.conflict(Accesses{{5002, 5003, false}}));
  EXPECT_TRUE(hazards.conflict(Accesses{{9990, 9991, true}}));
  EXPECT_FALSE(hazards.conflict(Accesses{{9995, 9999, true}}));
  EXPECT_FALSE(hazards.conflict(Accesses{{0, 5, false}}));
}

TEST(Hazards, ABarrierClearsTheList) {
  Hazards hazards;
  hazards.note({&kWrite, 1});
  hazards.clear();
  EXPECT_FALSE(hazards.conflict({&kWrite, 1}));
}

TEST(Hazards, ALongListEndsInABarrier) {
  Hazards hazards;
  for (int i = 0; i < 1000 && !hazards.conflict({}); ++i) hazards.note({&kRead, 1});
  EXPECT_TRUE(hazards.conflict({}));
}

}  // namespace

}  // namespace backplane::vulkan::test
