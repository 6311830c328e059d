// SPDX-License-Identifier: Apache-2.0
#include "harness/work_order.hpp"

#include <gmock/gmock.h>

namespace backplane::conformance {
namespace {

constexpr uint32_t kNew = UINT32_MAX;  // marks a worker that has run no range

std::deque<Work> ranges(std::initializer_list<std::pair<uint32_t, uint32_t>> list) {
  std::deque<Work> queue;
  for (const auto& [first, last] : list) queue.push_back(Work{first, last});
  return queue;
}

TEST(WorkOrder, AWorkerContinuesWhereItsLastRangeEnded) {
  const std::deque<Work> queue = ranges({{4, 8}, {8, 12}, {20, 24}, {24, 28}, {28, 32}});
  EXPECT_EQ(next_range(queue, 4, {}), 0u);
  EXPECT_EQ(next_range(queue, 20, {4}), 2u);
}

TEST(WorkOrder, ANewWorkerBeginsAtALongRunThatNoWorkerFollows) {
  EXPECT_EQ(next_range(ranges({{0, 4}, {4, 8}, {8, 12}}), kNew, {}), 0u);
  EXPECT_EQ(next_range(ranges({{0, 4}, {20, 24}, {24, 28}}), kNew, {50}), 1u);
}

// Cases that need a new process are in another queue. The ranges of this queue therefore have gaps, such as from 4 to
// 20.
TEST(WorkOrder, AWorkerWithoutOthersKeepsTheOrderOfTheCatalogue) {
  const std::deque<Work> queue = ranges({{0, 4}, {20, 24}, {24, 28}});
  EXPECT_EQ(next_range(queue, kNew, {}), 0u);
  EXPECT_EQ(next_range(ranges({{8, 12}, {20, 24}, {24, 28}}), 4, {}), 0u);
}

TEST(WorkOrder, ARunWithAWorkerIsDivided) {
  const std::deque<Work> queue = ranges({{4, 8}, {8, 12}, {12, 16}, {16, 20}, {30, 31}});
  EXPECT_EQ(next_range(queue, kNew, {4}), 2u);
  EXPECT_EQ(next_range(queue, 31, {4}), 2u);
  EXPECT_EQ(next_range(ranges({{4, 8}}), kNew, {4}), 0u);
}

// Two workers that take turns should each run one half of the selection in order.
TEST(WorkOrder, TwoWorkersRunOneHalfEach) {
  std::deque<Work> queue;
  for (uint32_t first = 0; first < 100; ++first) queue.push_back(Work{first, first + 1});
  uint32_t ends[2] = {kNew, kNew};
  uint32_t jumps = 0;
  for (uint32_t turn = 0; !queue.empty(); ++turn) {
    uint32_t& end = ends[turn % 2];
    const size_t at = next_range(queue, end, {ends[1 - turn % 2]});
    jumps += queue[at].first != end;
    end = queue[at].last;
    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(at));
  }
  EXPECT_LE(jumps, 4u);
}

}  // namespace
}  // namespace backplane::conformance
