// SPDX-License-Identifier: Apache-2.0
// Tests events: order between streams, host waits, timing, and the progress that a wait reveals.
#include "streams/event.hpp"

#include "memory_fixture.hpp"

namespace backplane::core::test {
namespace {

class EventTest : public MemoryTest {};

TEST_F(EventTest, NeverRecordedCountsAsPassed) {
  open();
  bph_event* point = event();
  EXPECT_EQ(bph_event_wait(point, 0, nullptr), BP_OK);
}

TEST_F(EventTest, OrdersStreams) {
  open();
  bph_stream* one = stream();
  bph_stream* two = stream();
  bph_buffer* a = create(1024, one);
  bph_buffer* shared = create(1024, nullptr, BP_MEMORY_SHARED);
  void* address = nullptr;
  ASSERT_OK(bph_buffer_map(shared, &address, &error));
  const std::string text(1024, 'q');
  ASSERT_OK(bph_copy_in(one, a, 0, text.data(), 512, 0, &error));
  fake->hold();
  ASSERT_OK(bph_copy(one, a, 512, a, 0, 512, 0, &error));
  bph_event* point = event();
  ASSERT_OK(bph_event_record(point, one, &error));
  ASSERT_OK(bph_stream_wait_event(two, point, &error));
  ASSERT_OK(bph_copy(two, shared, 0, a, 512, 512, 0, &error));
  bph_event_release(point);
  ASSERT_OK(bph_stream_wait(two, BP_WAIT_FOREVER, &error));
  EXPECT_EQ(static_cast<char*>(address)[511], 'q');
}

TEST_F(EventTest, WaitPollsThenPasses) {
  open();
  bph_stream* one = stream();
  bph_buffer* buffer = create(1024, one);
  bph_event* point = event();
  fake->hold();
  use(buffer, one);
  ASSERT_OK(bph_event_record(point, one, &error));
  bp_error error = fresh_error();
  error.status = 42;
  EXPECT_EQ(bph_event_wait(point, 0, &error), BP_TIMEOUT);
  EXPECT_EQ(error.status, 42);
  EXPECT_FALSE(require<Stream>(one, "test").idle());
  fake->run(plugin_stream(one));
  EXPECT_EQ(bph_event_wait(point, 0, nullptr), BP_OK);
  EXPECT_TRUE(require<Stream>(one, "test").idle()) << "the wait tells how far the stream has come";
}

TEST_F(EventTest, WaitTellsNothingBeyondTheRecord) {
  open();
  bph_stream* one = stream();
  bph_buffer* buffer = create(1024, one);
  bph_event* point = event();
  ASSERT_OK(bph_event_record(point, one, &error));
  fake->hold();
  use(buffer, one);
  EXPECT_EQ(bph_event_wait(point, 0, nullptr), BP_OK);
  EXPECT_FALSE(require<Stream>(one, "test").idle());
}

TEST_F(EventTest, WaitDuringARecordOnAnotherStreamCreditsNoStream) {
  open();
  bph_stream* one = stream();
  bph_stream* two = stream();
  bph_buffer* buffer = create(1024, one);
  bph_event* point = event();
  fake->hold();
  use(buffer, one);
  ASSERT_OK(bph_event_record(point, one, &error));
  // While the plugin waits for the event, the test records the event again on an idle stream, where
  // the event completes at once.
  bool recorded = false;
  fake->hook = [&](const char* slot) {
    if (recorded || std::string_view(slot) != "event_wait") return;
    recorded = true;
    ASSERT_OK(bph_event_record(point, two, &error));
    fake->run(plugin_stream(two));
  };
  EXPECT_EQ(bph_event_wait(point, 0, nullptr), BP_OK);
  fake->hook = nullptr;
  EXPECT_TRUE(recorded);
  EXPECT_FALSE(require<Stream>(one, "test").idle());
}

TEST_F(EventTest, Elapsed) {
  open();
  bph_stream* one = stream();
  bph_buffer* buffer = create(1024, one);
  bph_event* begin = event(BP_EVENT_TIMING);
  bph_event* end = event(BP_EVENT_TIMING);
  bph_event* plain = event();
  int64_t elapsed = -1;
  EXPECT_FAILS(bph_event_elapsed(begin, end, &elapsed, &error), BP_INVALID_ARGUMENT, "never recorded");
  EXPECT_EQ(elapsed, 0);
  EXPECT_FAILS(bph_event_elapsed(begin, plain, &elapsed, &error), BP_INVALID_ARGUMENT, "the end event has no timing");
  EXPECT_FAILS(bph_event_elapsed(plain, end, &elapsed, &error), BP_INVALID_ARGUMENT, "the begin event has no timing");
  ASSERT_OK(bph_event_record(begin, one, &error));
  fake->hold();
  use(buffer, one);
  ASSERT_OK(bph_event_record(end, one, &error));
  EXPECT_EQ(bph_event_elapsed(begin, end, &elapsed, nullptr), BP_NOT_READY);
  fake->release();
  ASSERT_OK(bph_event_elapsed(begin, end, &elapsed, &error));
  EXPECT_EQ(elapsed, 2);
  ASSERT_OK(bph_event_elapsed(end, begin, &elapsed, &error));
  EXPECT_EQ(elapsed, -2);
}

TEST_F(EventTest, FlagsAreChecked) {
  FakeOptions options;
  options.capabilities = 0;
  open(options);
  bph_event* made = nullptr;
  EXPECT_FAILS(bph_event_create(device, BP_EVENT_TIMING, &made, &error), BP_UNSUPPORTED, "fake:0 has no timing");
  EXPECT_FAILS(bph_event_create(device, 6, &made, &error), BP_UNSUPPORTED, "flags 0x6");
  EXPECT_EQ(made, nullptr);
}

TEST_F(EventTest, CreateFailuresAreReported) {
  open();
  bph_event* made = nullptr;
  fake->fail("event_create", BP_OUT_OF_MEMORY);
  EXPECT_FAILS(bph_event_create(device, 0, &made, &error), BP_OUT_OF_MEMORY, "fake:0: event_create");
  fake->return_null("event_create");
  EXPECT_FAILS(bph_event_create(device, 0, &made, &error), BP_INTERNAL, "nonconforming");
  EXPECT_EQ(made, nullptr);
}

TEST_F(EventTest, AFailedRecordLeavesTheEventUsable) {
  open();
  bph_stream* one = stream();
  bph_event* point = event();
  fake->fail("event_record", BP_OUT_OF_MEMORY);
  EXPECT_FAILS(bph_event_record(point, one, &error), BP_OUT_OF_MEMORY, "fake:0: event_record");
  ASSERT_OK(bph_event_record(point, one, &error));
  ASSERT_OK(bph_event_wait(point, BP_WAIT_FOREVER, &error));
}

TEST_F(EventTest, ObjectsOfAnotherDeviceAreErrors) {
  open();
  OpenDevice other;
  bph_stream* foreign = other.stream();
  bph_event* point = event();
  EXPECT_FAILS(bph_event_record(point, foreign, &error), BP_INVALID_ARGUMENT,
               "of fake:0, the stream of fake:0, opened another time");
  EXPECT_FAILS(bph_stream_wait_event(foreign, point, &error), BP_INVALID_ARGUMENT, "opened another time");
}

TEST_F(EventTest, BadHandlesAreErrors) {
  open();
  bph_event* point = event();
  bph_event_release(point);
  EXPECT_FAILS(bph_event_wait(point, 0, &error), BP_INVALID_ARGUMENT, "is not a live event");
  EXPECT_FAILS(bph_event_wait(nullptr, 0, &error), BP_INVALID_ARGUMENT, "the event is null");
  bph_event_release(point);
  bph_event_release(nullptr);
}

TEST_F(EventTest, AFailedRecordLeavesTheEventInItsGraph) {
  open();
  bph_stream* one = stream();
  bph_event* point = event();
  ASSERT_OK(bph_graph_begin(one, nullptr, &error));
  ASSERT_OK(bph_event_record(point, one, &error));
  Owned<bph_graph> graph;
  ASSERT_OK(bph_graph_end(one, graph.out(), nullptr, &error));
  fake->fail("event_record", BP_OUT_OF_MEMORY);
  EXPECT_FAILS(bph_event_record(point, one, &error), BP_OUT_OF_MEMORY, "event_record");
  EXPECT_FAILS(bph_event_wait(point, 0, &error), BP_INVALID_ARGUMENT, "recorded in a graph");
}

}  // namespace
}  // namespace backplane::core::test
