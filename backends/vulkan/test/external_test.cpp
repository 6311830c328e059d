// SPDX-License-Identifier: Apache-2.0
// Tests shared memory and semaphores on a device. The cases runtime.external of the suite test handles. Mesa's CPU
// driver exports no semaphores, so the tests of semaphores use semaphores that are not exported.
#include <gmock/gmock.h>

#include <optional>
#include <stdexcept>

#include "rig.hpp"

namespace backplane::vulkan::test {
namespace {

using testing::HasSubstr;

template <class T>
T take(kit::Result<T> made) {
  if (!made.ok()) throw std::runtime_error(made.status().message());
  return std::move(made.value());
}

TEST(ExternalSetting, IsOnOrOff) {
  const auto offers = [](const char* value) {
    ::setenv(kExternalSetting, value, 1);
    return offers_external();
  };
  EXPECT_FALSE(offers("").value());
  EXPECT_FALSE(offers("off").value());
  EXPECT_THAT(offers("yes").status().message(), HasSubstr("may be on or off"));
  EXPECT_TRUE(offers("on").value());
}

TEST(ImportedDescriptor, IsClosedUnlessTheDriverOwnsIt) {
  const kit::Descriptor file(::memfd_create("test", MFD_CLOEXEC)), other(::memfd_create("test", MFD_CLOEXEC));
  ASSERT_GE(other.get(), 0);
  const kit::Status failure = status_of(VK_ERROR_INVALID_EXTERNAL_HANDLE, "the test");
  int copy = -1;
  {
    auto failed = ImportedDescriptor::of("the test", file.get());
    ASSERT_TRUE(failed.ok());
    copy = failed.value().get();
    EXPECT_NE(copy, file.get());
    EXPECT_EQ(failed.value().end("the test", failure).code(), BP_INVALID_ARGUMENT);
  }
  EXPECT_EQ(::fcntl(copy, F_GETFD), -1) << "a failed import leaves no descriptor";
  {
    auto taken = ImportedDescriptor::of("the test", file.get());
    copy = taken.value().get();
    EXPECT_TRUE(taken.value().end("the test", {}).ok());
  }
  EXPECT_GE(::fcntl(copy, F_GETFD), 0) << "the driver owns the descriptor of a successful import";
  ::close(copy);
  {
    auto closed = ImportedDescriptor::of("the test", file.get());
    copy = closed.value().get();
    ::close(copy);  // simulates a driver that closes the descriptor and then fails
    ASSERT_EQ(::dup2(other.get(), copy), copy);
    EXPECT_EQ(closed.value().end("the test", failure).code(), BP_INVALID_ARGUMENT);
  }
  EXPECT_GE(::fcntl(copy, F_GETFD), 0) << "the number is a descriptor of other code now";
  ::close(copy);
}

TEST(ImportedDescriptor, ConvertsFailures) {
  const kit::Descriptor fd(::dup(0));
  const auto end = [&](const kit::Status& status) {
    return ImportedDescriptor::of("the test", fd.get()).value().end("the test", status).code();
  };
  EXPECT_EQ(end(status_of(VK_ERROR_OUT_OF_DEVICE_MEMORY, "the test")), BP_INVALID_ARGUMENT);
  EXPECT_EQ(end(status_of(VK_ERROR_OUT_OF_HOST_MEMORY, "the test")), BP_OUT_OF_MEMORY);
  EXPECT_EQ(end(status_of(VK_ERROR_DEVICE_LOST, "the test")), BP_DEVICE_LOST);
}

class ExternalTest : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) return;
    device = take(LogicalDevice::create(instance, 0));
    memory.emplace(*device);
  }
  // Returns whether the stream ends its work within the time.
  static bool ends(Stream& stream, uint64_t timeout_ns) {
    const Point point = stream.mark(nullptr).value();
    return point.timeline->wait(point.value, timeout_ns).ok();
  }
  static constexpr uint64_t kShort = 2'000'000, kLong = 10'000'000'000;
  static bool reached(const Semaphore& semaphore, uint64_t value) { return semaphore.reached(value).value(); }

  std::unique_ptr<LogicalDevice> device;
  std::optional<Memory> memory;
};

TEST_F(ExternalTest, ASignalFollowsTheWorkAndNeverLowers) {
  const auto semaphore = take(Semaphore::create(*device, 3, false));
  const auto stream = take(Stream::create(*device, *memory));
  EXPECT_TRUE(reached(*semaphore, 3));
  for (const uint64_t value : {5u, 5u, 4u, 2u}) {
    ASSERT_TRUE(stream->signal(*semaphore, value).ok());
    ASSERT_TRUE(ends(*stream, kLong));
    EXPECT_TRUE(reached(*semaphore, 5));
    EXPECT_FALSE(reached(*semaphore, 6));
  }
  EXPECT_TRUE(semaphore->raise_now(4).ok());
  EXPECT_FALSE(reached(*semaphore, 6));
  EXPECT_TRUE(semaphore->raise_now(6).ok());
  EXPECT_TRUE(reached(*semaphore, 6));
}

TEST_F(ExternalTest, AWaitForAReachedValueNeedsNoQueueOfItsOwn) {
  const auto semaphore = take(Semaphore::create(*device, 3, false));
  const auto stream = take(Stream::create(*device, *memory));
  ASSERT_TRUE(stream->wait(*semaphore, 3).ok());
  EXPECT_TRUE(ends(*stream, kLong));
}

// The plugin reserves no queue that is the last one for new streams. A device with a single queue therefore rejects a
// wait for a value above the semaphore's current value.
TEST_F(ExternalTest, AWaitNeedsAQueueOfItsOwn) {
  const auto semaphore = take(Semaphore::create(*device, 0, false));
  const auto stream = take(Stream::create(*device, *memory));
  const kit::Status status = stream->wait(*semaphore, 1);
  if (device->physical().queue_count < 2) {
    EXPECT_EQ(status.code(), BP_UNSUPPORTED);
    EXPECT_THAT(status.message(), HasSubstr("shares its queue"));
    EXPECT_TRUE(ends(*stream, kLong)) << "a refused wait enqueues nothing";
    return;
  }
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_FALSE(ends(*stream, kShort));
  const auto other = take(Stream::create(*device, *memory));
  EXPECT_TRUE(ends(*other, kLong)) << "other streams work meanwhile";
  ASSERT_TRUE(other->signal(*semaphore, 1).ok());
  EXPECT_TRUE(ends(*stream, kLong));
}

TEST_F(ExternalTest, AQueueIsReservedForOneStream) {
  const uint32_t count = std::min(device->physical().queue_count, 8u);
  std::vector<Queue> taken;
  for (uint32_t i = 0; i < count; ++i) taken.push_back(device->take_queue());
  for (uint32_t i = 0; i < count; ++i) EXPECT_EQ(taken[i].index, i) << "streams use different queues first";
  for (uint32_t i = 0; i + 1 < count; ++i) EXPECT_TRUE(device->reserve_queue(taken[i]));
  EXPECT_FALSE(device->reserve_queue(taken.back())) << "new streams need a queue";
  const Queue shared = device->take_queue();
  EXPECT_EQ(shared.index, count - 1);
  EXPECT_FALSE(device->reserve_queue(shared));
  device->give_queue(shared);
  for (const Queue& each : taken) device->give_queue(each);
  EXPECT_EQ(device->take_queue().index, 0u) << "a queue that was given back is free again";
  device->give_queue(taken[0]);
}

}  // namespace
}  // namespace backplane::vulkan::test
