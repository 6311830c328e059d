// SPDX-License-Identifier: Apache-2.0
// What a call costs the host, and what it refuses.
#include <ctime>

#include "rig.hpp"

namespace {

// operator new of this thread.
thread_local uint64_t allocations = 0;

}  // namespace

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using namespace backplane::vulkan;
namespace kit = backplane::kit;

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

TEST_F(OnDevice, AnExecutionAllocatesNothing) {
  constexpr int kCalls = 1000;
  Rig rig;
  ASSERT_TRUE(rig.open(instance).ok());
  double best = 1;
  for (int round = 0; round < 5; ++round) {
    const uint64_t before = allocations;
    const double start = thread_seconds();
    for (int i = 0; i < kCalls; ++i) ASSERT_TRUE(rig.enqueue().ok());
    best = std::min(best, thread_seconds() - start);
    const uint64_t made = allocations - before;
    ASSERT_TRUE(rig.wait().ok());
    if (round > 0) {  // lists have grown to their size in the first
      EXPECT_EQ(made, 0u);
    }
  }
  RecordProperty("us_per_call", std::to_string(best / kCalls * 1e6));
  std::printf("%.2f us of the calling thread an execution, in batches of %d, driver included\n", best / kCalls * 1e6,
              kCalls);
}

TEST_F(OnDevice, WaitsForEventsAllocateNothingEither) {
  Rig rig, other;
  ASSERT_TRUE(rig.open(instance).ok());
  ASSERT_TRUE(other.open(instance).ok());
  Event* const event = need(rig.device->create_event(0));
  for (int round = 0; round < 20; ++round) {
    const uint64_t before = allocations;
    ASSERT_TRUE(rig.enqueue().ok());
    ASSERT_TRUE(rig.device->record(*event, *rig.stream).ok());
    ASSERT_TRUE(other.device->wait_event(*other.stream, *event).ok());
    ASSERT_TRUE(other.enqueue().ok());
    ASSERT_TRUE(other.wait().ok());
    if (round >= 10) {
      EXPECT_EQ(allocations, before);
    }
  }
  rig.device->destroy(event);
}

TEST_F(OnDevice, APlanOfPackedOperandsRefusesOthers) {
  Rig rig;
  ASSERT_TRUE(rig.open(instance).ok());
  ASSERT_TRUE(rig.plan->packed);
  for (const int at : {1, 2}) {
    bp_tensor_desc views[3] = {rig.views[0], rig.views[1], rig.views[2]};
    for (bp_tensor_desc& view : views) {
      view.rank = 2;
      view.shape[0] = view.shape[1] = 4;
      view.strides[0] = 4;
      view.strides[1] = 1;
    }
    bp_op_desc desc = rig.desc;
    desc.inputs = views;
    desc.outputs = views + 2;
    EXPECT_TRUE(rig.enqueue(desc).ok());
    views[at].strides[0] = 8;
    const kit::Status status = rig.enqueue(desc);
    EXPECT_EQ(status.code(), BP_INVALID_ARGUMENT);
    EXPECT_NE(status.message().find(at == 1 ? "input 1" : "output 0"), std::string::npos) << status.message();
  }
  EXPECT_TRUE(rig.wait().ok());
}

TEST_F(OnDevice, ScratchIsOfOneStream) {
  Rig rig, other;
  ASSERT_TRUE(rig.open(instance).ok());
  ASSERT_TRUE(other.open(instance).ok());
  const uint64_t a = rig.stream->scratch(), b = other.stream->scratch();
  EXPECT_EQ(a % 256, 0u);
  EXPECT_TRUE(a + Stream::kScratchBytes <= b || b + Stream::kScratchBytes <= a);
}

}  // namespace
