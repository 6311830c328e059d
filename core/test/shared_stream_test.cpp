// SPDX-License-Identifier: Apache-2.0
// Tests SHARED streams, which threads use concurrently, and EXTERNAL streams, on which other code
// enqueues. Also tests bph_stream_enqueue.
#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

#include "loading/registry.hpp"
#include "memory_fixture.hpp"
#include "streams/stream.hpp"

namespace backplane::core::test {
namespace {

class SharedStreamTest : public MemoryTest {
 protected:
  // A registry that appends each log line to `lines` and calls `on_line`.
  struct Log {
    Log() {
      bph_registry_desc desc = {};
      desc.struct_size = sizeof(desc);
      desc.flags = BPH_REGISTRY_NO_DEFAULT_PATHS;
      desc.log_context = this;
      desc.log = [](void* context, int32_t, const char* message) {
        auto& self = *static_cast<Log*>(context);
        self.lines.emplace_back(message);
        if (self.on_line) self.on_line();
      };
      EXPECT_EQ(bph_registry_create(&desc, registry.out(), nullptr), BP_OK);
    }
    void write(const char* message) const { require<Registry>(registry, "test").log(BP_LOG_WARNING, message); }
    std::vector<std::string> lines;
    std::function<void()> on_line;
    Owned<bph_registry> registry;
  };

  static bp_status nothing(void*, bp_device*, bp_stream*, bp_error*) { return BP_OK; }
};

TEST_F(SharedStreamTest, TheDescriptorIsChecked) {
  open();
  bph_stream* made = nullptr;
  const auto desc_of = [](uint32_t size, uint32_t flags, uint32_t reserved) {
    bph_stream_desc filled = {};
    filled.struct_size = size;
    filled.flags = flags;
    filled.reserved = reserved;
    return filled;
  };
  bph_stream_desc desc = desc_of(sizeof(desc), 8, 0);
  const auto create = [&](bp_error* error) { return bph_stream_create(device, &desc, &made, error); };
  EXPECT_FAILS(create(&error), BP_UNSUPPORTED, "flags 0x8 or reserved 0x0");
  desc = desc_of(sizeof(desc), 0, 1);
  EXPECT_FAILS(create(&error), BP_UNSUPPORTED, "flags 0x0 or reserved 0x1");
  desc = desc_of(BPH_STREAM_DESC_MIN_SIZE - 1, 0, 0);
  EXPECT_FAILS(create(&error), BP_INVALID_ARGUMENT, "struct_size is 15, less than its minimum of 16");
  desc = desc_of(UINT32_MAX, 0, 0);
  EXPECT_FAILS(create(&error), BP_INVALID_ARGUMENT, "no struct is longer than 4096");
  struct {
    bph_stream_desc desc;
    uint64_t later;
  } longer = {desc_of(sizeof(longer), 0, 0), 1};
  EXPECT_FAILS(bph_stream_create(device, &longer.desc, &made, &error), BP_UNSUPPORTED, "non-zero bytes beyond the 40");
  EXPECT_EQ(made, nullptr);
  longer.later = 0;
  ASSERT_OK(bph_stream_create(device, &longer.desc, &made, &error));
  bph_stream_release(made);
  EXPECT_EQ(fake->streams(), 0u);
}

TEST_F(SharedStreamTest, InfoGivesThePluginsStreamOfExternalOnesOnly) {
  open();
  for (const uint32_t flags : {0u, BPH_STREAM_SHARED, BPH_STREAM_EXTERNAL, BPH_STREAM_SHARED | BPH_STREAM_EXTERNAL}) {
    bph_stream_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.priority = -3;
    desc.flags = flags;
    bph_stream* one = nullptr;
    ASSERT_OK(bph_stream_create(device, &desc, &one, &error));
    bph_stream_info info = {};
    info.struct_size = sizeof(info);
    ASSERT_OK(bph_stream_get_info(one, &info, &error));
    EXPECT_EQ(info.flags, flags);
    EXPECT_EQ(info.priority, -3);
    EXPECT_EQ(info.plugin_stream, (flags & BPH_STREAM_EXTERNAL) != 0 ? plugin_stream(one) : nullptr);
    info.struct_size = 16;
    EXPECT_FAILS(bph_stream_get_info(one, &info, &error), BP_INVALID_ARGUMENT, "less than its minimum of 24");
    EXPECT_FAILS(bph_stream_get_info(one, nullptr, &error), BP_INVALID_ARGUMENT, "bph_stream_info is null");
    bph_stream_release(one);
    info.struct_size = sizeof(info);
    EXPECT_FAILS(bph_stream_get_info(one, &info, &error), BP_INVALID_ARGUMENT, "is not a live stream");
  }
  bph_event* event = this->event(BP_EVENT_TIMING);
  bph_event_info info = {};
  info.struct_size = sizeof(info);
  ASSERT_OK(bph_event_get_info(event, &info, &error));
  EXPECT_EQ(info.flags, BP_EVENT_TIMING);
  EXPECT_NE(info.plugin_event, nullptr);
}

TEST_F(SharedStreamTest, ThreadsCallItAtOnce) {
  open();
  bph_stream* one = stream(BPH_STREAM_SHARED);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      bph_buffer* buffer = create(1024, one);
      bph_event* mark = event();
      std::string text(256, static_cast<char>('a' + t)), got(256, 0);
      for (int i = 0; i < 200; ++i) {
        failures += bph_copy_in(one, buffer, 0, text.data(), 256, 0, nullptr) != BP_OK;
        failures += bph_copy(one, buffer, 512, buffer, 0, 256, 0, nullptr) != BP_OK;
        failures += bph_event_record(mark, one, nullptr) != BP_OK;
        failures += bph_stream_wait_event(one, mark, nullptr) != BP_OK;
        failures += bph_stream_enqueue(one, nothing, nullptr, nullptr) != BP_OK;
        failures += bph_stream_wait(one, i % 3 == 0 ? 0 : BP_WAIT_FOREVER, nullptr) > BP_OK && i % 3 != 0;
        if (i % 20 == 0) {
          failures += bph_copy_out(one, got.data(), buffer, 512, 256, 0, nullptr) != BP_OK;
          failures += got != text;
        }
        bph_buffer_release(create(4096, one));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

TEST_F(SharedStreamTest, ACopyThatCompletesAtOnceNeedsNoEvent) {
  FakeOptions options;
  options.copy_in = options.copy_out = true;
  open(options);
  bph_stream* one = stream(BPH_STREAM_SHARED);
  bph_buffer* buffer = create(1024, one);
  std::string got(256, 0);
  ASSERT_OK(bph_copy_in(one, buffer, 0, std::string(256, 'a').data(), 256, BPH_COPY_SOURCE_FREE, &error));
  ASSERT_OK(bph_copy_out(one, got.data(), buffer, 0, 256, 0, &error));
  EXPECT_EQ(got, std::string(256, 'a'));
  EXPECT_EQ(fake->calls("event_create"), 0u);

  fake->hold();
  ASSERT_OK(bph_copy_out(one, got.data(), buffer, 0, 128, 0, &error));
  EXPECT_EQ(fake->calls("event_create"), 1u) << "other threads use the stream during the wait";
}

TEST_F(SharedStreamTest, AWaitExcludesNoEnqueue) {
  open();
  bph_stream* one = stream(BPH_STREAM_SHARED);
  bph_buffer* buffer = create(1024, one);
  std::promise<void> waits, go_on;
  std::atomic<bool> first{true};
  fake->hook = [&](const char* slot) {
    if (std::string(slot) != "event_wait" || !first.exchange(false)) return;
    waits.set_value();
    go_on.get_future().wait();
  };
  fake->hold();
  use(buffer, one);
  std::thread waiter([&] { EXPECT_EQ(bph_stream_wait(one, BP_WAIT_FOREVER, nullptr), BP_OK); });
  waits.get_future().wait();
  use(buffer, one);  // returns while the other thread waits
  EXPECT_EQ(bph_stream_wait(one, 0, nullptr), BP_TIMEOUT) << "and so does a poll";
  go_on.set_value();
  waiter.join();
  fake->hook = nullptr;
}

TEST_F(SharedStreamTest, WaitsOneAfterTheOtherUseOneEvent) {
  open();
  bph_stream* one = stream(BPH_STREAM_SHARED);
  bph_buffer* buffer = create(1024, one);
  fake->hold();
  use(buffer, one);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(bph_stream_wait(one, 1000, nullptr), BP_TIMEOUT);
  EXPECT_EQ(fake->calls("event_record"), 1u) << "else a loop of short waits puts ever more work behind itself";
  use(buffer, one);
  EXPECT_EQ(bph_stream_wait(one, 1000, nullptr), BP_TIMEOUT);
  EXPECT_EQ(fake->calls("event_record"), 2u);
  EXPECT_EQ(bph_stream_wait(one, BP_WAIT_FOREVER, nullptr), BP_OK);
  EXPECT_TRUE(require<Stream>(one, "test").idle());
}

TEST_F(SharedStreamTest, WaitsWorkWithoutAnEvent) {
  open();
  bph_stream* one = stream(BPH_STREAM_SHARED);
  bph_buffer* buffer = create(1024, one);
  fake->hold();
  use(buffer, one);
  fake->fail("event_create", BP_OUT_OF_MEMORY);
  EXPECT_EQ(bph_stream_wait(one, 3'000'000, nullptr), BP_TIMEOUT);
  fake->fail("event_record", BP_OUT_OF_MEMORY);
  std::thread device_side([&] { fake->release(); });
  EXPECT_EQ(bph_stream_wait(one, BP_WAIT_FOREVER, nullptr), BP_OK);
  device_side.join();
}

TEST_F(SharedStreamTest, AFailureReachesEveryWait) {
  open();
  bph_stream* one = stream(BPH_STREAM_SHARED);
  bph_buffer* buffer = create(1024, one);
  fake->hold();
  use(buffer, one);
  // Fails the stream during event_wait, while no thread holds the stream's lock.
  fake->hook = [&](const char* slot) {
    if (std::string(slot) == "event_wait") fake->break_stream(plugin_stream(one));
  };
  EXPECT_FAILS(bph_stream_wait(one, BP_WAIT_FOREVER, &error), BP_EXECUTION_FAILED,
               "stream_wait: the fake's stream was broken");
  EXPECT_FAILS(bph_copy(one, buffer, 0, buffer, 256, 256, 0, &error), BP_EXECUTION_FAILED, "broken");
  EXPECT_FAILS(bph_stream_wait(one, BP_WAIT_FOREVER, &error), BP_EXECUTION_FAILED, "broken");
}

// A host callback may need a lock, such as Python's global lock. Another thread may hold that lock
// while it waits for the stream's lock.
TEST_F(SharedStreamTest, LogLinesComeAfterTheTurn) {
  open();
  Log log;
  bph_stream* one = stream(BPH_STREAM_SHARED);
  bph_buffer* buffer = create(1024, one);
  log.on_line = [&] {
    // This call deadlocks if the logging thread holds the stream's lock.
    std::thread([&] { use(buffer, one); }).join();
    EXPECT_EQ(bph_stream_wait(one, BP_WAIT_FOREVER, nullptr), BP_OK);
  };
  bool told = false;
  fake->hook = [&](const char* slot) {
    if (std::string(slot) != "copy" || std::exchange(told, true)) return;
    log.write("first");
    log.write("second");
    EXPECT_TRUE(log.lines.empty()) << "in the turn";
  };
  use(buffer, one);
  EXPECT_THAT(log.lines, ::testing::ElementsAre("first", "second"));
  fake->hook = nullptr;
  bph_stream* ordinary = stream();
  fake->hook = [&](const char* slot) {
    if (std::string(slot) == "copy") log.write("third");
  };
  log.on_line = nullptr;
  use(buffer, ordinary);
  EXPECT_EQ(log.lines.back(), "third") << "at once where no turn is held";
  fake->hook = nullptr;
}

TEST_F(SharedStreamTest, ReleasesOfImportsComeAfterTheTurn) {
  open();
  bph_stream* one = stream(BPH_STREAM_SHARED);
  bph_stream* two = stream();
  bph_buffer* buffer = create(1024, one);
  struct Owner {
    bph_buffer* buffer;
    bph_stream* stream;
    int released = 0;
  } owner{buffer, one};
  alignas(64) char memory[1024];
  bph_import_desc desc = import_of(
      memory, sizeof(memory),
      [](void* context) {
        auto& self = *static_cast<Owner*>(context);
        // This call deadlocks if the releasing thread holds the stream's lock.
        std::thread([&] { use(self.buffer, self.stream); }).join();
        ++self.released;
      },
      &owner);
  desc.stream = two;
  bph_buffer* imported = nullptr;
  ASSERT_OK(bph_buffer_import(device, &desc, &imported, &error));
  fake->hold();
  use(imported, two);
  bph_buffer_release(imported);
  use(buffer, two);  // records the marker that the release requested
  fake->release();
  EXPECT_EQ(owner.released, 0);
  // This wait polls for releases while it holds the stream's lock.
  ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
  EXPECT_EQ(owner.released, 1);
  // Releases a buffer of an idle stream inside an enqueue callback.
  ASSERT_OK(bph_stream_wait(two, BP_WAIT_FOREVER, &error));
  ASSERT_OK(bph_buffer_import(device, &desc, &imported, &error));
  const auto releases = [](void* context, bp_device*, bp_stream*, bp_error*) -> bp_status {
    bph_buffer_release(*static_cast<bph_buffer**>(context));
    return BP_OK;
  };
  ASSERT_OK(bph_stream_enqueue(one, releases, &imported, &error));
  EXPECT_EQ(owner.released, 2);
}

struct EnqueueCall {
  std::function<bp_status(bp_device*, bp_stream*, bp_error*)> body;
  static bp_status run(void* context, bp_device* device, bp_stream* stream, bp_error* error) {
    return static_cast<EnqueueCall*>(context)->body(device, stream, error);
  }
};

class EnqueueTest : public SharedStreamTest, public ::testing::WithParamInterface<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Streams, EnqueueTest, ::testing::Values(0u, BPH_STREAM_SHARED, BPH_STREAM_EXTERNAL));

TEST_P(EnqueueTest, TheCallbackHasThePluginsStream) {
  open();
  bph_stream* one = stream(GetParam());
  bp_device* given = nullptr;
  EnqueueCall call;
  call.body = [&](bp_device* own_device, bp_stream* own, bp_error* error) {
    EXPECT_EQ(own, plugin_stream(one));
    EXPECT_EQ(error->struct_size, sizeof(bp_error));
    given = own_device;
    return BP_OK;
  };
  ASSERT_OK(bph_stream_enqueue(one, EnqueueCall::run, &call, &error));
  const void* table = nullptr;
  bp_device* own_device = nullptr;
  ASSERT_OK(bph_device_get_interface(device, BP_INTERFACE_IMPORT, 1, &table, &own_device, &error));
  EXPECT_EQ(given, own_device) << "without layers, as the plugin's interfaces take it";
  EXPECT_FAILS(bph_stream_enqueue(one, nullptr, nullptr, &error), BP_INVALID_ARGUMENT, "the callback is null");
  EXPECT_FAILS(bph_stream_enqueue(nullptr, EnqueueCall::run, &call, &error), BP_INVALID_ARGUMENT, "the stream is null");
}

TEST_P(EnqueueTest, IsCountedAsOneEnqueue) {
  open();
  bph_stream* one = stream(GetParam());
  bph_buffer* host = create(512, one, BP_MEMORY_HOST);
  const auto before = place(host);
  fake->hold();
  EnqueueCall call;
  call.body = [](bp_device*, bp_stream*, bp_error*) { return BP_OK; };
  ASSERT_OK(bph_stream_enqueue(one, EnqueueCall::run, &call, &error));
  bph_buffer_release(host);
  bph_buffer* other = create(512, one, BP_MEMORY_HOST);
  EXPECT_NE(place(other), before) << "the callback's work may use it";
  ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
  bph_buffer* again = create(512, one, BP_MEMORY_HOST);
  EXPECT_EQ(place(again), before);
}

// The work of the callback uses a buffer that is released before the callback returns.
TEST_P(EnqueueTest, WhatIsReleasedInsideIsStillUsed) {
  open();
  bph_stream* one = stream(GetParam());
  bph_buffer* warm = create(1024, one);
  ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
  fake->hold();
  EnqueueCall call;
  call.body = [&](bp_device*, bp_stream*, bp_error*) {
    bph_buffer_release(warm);
    return BP_OK;
  };
  ASSERT_OK(bph_stream_enqueue(one, EnqueueCall::run, &call, &error));
  EXPECT_EQ(trim(), 0u) << "the callback's work may use it";
  ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
  EXPECT_NE(trim(), 0u);
}

TEST_P(EnqueueTest, CallsOfTheSameStreamInsideAreRefused) {
  open();
  bph_stream* one = stream(GetParam());
  bph_stream* other = stream();
  bph_buffer* buffer = create(1024, one);
  bph_event* mark = event();
  char bytes[16] = {};
  EnqueueCall call;
  call.body = [&](bp_device*, bp_stream*, bp_error*) {
    const char* text = "inside an enqueue callback";
    EXPECT_FAILS(bph_copy(one, buffer, 0, buffer, 256, 256, 0, &error), BP_INVALID_ARGUMENT, text);
    EXPECT_FAILS(bph_copy_in(one, buffer, 0, bytes, 16, 0, &error), BP_INVALID_ARGUMENT, text);
    EXPECT_FAILS(bph_copy_out(one, bytes, buffer, 0, 16, 0, &error), BP_INVALID_ARGUMENT, text);
    EXPECT_FAILS(bph_copy_across(one, buffer, 0, other, buffer, 512, 16, 0, &error), BP_INVALID_ARGUMENT, text);
    EXPECT_FAILS(bph_event_record(mark, one, &error), BP_INVALID_ARGUMENT, text);
    EXPECT_FAILS(bph_stream_wait_event(one, mark, &error), BP_INVALID_ARGUMENT, text);
    EXPECT_FAILS(bph_stream_wait(one, 0, &error), BP_INVALID_ARGUMENT, text);
    EXPECT_FAILS(bph_stream_wait(one, BP_WAIT_FOREVER, &error), BP_INVALID_ARGUMENT, text);
    EXPECT_FAILS(bph_stream_enqueue(one, nothing, nullptr, &error), BP_INVALID_ARGUMENT, text);
    bph_call add = {};
    add.struct_size = sizeof(add);
    add.op = BP_OP_ADD;
    EXPECT_FAILS(bph_execute(one, &add, &error), BP_INVALID_ARGUMENT, text);
    use(buffer, other);  // another stream accepts work inside the callback
    bph_buffer_release(create(4096, one));
    return BP_OK;
  };
  ASSERT_OK(bph_stream_enqueue(one, EnqueueCall::run, &call, &error));
  use(buffer, one);  // the same stream accepts work after the callback
}

TEST_P(EnqueueTest, WhatItAnswersIsPassedOn) {
  open();
  bph_stream* one = stream(GetParam());
  bph_buffer* buffer = create(1024, one);
  EnqueueCall call;
  bp_status status = BP_UNSUPPORTED;
  call.body = [&](bp_device*, bp_stream*, bp_error* error) {
    std::strcpy(error->message, "no kernel");
    error->message_length = 9;
    error->vendor_code = 5;
    return status;
  };
  EXPECT_FAILS(bph_stream_enqueue(one, EnqueueCall::run, &call, &error), BP_UNSUPPORTED,
               "bph_stream_enqueue: the callback: no kernel");
  use(buffer, one);  // UNSUPPORTED from the callback does not fail the stream
  status = -12;
  EXPECT_FAILS(bph_stream_enqueue(one, EnqueueCall::run, &call, &error), BP_INTERNAL, "no kernel");
  use(buffer, one);
  status = BP_EXECUTION_FAILED;
  EXPECT_FAILS(bph_stream_enqueue(one, EnqueueCall::run, &call, &error), BP_EXECUTION_FAILED, "no kernel");
  EXPECT_FAILS(bph_copy(one, buffer, 0, buffer, 256, 256, 0, &error), BP_EXECUTION_FAILED, "no kernel");
  EXPECT_FAILS(bph_stream_enqueue(one, nothing, nullptr, &error), BP_EXECUTION_FAILED, "no kernel");
  EXPECT_FAILS(bph_stream_wait(one, BP_WAIT_FOREVER, &error), BP_EXECUTION_FAILED, "no kernel");
}

TEST_F(SharedStreamTest, AnExternalStreamIsIdleOnlyBehindAnEvent) {
  open();
  bph_stream* one = stream(BPH_STREAM_EXTERNAL);
  bph_buffer* host = create(512, one, BP_MEMORY_HOST);
  const auto first = place(host);
  ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
  // Core knows of no pending work on the stream, but other code may have enqueued work.
  bph_buffer_release(host);
  bph_buffer* other = create(512, one, BP_MEMORY_HOST);
  EXPECT_NE(place(other), first);
  bph_buffer* device_memory = create(512, one);
  fake->hold();
  // This call records a marker after all work that other code enqueued before the release.
  use(device_memory, one);
  bph_buffer* still = create(512, one, BP_MEMORY_HOST);
  EXPECT_NE(place(still), first);
  fake->release();
  trim();
  bph_buffer* again = create(512, one, BP_MEMORY_HOST);
  EXPECT_EQ(place(again), first);
  // The stream that owns device memory reuses the memory in stream order, even if the stream is
  // EXTERNAL.
  const auto own = place(device_memory);
  bph_buffer_release(device_memory);
  device_memory = create(512, one);
  EXPECT_EQ(place(device_memory), own);
}

TEST_F(SharedStreamTest, AMarkOfBeforeTheReleaseTellsNothingOfAnExternalStream) {
  open();
  bph_stream* one = stream(BPH_STREAM_EXTERNAL);
  bph_buffer* a = create(512, one, BP_MEMORY_HOST);
  bph_buffer* b = create(512, one, BP_MEMORY_HOST);
  bph_buffer* c = create(1024, one);
  const auto second = place(b);
  bph_buffer_release(a);
  use(c, one);            // records a marker for `a`
  bph_buffer_release(b);  // other code may have enqueued work on `b` after that marker
  trim();
  bph_buffer* x = create(512, one, BP_MEMORY_HOST);
  bph_buffer* y = create(512, one, BP_MEMORY_HOST);
  EXPECT_NE(place(x), second);
  EXPECT_NE(place(y), second);
  use(c, one);
  trim();
  bph_buffer* z = create(512, one, BP_MEMORY_HOST);
  EXPECT_EQ(place(z), second);
}

}  // namespace
}  // namespace backplane::core::test
