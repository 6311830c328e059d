// SPDX-License-Identifier: Apache-2.0
// Tests the slots of "bp.native" on a queue device. Other code enqueues on the device's native queues.
#include <backplane/kit/device_table.hpp>

#include "queue_driver.hpp"

namespace backplane::kit::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kQueueHandle = "test.queue";
constexpr const char* kMemoryHandle = "test.memory";

// A queue of the device. It either owns its native queue, or wraps a native queue of other code.
struct HandleQueue {
  std::unique_ptr<ManualQueue> own;  // null if the native queue is wrapped
  ManualQueue* native = nullptr;
};

// A native device whose objects have handles.
class HandleNative : public ManualNative {
 public:
  using Queue = HandleQueue;

  static inline std::vector<int> freed;
  static inline Status condition;  // the result of health()
  // Null, or a queue that simulates an asynchronous driver: each poll first reads the mark, and then
  // runs the commands of this queue.
  static inline ManualQueue* running = nullptr;

  Status health() const { return condition; }
  void free(Memory memory) { freed.push_back(memory); }
  Result<std::unique_ptr<Queue>> create_queue(const bp_stream_desc&) {
    auto queue = std::make_unique<Queue>();
    queue->own = std::make_unique<ManualQueue>();
    queue->native = queue->own.get();
    return queue;
  }
  Result<Mark> mark(Queue& queue, bool timed) { return ManualNative::mark(*queue.native, timed); }
  Status poll(const Mark& mark) {
    Status status = ManualNative::poll(mark);
    if (running != nullptr) running->run();
    return status;
  }
  Status wait_for(Queue& queue, const Mark& mark) { return ManualNative::wait_for(*queue.native, mark); }
  Status copy(Queue& queue, Memory dst, uint64_t dst_offset, Memory src, uint64_t src_offset, uint64_t bytes) {
    return ManualNative::copy(*queue.native, dst, dst_offset, src, src_offset, bytes);
  }
  Status launch(Queue& queue, const Program& program, const QueueCall<int>& call) {
    return ManualNative::launch(*queue.native, program, call);
  }

  Result<bp_native_handle> device_handle(uint32_t index) {
    if (index > 1) return unsupported("the device has two handles");
    return native_handle(index == 0 ? "test.driver" : "test.device", 100 + index);
  }
  Result<bp_native_handle> handle(Queue& queue) {
    return native_handle(kQueueHandle, reinterpret_cast<uintptr_t>(queue.native));
  }
  Result<bp_native_handle> handle(const Memory& memory) {
    bp_native_handle out = native_handle(kMemoryHandle, static_cast<uint64_t>(memory));
    out.offset = 16;
    return out;
  }
  Result<bp_native_handle> handle(const Mark& mark) {
    return native_handle("test.fence", reinterpret_cast<uintptr_t>(mark.get()));
  }
  Result<std::unique_ptr<Queue>> wrap_queue(const bp_native_handle& handle) {
    if (Status status = check_native_type(handle, kQueueHandle); !status.ok()) return status;
    auto queue = std::make_unique<Queue>();
    queue->native = reinterpret_cast<ManualQueue*>(handle.value);
    return queue;
  }
  Result<Memory> wrap_memory(const bp_native_handle& handle, uint32_t& kind) {
    if (Status status = check_native_type(handle, kMemoryHandle); !status.ok()) return status;
    kind = BP_MEMORY_DEVICE;
    return static_cast<int>(handle.value);
  }
};

using HandleDevice = QueueDevice<HandleNative>;
constexpr const bp_native_api& kSlots = NativeTable<HandleDevice>::table;

class QueueNativeTest : public testing::Test {
 protected:
  void SetUp() override {
    ManualNative::reset();
    HandleNative::freed.clear();
    HandleNative::condition = {};
    HandleNative::running = nullptr;
  }
  // Runs the commands that a test left in the queue, and destroys the stream.
  struct RunAndDelete {
    void operator()(HandleDevice::Stream* stream) const {
      HandleNative::running = stream->queue().native;
      delete stream;
    }
  };
  using Stream = std::unique_ptr<HandleDevice::Stream, RunAndDelete>;

  Stream stream() { return Stream(device.create_stream({sizeof(bp_stream_desc), 0}).value()); }
  Stream wrap(const bp_native_handle& handle) {
    auto made = device.wrap_stream(handle);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return Stream(made.value());
  }
  bp_native_handle queue_handle() { return native_handle(kQueueHandle, reinterpret_cast<uintptr_t>(&foreign_queue)); }
  Status copy(HandleDevice::Stream& on) {
    const HandleDevice::Buffer dst{1, 64}, src{2, 64};
    return device.copy(on, dst, 0, src, 0, 4);
  }
  // Enqueues a command of other code, which completes with `result`.
  static void enqueue_foreign(ManualQueue& queue, const Status& result = {}) {
    queue.commands.emplace_back([result] { return result; });
  }

  ManualQueue foreign_queue;
  Operators<HandleDevice::Operator> operators;
  HandleDevice device{std::make_unique<HandleNative>(),
                      [] {
                        bp_device_info info{};
                        info.alignment = 64;
                        info.memory_kinds = 1u << BP_MEMORY_DEVICE;
                        return info;
                      }(),
                      operators};
};

TEST(NativeTables, EachMethodHasASlot) {
  EXPECT_NE(kSlots.device_native, nullptr);
  EXPECT_NE(kSlots.stream_native, nullptr);
  EXPECT_NE(kSlots.buffer_native, nullptr);
  EXPECT_NE(kSlots.event_native, nullptr);
  EXPECT_NE(kSlots.stream_wrap, nullptr);
  EXPECT_NE(kSlots.buffer_wrap, nullptr);
  EXPECT_FALSE(NativeTable<QueueDevice<ManualNative>>::kAny) << "its native device has no handles";
}

TEST_F(QueueNativeTest, HandlesComeFromTheNativeDevice) {
  EXPECT_EQ(device.device_native(1).value().value, 101u);
  EXPECT_EQ(device.device_native(2).status().code(), BP_UNSUPPORTED);
  const std::unique_ptr<HandleDevice::Buffer> buffer(
      device.create_buffer({sizeof(bp_buffer_desc), BP_MEMORY_DEVICE, 48, 0}).value());
  const bp_native_handle memory = device.native(*buffer).value();
  EXPECT_EQ(type_of(memory), kMemoryHandle);
  EXPECT_EQ(memory.value, 1u);
  EXPECT_EQ(memory.offset, 16u);
  EXPECT_EQ(memory.bytes, 48u) << "the kit states the size of the buffer";
  const Stream own = stream();
  const bp_native_handle queue = device.native(*own).value();
  EXPECT_EQ(queue.value, reinterpret_cast<uintptr_t>(own->queue().native));
  EXPECT_EQ(queue.bytes, 0u);
  EXPECT_EQ(queue.offset, 0u);
}

TEST_F(QueueNativeTest, AnEventHasAHandleOnceItIsRecorded) {
  HandleDevice::Event event(false);
  EXPECT_EQ(device.native(event).status().code(), BP_INVALID_ARGUMENT);
  const Stream own = stream();
  ASSERT_TRUE(device.record(event, *own).ok());
  const uint64_t pending = device.native(event).value().value;
  own->queue().native->run();
  EXPECT_EQ(device.native(event).value().value, pending);
  ASSERT_TRUE(device.record(event, *own).ok());
  EXPECT_NE(device.native(event).value().value, 0u);
  enqueue_foreign(*own->queue().native, {BP_EXECUTION_FAILED, "a planted failure"});
  ASSERT_TRUE(device.native(*own).ok());
  ASSERT_TRUE(device.record(event, *own).ok());
  own->queue().native->run();
  const Status failed = device.native(event).status();
  EXPECT_EQ(failed.code(), BP_EXECUTION_FAILED);
  EXPECT_THAT(failed.message(), HasSubstr("a planted failure"));
}

// A wait for a stream without commands marks the stream's queue only if the stream's handle was returned. Other code
// can enqueue commands only after that.
TEST_F(QueueNativeTest, AStreamWithAHandleWaitsForOtherCode) {
  const Stream own = stream();
  ManualQueue& native = *own->queue().native;
  EXPECT_TRUE(device.wait(*own, 0).ok());
  EXPECT_EQ(ManualNative::marks, 0);
  ASSERT_TRUE(device.native(*own).ok());
  for (int round = 0; round < 3; ++round) {
    HandleNative::running = nullptr;
    enqueue_foreign(native);
    EXPECT_EQ(device.wait(*own, 0).code(), BP_TIMEOUT);
    HandleNative::running = &native;
    EXPECT_TRUE(device.wait(*own, BP_WAIT_FOREVER).ok());
    EXPECT_THAT(native.commands, IsEmpty());
  }
}

TEST_F(QueueNativeTest, AWrappedStreamWaitsForOtherCode) {
  const Stream wrapping = wrap(queue_handle());
  enqueue_foreign(foreign_queue);
  EXPECT_EQ(device.wait(*wrapping, 0).code(), BP_TIMEOUT);
  HandleNative::running = &foreign_queue;
  EXPECT_TRUE(device.wait(*wrapping, BP_WAIT_FOREVER).ok());
  HandleNative::running = nullptr;
  enqueue_foreign(foreign_queue);
  HandleDevice::Event event(false);
  ASSERT_TRUE(device.record(event, *wrapping).ok());
  EXPECT_EQ(device.wait(event, 0).code(), BP_TIMEOUT);
  foreign_queue.run();
  EXPECT_TRUE(device.wait(event, 0).ok());
}

// An asynchronous driver completes a mark only after some polls, even if the queue is idle.
TEST_F(QueueNativeTest, APollSeesThatAnAsynchronousQueueIsIdle) {
  const Stream wrapping = wrap(queue_handle());
  HandleNative::running = &foreign_queue;
  for (int poll = 0; poll < 5; ++poll) EXPECT_TRUE(device.wait(*wrapping, 0).ok());
}

TEST_F(QueueNativeTest, PollsOfABusyQueueShareAMark) {
  const Stream wrapping = wrap(queue_handle());
  ASSERT_TRUE(copy(*wrapping).ok());
  for (int poll = 0; poll < 10; ++poll) EXPECT_EQ(device.wait(*wrapping, 0).code(), BP_TIMEOUT);
  EXPECT_EQ(ManualNative::marks, 1);
  ASSERT_TRUE(copy(*wrapping).ok());
  EXPECT_EQ(device.wait(*wrapping, 0).code(), BP_TIMEOUT);
  EXPECT_EQ(ManualNative::marks, 2) << "the poll submits the new command";
}

TEST_F(QueueNativeTest, StreamsOverOneQueueKeepTheOrder) {
  const Stream own = stream();
  ManualQueue& native = *own->queue().native;
  const Stream wrapping = wrap(device.native(*own).value());
  std::vector<int> order;
  const auto foreign = [&](int number) {
    native.commands.emplace_back([&order, number] {
      order.push_back(number);
      return Status();
    });
  };
  ASSERT_TRUE(copy(*wrapping).ok());
  foreign(1);
  ASSERT_TRUE(copy(*own).ok());
  foreign(2);
  EXPECT_EQ(native.commands.size(), 4u) << "each command is on the native queue at once";
  native.run();
  EXPECT_THAT(order, ElementsAre(1, 2));
}

TEST_F(QueueNativeTest, AFailureOfOtherCodeFailsTheStream) {
  const Stream wrapping = wrap(queue_handle()), later = stream();
  enqueue_foreign(foreign_queue, {BP_EXECUTION_FAILED, "a planted failure", 7});
  HandleDevice::Event event(false);
  ASSERT_TRUE(device.record(event, *wrapping).ok());
  ASSERT_TRUE(device.wait_event(*later, event).ok());
  HandleNative::running = &foreign_queue;
  const Status failure = device.wait(*wrapping, BP_WAIT_FOREVER);
  EXPECT_EQ(failure.code(), BP_EXECUTION_FAILED);
  EXPECT_EQ(failure.vendor_code(), 7);
  EXPECT_THAT(failure.message(), HasSubstr("a planted failure"));
  EXPECT_EQ(device.native(*wrapping).status().code(), BP_EXECUTION_FAILED);
  EXPECT_EQ(copy(*wrapping).code(), BP_EXECUTION_FAILED);
  later->queue().native->run();
  EXPECT_EQ(device.wait(*later, 0).code(), BP_TIMEOUT);
  later->queue().native->run();
  EXPECT_EQ(device.wait(*later, 0).code(), BP_EXECUTION_FAILED);
}

TEST_F(QueueNativeTest, TheNativeQueueOutlivesTheStream) {
  { const Stream passing = wrap(queue_handle()); }
  enqueue_foreign(foreign_queue);
  const Stream next = wrap(queue_handle());
  HandleNative::running = &foreign_queue;
  EXPECT_TRUE(device.wait(*next, BP_WAIT_FOREVER).ok());
}

// The destructor of a stream waits for the commands of other code, because these commands may use
// the plugin's memory.
TEST_F(QueueNativeTest, TheEndOfAStreamWaitsForOtherCode) {
  const Stream own = stream();
  ManualQueue& native = *own->queue().native;
  Stream wrapping = wrap(device.native(*own).value());
  enqueue_foreign(native);
  HandleNative::running = &native;
  delete wrapping.release();
  EXPECT_THAT(native.commands, IsEmpty());
}

TEST_F(QueueNativeTest, WrappedMemoryHasItsKindAndItsBytes) {
  bp_native_handle handle = native_handle(kMemoryHandle, 41);
  handle.bytes = 100;
  uint32_t kind = UINT32_MAX;
  auto made = device.wrap_memory(handle, kind);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(kind, BP_MEMORY_DEVICE);
  EXPECT_EQ(made.value()->bytes, 100u);
  EXPECT_EQ(made.value()->memory, 41);
  const Stream own = stream();
  EXPECT_EQ(device.copy(*own, *made.value(), 97, {2, 64}, 0, 4).code(), BP_INVALID_ARGUMENT) << "past the end";
  EXPECT_EQ(device.native(*made.value()).value().bytes, 100u);
  device.destroy(made.value());
  EXPECT_THAT(HandleNative::freed, ElementsAre(41));
}

TEST_F(QueueNativeTest, ForeignHandlesAreRefused) {
  bp_native_handle handle = native_handle("other.thing", 41);
  handle.bytes = 100;
  uint32_t kind = 0;
  for (const Status& refused : {device.wrap_memory(handle, kind).status(), device.wrap_stream(handle).status()}) {
    EXPECT_EQ(refused.code(), BP_UNSUPPORTED);
    EXPECT_THAT(refused.message(), HasSubstr("other.thing"));
  }
  bp_buffer* buffer = reinterpret_cast<bp_buffer*>(&handle);
  auto* const slots = reinterpret_cast<bp_device*>(&device);
  handle = native_handle(kMemoryHandle, 41);
  EXPECT_EQ(kSlots.buffer_wrap(slots, &handle, &kind, &buffer, nullptr), BP_INVALID_ARGUMENT) << "0 bytes";
  EXPECT_EQ(buffer, nullptr);
  handle.bytes = 1;
  handle.offset = UINT64_MAX;
  EXPECT_EQ(kSlots.buffer_wrap(slots, &handle, &kind, &buffer, nullptr), BP_INVALID_ARGUMENT) << "ends past 2^64";
  handle.offset = 0;
  handle.flags = 2;
  EXPECT_EQ(kSlots.buffer_wrap(slots, &handle, &kind, &buffer, nullptr), BP_UNSUPPORTED) << "an unknown flag";
  EXPECT_THAT(HandleNative::freed, IsEmpty());
}

TEST_F(QueueNativeTest, ALostDeviceGivesNoHandles) {
  const Stream own = stream();
  const HandleDevice::Buffer buffer{1, 64};
  bp_native_handle memory = native_handle(kMemoryHandle, 41);
  memory.bytes = 8;
  uint32_t kind = 0;
  HandleNative::condition = {BP_DEVICE_LOST, "a planted loss"};
  for (const Status& refused :
       {device.device_native(0).status(), device.native(*own).status(), device.native(buffer).status(),
        device.wrap_stream(queue_handle()).status(), device.wrap_memory(memory, kind).status()}) {
    EXPECT_EQ(refused.code(), BP_DEVICE_LOST);
  }
  HandleNative::condition = {};
}

}  // namespace
}  // namespace backplane::kit::test
