// SPDX-License-Identifier: Apache-2.0
// Tests streams: waits, failures, and release with pending work.
#include "streams/stream.hpp"

#include <atomic>
#include <thread>

#include "memory_fixture.hpp"

namespace backplane::core::test {
namespace {

class StreamTest : public MemoryTest {};

TEST_F(StreamTest, WaitPollsAndEnds) {
  open();
  bph_stream* one = stream();
  bph_buffer* buffer = create(1024, one);
  fake->hold();
  use(buffer, one);
  bp_error error = fresh_error();
  error.status = 42;
  EXPECT_EQ(bph_stream_wait(one, 0, &error), BP_TIMEOUT);
  EXPECT_EQ(error.status, 42) << "TIMEOUT leaves the record alone";
  EXPECT_EQ(bph_stream_wait(one, BP_WAIT_FOREVER, nullptr), BP_OK);
  EXPECT_TRUE(require<Stream>(one, "test").idle());
}

TEST_F(StreamTest, ReleaseWithPendingWorkLetsItRun) {
  open();
  bph_stream* one = stream();
  bph_buffer* from = create(4096, one);
  bph_buffer* to = create(4096, nullptr, BP_MEMORY_SHARED);
  void* address = nullptr;
  ASSERT_OK(bph_buffer_map(to, &address, &error));
  ASSERT_OK(bph_copy_in(one, from, 0, std::string(4096, 'x').data(), 4096, 0, &error));
  ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
  fake->hold();
  ASSERT_OK(bph_copy(one, to, 0, from, 0, 4096, 0, &error));
  bp_stream* inner = plugin_stream(one);
  bph_stream_release(one);
  bph_buffer_release(from);
  EXPECT_EQ(fake->streams(), 1u);
  EXPECT_TRUE(fake->pending(inner));
  fake->release();
  EXPECT_EQ(static_cast<char*>(address)[4095], 'x');
  trim();
  EXPECT_EQ(fake->streams(), 0u);
}

TEST_F(StreamTest, EndedStreamIsReapedByTheNextCreate) {
  open();
  bph_stream* one = stream();
  bph_buffer* buffer = create(1024, one);
  fake->hold();
  use(buffer, one);
  bph_buffer_release(buffer);
  bph_stream_release(one);
  fake->release();
  stream();
  EXPECT_EQ(fake->streams(), 1u);
}

TEST_F(StreamTest, CloseWaitsForEndingStreams) {
  open();
  bph_stream* one = stream();
  bph_buffer* buffer = create(1024, one);
  fake->hold();
  use(buffer, one);
  bph_buffer_release(buffer);
  bph_stream_release(one);
  bph_device_release(device);
  EXPECT_TRUE(fake->is_closed());
  EXPECT_EQ(fake->streams() + fake->buffers() + fake->events(), 0u);
}

TEST_F(StreamTest, StreamOutlivesItsDeviceHandle) {
  open();
  bph_stream* one = stream();
  bph_device_release(device);
  EXPECT_FALSE(fake->is_closed());
  EXPECT_EQ(bph_stream_wait(one, 0, nullptr), BP_OK);
  bph_stream_release(one);
  EXPECT_TRUE(fake->is_closed());
}

TEST_F(StreamTest, FailureIsStickyAndNamesTheCause) {
  open();
  bph_stream* one = stream();
  bph_buffer* buffer = create(1024, one);
  fake->hold();
  use(buffer, one);
  fake->break_stream(plugin_stream(one));
  EXPECT_FAILS(bph_stream_wait(one, 0, &error), BP_EXECUTION_FAILED,
               "fake:0: stream_wait: the fake's stream was broken");
  EXPECT_FAILS(bph_copy(one, buffer, 0, buffer, 256, 256, 0, &error), BP_EXECUTION_FAILED,
               "fake:0: copy: the fake's stream was broken");
  bph_stream* two = stream();
  ASSERT_OK(bph_stream_wait(two, 0, &error));
  bph_stream_release(one);
  EXPECT_EQ(fake->streams(), 1u);
}

TEST_F(StreamTest, AWaitForAnIdleStreamCallsNoPlugin) {
  for (const uint32_t flags : {0u, BPH_STREAM_SHARED}) {
    open();
    bph_stream* one = stream(flags);
    bph_buffer* buffer = create(1024, one);
    use(buffer, one);
    ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
    const uint64_t waits = fake->calls("stream_wait"), events = fake->calls("event_wait");
    ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
    ASSERT_OK(bph_stream_wait(one, 0, &error));
    EXPECT_EQ(fake->calls("stream_wait"), waits);
    EXPECT_EQ(fake->calls("event_wait"), events);
    fake->hold();
    use(buffer, one);
    EXPECT_EQ(bph_stream_wait(one, 0, nullptr), BP_TIMEOUT) << "the stream has work again";
    fake->release();
    ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
    EXPECT_GT(fake->calls("stream_wait"), waits);
  }
}

TEST_F(StreamTest, AWaitForAnExternalStreamCallsThePlugin) {
  for (const uint64_t capabilities : {uint64_t{0}, uint64_t{BP_CAP_SYNCHRONOUS}}) {
    FakeOptions options;
    options.capabilities = capabilities;
    open(options);
    bph_stream* one = stream(BPH_STREAM_EXTERNAL);
    ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
    const uint64_t waits = fake->calls("stream_wait");
    ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
    EXPECT_EQ(fake->calls("stream_wait"), waits + 1) << "other code may have enqueued work";
    fake->break_stream(plugin_stream(one));
    EXPECT_FAILS(bph_stream_wait(one, 0, &error), BP_EXECUTION_FAILED, "the fake's stream was broken");
  }
}

TEST_F(StreamTest, AWaitAfterACallbackThatReportsALossCallsThePlugin) {
  FakeOptions options;
  options.capabilities = BP_CAP_SYNCHRONOUS;
  open(options);
  bph_stream* one = stream();
  const auto callback = [](void*, bp_device*, bp_stream*, bp_error* why) {
    return report(why, BP_DEVICE_LOST, "the callback's device is lost");
  };
  EXPECT_FAILS(bph_stream_enqueue(one, callback, nullptr, &error), BP_DEVICE_LOST, "the callback's device is lost");
  const uint64_t waits = fake->calls("stream_wait");
  ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
  EXPECT_EQ(fake->calls("stream_wait"), waits + 1);
}

// After a failure no work is pending, but core must not treat the stream as idle: each wait must report
// the failure.
TEST_F(StreamTest, EachWaitForAFailedStreamFails) {
  for (const uint32_t flags : {0u, BPH_STREAM_SHARED}) {
    open();
    bph_stream* one = stream(flags);
    bph_buffer* buffer = create(1024, one);
    fake->hold();
    use(buffer, one);
    fake->break_stream(plugin_stream(one));
    for (int i = 0; i < 3; ++i)
      EXPECT_FAILS(bph_stream_wait(one, 0, &error), BP_EXECUTION_FAILED, "the fake's stream was broken");
    ASSERT_OK(bph_stream_revive(one, &error));
    for (int i = 0; i < 2; ++i) ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
  }
}

uint64_t revived(bph_device* device) {
  bph_stats stats = {};
  stats.struct_size = sizeof(stats);
  EXPECT_EQ(bph_device_stats(device, &stats, nullptr), BP_OK);
  return stats.streams_revived;
}

TEST_F(StreamTest, AFailedStreamIsRevived) {
  for (const uint32_t flags : {0u, BPH_STREAM_SHARED}) {
    open();
    bph_stream* one = stream(flags);
    bph_buffer* buffer = create(1024, one);
    bph_event* before = event();
    std::string text(1024, 'x');
    ASSERT_OK(bph_copy_in(one, buffer, 0, text.data(), 1024, 0, &error));
    ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
    fake->hold();
    use(buffer, one);
    ASSERT_OK(bph_event_record(before, one, &error));
    bp_stream* const broken = plugin_stream(one);
    fake->break_stream(broken);
    EXPECT_FAILS(bph_copy(one, buffer, 0, buffer, 256, 256, 0, &error), BP_EXECUTION_FAILED, "was broken");
    fake->fail("stream_create", BP_OUT_OF_MEMORY);
    EXPECT_FAILS(bph_stream_revive(one, &error), BP_OUT_OF_MEMORY, "stream_create");
    EXPECT_FAILS(bph_stream_wait(one, 0, &error), BP_EXECUTION_FAILED, "was broken");
    EXPECT_EQ(revived(device), 0u);
    ASSERT_OK(bph_stream_revive(one, &error));
    EXPECT_EQ(revived(device), 1u);
    EXPECT_EQ(fake->streams(), 1u);
    fake->release();
    EXPECT_FAILS(bph_event_wait(before, 0, &error), BP_EXECUTION_FAILED, "event_wait");
    ASSERT_OK(bph_event_record(before, one, &error));
    ASSERT_OK(bph_event_wait(before, BP_WAIT_FOREVER, &error));
    std::string got(1024, 0);
    ASSERT_OK(bph_copy_out(one, got.data(), buffer, 0, 1024, 0, &error));
    EXPECT_EQ(got, text) << "the failed stream's work was dropped before it wrote";
    // Memory of the stream is reused in the order of the new stream.
    fake->hold();
    const auto where = place(buffer);
    use(buffer, one);
    bph_buffer_release(buffer);
    EXPECT_EQ(place(create(1024, one)), where);
    ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
    ASSERT_OK(bph_stream_revive(one, &error));
    EXPECT_EQ(revived(device), 1u) << "a stream that has not failed is only waited for";
    close();
  }
}

TEST_F(StreamTest, AFailureOfACallbackIsRevived) {
  open();
  bph_stream* one = stream();
  const auto fails = [](void*, bp_device*, bp_stream*, bp_error*) -> bp_status { return BP_EXECUTION_FAILED; };
  EXPECT_FAILS(bph_stream_enqueue(one, fails, nullptr, &error), BP_EXECUTION_FAILED, "the callback");
  bph_buffer* buffer = create(1024, one);
  EXPECT_FAILS(bph_copy(one, buffer, 0, buffer, 256, 256, 0, &error), BP_EXECUTION_FAILED, "the callback");
  ASSERT_OK(bph_stream_revive(one, &error));
  use(buffer, one);
  ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
  struct Inside {
    bph_stream* stream;
    bp_status status = BP_OK;
  } inside{one};
  const auto revives = [](void* context, bp_device*, bp_stream*, bp_error*) -> bp_status {
    auto* own = static_cast<Inside*>(context);
    own->status = bph_stream_revive(own->stream, nullptr);
    return BP_OK;
  };
  ASSERT_OK(bph_stream_enqueue(one, revives, &inside, &error));
  EXPECT_EQ(inside.status, BP_INVALID_ARGUMENT);
  EXPECT_FAILS(bph_stream_revive(stream(BPH_STREAM_EXTERNAL), &error), BP_UNSUPPORTED, "EXTERNAL");
  EXPECT_FAILS(bph_stream_revive(nullptr, &error), BP_INVALID_ARGUMENT, "the stream is null");
}

TEST_F(StreamTest, ThreadsReviveASharedStreamOnce) {
  open();
  bph_stream* one = stream(BPH_STREAM_SHARED);
  bph_buffer* buffer = create(1024, one);
  fake->hold();
  use(buffer, one);
  fake->break_stream(plugin_stream(one));
  fake->release();
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      if (bph_stream_revive(one, nullptr) != BP_OK) ++failures;
      for (int i = 0; i < 50; ++i) {
        if (bph_copy(one, buffer, 0, buffer, 512, 256, 0, nullptr) != BP_OK) ++failures;
      }
      if (bph_stream_wait(one, BP_WAIT_FOREVER, nullptr) != BP_OK) ++failures;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(revived(device), 1u);
  EXPECT_EQ(fake->streams(), 1u);
}

TEST_F(StreamTest, FailedStreamWithUnknownWorkIsDestroyedAtOnce) {
  open();
  bph_stream* one = stream();
  bph_buffer* buffer = create(1024, one);
  fake->hold();
  use(buffer, one);
  fake->break_stream(plugin_stream(one));
  bph_stream_release(one);
  EXPECT_EQ(fake->streams(), 0u);
}

TEST_F(StreamTest, CreateFailuresAreReportedAndUndone) {
  open();
  fake->fail("stream_create", BP_OUT_OF_MEMORY);
  bph_stream* one = reinterpret_cast<bph_stream*>(1);
  EXPECT_FAILS(bph_stream_create(device, nullptr, &one, &error), BP_OUT_OF_MEMORY,
               "fake:0: stream_create: the test made stream_create fail");
  EXPECT_EQ(one, nullptr);
  fake->return_null("stream_create");
  EXPECT_FAILS(bph_stream_create(device, nullptr, &one, &error), BP_INTERNAL, "nonconforming");
  EXPECT_NE(stream(), nullptr);
  EXPECT_FAILS(bph_stream_create(device, nullptr, nullptr, &error), BP_INVALID_ARGUMENT, "out is null");
}

TEST_F(StreamTest, BadHandlesAreErrors) {
  open();
  bph_stream* one = stream();
  bph_stream_release(one);
  EXPECT_FAILS(bph_stream_wait(one, 0, &error), BP_INVALID_ARGUMENT, "is not a live stream");
  EXPECT_FAILS(bph_stream_wait(nullptr, 0, &error), BP_INVALID_ARGUMENT, "the stream is null");
  EXPECT_FAILS(bph_stream_wait(reinterpret_cast<bph_stream*>(device), 0, &error), BP_INVALID_ARGUMENT,
               "is not a live stream");
  bph_stream_release(one);
  bph_stream_release(nullptr);
}

TEST_F(StreamTest, WorkspaceGrowsIsReusedAndCounted) {
  open();
  bph_stream* one = stream();
  Stream& inner = require<Stream>(one, "test");
  const Span first = inner.workspace_of(1000);
  EXPECT_GE(first.bytes, 1000u);
  EXPECT_EQ(stats().workspace_bytes, first.bytes);
  EXPECT_EQ(inner.workspace_of(10).block, first.block);
  const Span second = inner.workspace_of(100000);
  EXPECT_GE(second.bytes, 100000u);
  EXPECT_EQ(stats().workspace_bytes, second.bytes);
  bph_stream_release(one);
  EXPECT_EQ(stats().workspace_bytes, 0u);
  EXPECT_EQ(stats().bytes_in_use, 0u);
}

TEST_F(StreamTest, WorkspaceGrowsByWhatIsLeft) {
  FakeOptions options;
  options.limit = 36u << 20;
  open(options);
  bph_stream* one = stream();
  Stream& inner = require<Stream>(one, "test");
  (void)inner.workspace_of(26u << 20);
  EXPECT_GE(inner.workspace_of(30u << 20).bytes, 30u << 20) << "half as much again does not fit";
  EXPECT_THROW(inner.workspace_of(50u << 20), Error);
  EXPECT_GE(inner.workspace_of(30u << 20).bytes, 30u << 20);
}

TEST_F(StreamTest, SynchronousDeviceIsAlwaysIdle) {
  FakeOptions options;
  options.capabilities = BP_CAP_SYNCHRONOUS;
  open(options);
  bph_stream* one = stream();
  bph_buffer* buffer = create(1024, one);
  use(buffer, one);
  EXPECT_TRUE(require<Stream>(one, "test").idle());
}

TEST_F(StreamTest, AFailedLaunchOfAGraphFailsASynchronousStream) {
  FakeOptions options;
  options.capabilities |= BP_CAP_SYNCHRONOUS;
  open(options);
  bph_stream* one = stream();
  bph_buffer* buffer = create(1024, one);
  Owned<bph_graph> graph;
  ASSERT_OK(bph_graph_begin(one, nullptr, &error));
  use(buffer, one);
  ASSERT_OK(bph_graph_end(one, graph.out(), nullptr, &error));
  fake->submit_part("copy");
  EXPECT_FAILS(bph_graph_launch(one, graph, nullptr, 0, &error), BP_EXECUTION_FAILED, "node 0");
  EXPECT_FAILS(bph_stream_wait(one, 0, &error), BP_EXECUTION_FAILED, "");
  ASSERT_OK(bph_stream_revive(one, &error));
  EXPECT_EQ(stats().streams_revived, 1u);
}

}  // namespace
}  // namespace backplane::core::test
