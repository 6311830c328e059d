// SPDX-License-Identifier: Apache-2.0
// Tests streams and events of the kit's host device: order, waits, timeouts, failures and
// lifetimes.
#include <cfenv>

#include "driver.hpp"

namespace backplane::kit::test {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMs = 1'000'000;

TEST_F(KitTest, AStreamRunsInOrder) {
  bp_buffer *x = buffer(), *y = buffer();
  enqueue(a, BP_OP_FILL, nullptr, x, 2.5f);
  enqueue(a, BP_OP_FLOOR, x, y);
  enqueue(a, BP_OP_FILL, nullptr, x, 5);
  EXPECT_EQ(wait(a, 0), BP_TIMEOUT);
  gate_open = true;
  EXPECT_EQ(wait(a), BP_OK);
  EXPECT_EQ(map(y)[3], 2);
  EXPECT_EQ(map(x)[3], 5);
}

TEST_F(KitTest, AnEnqueueDoesNotWait) {
  bp_buffer* x = buffer();
  for (int i = 0; i < 5; ++i) enqueue(a, BP_OP_FLOOR, x, x);
  EXPECT_EQ(wait(a, 0), BP_TIMEOUT);
  gate_open = true;
  EXPECT_EQ(wait(a), BP_OK);
}

TEST_F(KitTest, MoreTasksThanTheRingHoldsAllRun) {
  bp_buffer *x = buffer(), *y = buffer();
  enqueue(a, BP_OP_FILL, nullptr, x, 1);
  enqueue(a, BP_OP_NEG, x, x);
  Op mul;
  ASSERT_EQ(prepare(BP_OP_MUL, mul), BP_OK);
  enqueue(a, BP_OP_FILL, nullptr, y, -1);
  for (uint64_t i = 0; i < 3 * HostStream::kRing + 1; ++i)
    ASSERT_EQ(execute(a, mul, {{x, 0, 0}, {y, 0, 0}}, {x, 0, 0}), BP_OK);
  EXPECT_EQ(wait(a), BP_OK);
  EXPECT_EQ(map(x)[0], 1);
}

TEST_F(KitTest, AStreamWaitsForAnEventOfAnother) {
  bp_buffer *x = buffer(), *y = buffer();
  bp_event* e = event();
  enqueue(a, BP_OP_FILL, nullptr, x, 3);
  enqueue(a, BP_OP_NEG, x, x);
  ASSERT_EQ(api->event_record(device, e, a, &error), BP_OK);
  ASSERT_EQ(api->stream_wait_event(device, b, e, &error), BP_OK);
  enqueue(b, BP_OP_COPY, x, y);
  EXPECT_EQ(wait(b), BP_OK);
  EXPECT_EQ(map(y)[0], -3);
}

TEST_F(KitTest, AnEventNeverRecordedHasPassed) {
  bp_event* e = event();
  EXPECT_EQ(wait(e, 0), BP_OK);
  EXPECT_EQ(api->stream_wait_event(device, a, e, &error), BP_OK);
  EXPECT_EQ(wait(a), BP_OK);
}

TEST_F(KitTest, AnEventMayBeDestroyedOnceWaitedOn) {
  bp_buffer *x = buffer(), *y = buffer();
  bp_event* e = nullptr;
  ASSERT_EQ(api->event_create(device, BP_EVENT_TIMING, &e, &error), BP_OK);
  enqueue(a, BP_OP_FILL, nullptr, x, 4);
  enqueue(a, BP_OP_NEG, x, x);
  ASSERT_EQ(api->event_record(device, e, a, &error), BP_OK);
  ASSERT_EQ(api->stream_wait_event(device, b, e, &error), BP_OK);
  api->event_destroy(device, e);
  enqueue(b, BP_OP_COPY, x, y);
  EXPECT_EQ(wait(b), BP_OK);
  EXPECT_EQ(map(y)[0], -4);
}

TEST_F(KitTest, ARecordOutlivesItsStream) {
  bp_event* e = event();
  const bp_stream_desc desc{sizeof(desc), 0};
  bp_stream* brief = nullptr;
  ASSERT_EQ(api->stream_create(device, &desc, &brief, &error), BP_OK);
  bp_buffer* x = buffer();
  enqueue(brief, BP_OP_NEG, x, x);
  ASSERT_EQ(api->event_record(device, e, brief, &error), BP_OK);
  api->stream_destroy(device, brief);
  EXPECT_EQ(wait(e, 0), BP_OK);
}

TEST_F(KitTest, AWaitKeepsToTheRecordThatItBeganWith) {
  bp_buffer* x = buffer();
  bp_event* e = event();
  enqueue(a, BP_OP_NEG, x, x);
  ASSERT_EQ(api->event_record(device, e, a, &error), BP_OK);
  bp_event* second = event();
  ASSERT_EQ(api->stream_wait_event(device, b, e, &error), BP_OK);
  enqueue(a, BP_OP_FLOOR, x, x);
  ASSERT_EQ(api->event_record(device, e, a, &error), BP_OK);
  ASSERT_EQ(api->event_record(device, second, b, &error), BP_OK);
  EXPECT_EQ(wait(second), BP_OK);     // `b` waited only for the point that the first event_record recorded
  EXPECT_EQ(wait(e, 0), BP_TIMEOUT);  // a wait that begins now waits for the second recorded point
  gate_open = true;
  EXPECT_EQ(wait(e), BP_OK);
}

TEST_F(KitTest, AnEventWaitLeavesTheStreamFree) {
  bp_buffer* x = buffer();
  bp_event* e = event();
  enqueue(a, BP_OP_NEG, x, x);
  ASSERT_EQ(api->event_record(device, e, a, &error), BP_OK);
  std::thread waiter([&] { EXPECT_EQ(api->event_wait(device, e, BP_WAIT_FOREVER, nullptr), BP_OK); });
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(enqueue(a, BP_OP_COPY, x, buffer(16)), BP_OK);
  waiter.join();
  EXPECT_EQ(wait(a), BP_OK);
}

TEST_F(KitTest, AWaitEndsAtItsTimeout) {
  bp_buffer* x = buffer();
  bp_event* e = event();
  enqueue(a, BP_OP_FLOOR, x, x);
  ASSERT_EQ(api->event_record(device, e, a, &error), BP_OK);
  const auto begin = Clock::now();
  EXPECT_EQ(wait(a, 5 * kMs), BP_TIMEOUT);
  EXPECT_EQ(wait(e, 5 * kMs), BP_TIMEOUT);
  EXPECT_GE(Clock::now() - begin, 10ms);
  gate_open = true;
  EXPECT_EQ(wait(a, UINT64_MAX - 1), BP_OK);
}

TEST_F(KitTest, TimedEventsMeasureTheStream) {
  bp_event *begin = event(BP_EVENT_TIMING), *end = event(BP_EVENT_TIMING), *plain = event();
  bp_buffer* x = buffer();
  int64_t ns = 0;
  EXPECT_EQ(api->event_elapsed(device, begin, end, &ns, &error), BP_INVALID_ARGUMENT);
  ASSERT_EQ(api->event_record(device, begin, a, &error), BP_OK);
  enqueue(a, BP_OP_FLOOR, x, x);
  enqueue(a, BP_OP_NEG, x, x);
  ASSERT_EQ(api->event_record(device, end, a, &error), BP_OK);
  EXPECT_EQ(api->event_elapsed(device, begin, end, &ns, &error), BP_NOT_READY);
  gate_open = true;
  ASSERT_EQ(wait(end), BP_OK);
  ASSERT_EQ(api->event_elapsed(device, begin, end, &ns, &error), BP_OK);
  EXPECT_GE(ns, 40 * static_cast<int64_t>(kMs));
  ASSERT_EQ(api->event_elapsed(device, end, begin, &ns, &error), BP_OK);
  EXPECT_LE(ns, -40 * static_cast<int64_t>(kMs));
  ASSERT_EQ(api->event_record(device, plain, a, &error), BP_OK);
  EXPECT_EQ(api->event_elapsed(device, begin, plain, &ns, &error), BP_INVALID_ARGUMENT);
}

TEST_F(KitTest, AFailureSticksToItsStreamWithItsCause) {
  bp_buffer *x = buffer(), *y = buffer();
  map(y)[0] = 9;
  bp_event *before = event(), *after = event(BP_EVENT_TIMING);
  ASSERT_EQ(api->event_record(device, before, a, &error), BP_OK);
  enqueue(a, BP_OP_FLOOR, x, x);
  enqueue(a, BP_OP_ABS, x, x);
  enqueue(a, BP_OP_FILL, nullptr, y, 1);
  ASSERT_EQ(api->event_record(device, after, a, &error), BP_OK);
  gate_open = true;
  EXPECT_EQ(wait(a), BP_EXECUTION_FAILED);
  EXPECT_THAT(error.message, HasSubstr("a planted failure"));
  EXPECT_EQ(error.op, uint32_t{BP_OP_ABS});
  EXPECT_EQ(error.status, BP_EXECUTION_FAILED);
  EXPECT_EQ(map(y)[0], 9) << "work after a failure must not run";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(enqueue(a, BP_OP_FILL, nullptr, y, 1), BP_EXECUTION_FAILED);
  EXPECT_EQ(api->copy(device, a, x, 0, y, 0, 4, &error), BP_EXECUTION_FAILED);
  EXPECT_EQ(api->copy(device, a, x, 0, y, 0, 0, &error), BP_EXECUTION_FAILED);
  EXPECT_EQ(api->stream_wait_event(device, a, before, &error), BP_EXECUTION_FAILED);
  EXPECT_EQ(wait(after), BP_EXECUTION_FAILED);
  EXPECT_EQ(wait(before), BP_OK);
  int64_t ns = 0;
  EXPECT_EQ(api->event_elapsed(device, after, after, &ns, &error), BP_EXECUTION_FAILED);
  EXPECT_EQ(enqueue(b, BP_OP_FILL, nullptr, y, 1), BP_OK);
  EXPECT_EQ(wait(b), BP_OK) << "other streams live on";
}

TEST_F(KitTest, AFailureReachesStreamsThatWaitOnLaterEvents) {
  bp_buffer *x = buffer(), *y = buffer();
  bp_event *before = event(), *after = event();
  ASSERT_EQ(api->event_record(device, before, a, &error), BP_OK);
  // FLOOR blocks until gate_open, so that ABS (which always fails) cannot fail before `after` is recorded.
  enqueue(a, BP_OP_FLOOR, x, x);
  enqueue(a, BP_OP_ABS, x, x);
  ASSERT_EQ(api->event_record(device, after, a, &error), BP_OK);
  gate_open = true;
  EXPECT_EQ(wait(a), BP_EXECUTION_FAILED);
  bp_stream* c = stream();
  ASSERT_EQ(api->stream_wait_event(device, b, before, &error), BP_OK);
  EXPECT_EQ(wait(b), BP_OK);
  ASSERT_EQ(api->stream_wait_event(device, c, after, &error), BP_OK);
  enqueue(c, BP_OP_FILL, nullptr, y, 1);
  EXPECT_EQ(wait(c), BP_EXECUTION_FAILED);
  EXPECT_THAT(error.message, HasSubstr("a planted failure"));
}

TEST_F(KitTest, ARecordThatFailsDoesNotChangeTheEvent) {
  bp_buffer *x = buffer(), *y = buffer();
  enqueue(a, BP_OP_ABS, x, x);
  ASSERT_EQ(wait(a), BP_EXECUTION_FAILED);
  for (const uint32_t flags : {0u, BP_EVENT_TIMING}) {
    gate_open = false;
    bp_stream *c = stream(), *d = stream();
    bp_event *recorded = event(flags), *fresh = event(flags);
    enqueue(c, BP_OP_FLOOR, y, y);
    ASSERT_EQ(api->event_record(device, recorded, c, &error), BP_OK);
    for (bp_event* each : {recorded, fresh}) {
      EXPECT_EQ(api->event_record(device, each, a, &error), BP_EXECUTION_FAILED);
      EXPECT_THAT(error.message, HasSubstr("a planted failure"));
      ASSERT_EQ(api->stream_wait_event(device, d, each, &error), BP_OK);
    }
    EXPECT_EQ(wait(recorded, 0), BP_TIMEOUT) << "the point of `c` is pending";
    EXPECT_EQ(wait(fresh, 0), BP_OK) << "still an event that was never recorded";
    EXPECT_EQ(wait(d, 0), BP_TIMEOUT);
    gate_open = true;
    EXPECT_EQ(wait(recorded), BP_OK);
    EXPECT_EQ(wait(d), BP_OK);
  }
}

TEST_F(KitTest, CopiesAreAsynchronousAndChecked) {
  bp_buffer *x = buffer(), *y = buffer(), *h = buffer(64, BP_MEMORY_HOST), *h2 = buffer(64, BP_MEMORY_HOST);
  const float in[4] = {1, 2, 3, 4};
  float out[4] = {};
  EXPECT_EQ(api->copy_in(device, a, x, 8, in, 16, &error), BP_OK);
  EXPECT_EQ(api->copy(device, a, h, 4, x, 8, 16, &error), BP_OK);
  EXPECT_EQ(api->copy(device, a, y, 0, h, 4, 16, &error), BP_OK);
  EXPECT_EQ(api->copy_out(device, a, out, y, 0, 16, &error), BP_OK);
  EXPECT_EQ(wait(a), BP_OK);
  EXPECT_EQ(out[3], 4);
  EXPECT_EQ(api->copy(device, a, x, 0, y, 64, 0, &error), BP_OK);
  EXPECT_EQ(api->copy(device, a, x, 60, y, 0, 8, &error), BP_INVALID_ARGUMENT);
  EXPECT_EQ(api->copy(device, a, x, 0, y, UINT64_MAX, 2, &error), BP_INVALID_ARGUMENT);
  EXPECT_EQ(api->copy(device, a, x, 0, x, 8, 16, &error), BP_INVALID_ARGUMENT) << "overlap";
  EXPECT_EQ(api->copy(device, a, h, 0, h2, 0, 4, &error), BP_INVALID_ARGUMENT) << "HOST to HOST";
}

TEST_F(KitTest, ASmallCopyOnAnIdleStreamCompletesDuringTheCall) {
  bp_buffer *x = buffer(HostQueue::kDirectCopy + 4), *y = buffer(HostQueue::kDirectCopy + 4);
  std::vector<float> in(HostQueue::kDirectCopy / 4, 1), out(in.size());
  ASSERT_EQ(api->copy_in(device, a, x, 0, in.data(), HostQueue::kDirectCopy, &error), BP_OK);
  in.assign(in.size(), 2);
  ASSERT_EQ(api->copy_out(device, a, out.data(), x, 0, HostQueue::kDirectCopy, &error), BP_OK);
  EXPECT_EQ(out.back(), 1);
  EXPECT_EQ(wait(a, 0), BP_OK);

  enqueue(a, BP_OP_FLOOR, x, y);  // waits for the gate
  ASSERT_EQ(api->copy_out(device, a, out.data(), y, 0, 4, &error), BP_OK);
  EXPECT_EQ(wait(a, 0), BP_TIMEOUT) << "a copy after pending work must wait for that work";
  gate_open = true;
  EXPECT_EQ(wait(a), BP_OK);
  EXPECT_EQ(out.front(), map(y)[0]);
}

TEST_F(KitTest, RoundingDoesNotDependOnWhoMadeTheStream) {
  std::fesetround(FE_UPWARD);
  bp_stream* s = stream();
  EXPECT_EQ(std::fegetround(), FE_UPWARD) << "a slot restores the state of the thread";
  std::fesetround(FE_TONEAREST);
  bp_buffer* x = buffer();
  const float third = 1.0f / 3;
  enqueue(s, BP_OP_FILL, nullptr, x, third);
  Op mul;
  ASSERT_EQ(prepare(BP_OP_MUL, mul), BP_OK);
  ASSERT_EQ(execute(s, mul, {{x, 0, 0}, {x, 0, 0}}, {x, 0, 0}), BP_OK);
  ASSERT_EQ(wait(s), BP_OK);
  EXPECT_EQ(map(x)[0], static_cast<float>(static_cast<double>(third) * third));
}

TEST_F(KitTest, OnePlanRunsOnEightStreamsAtOnce) {
  Op mul;
  ASSERT_EQ(prepare(BP_OP_MUL, mul), BP_OK);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    bp_stream* s = stream();
    bp_buffer *x = buffer(), *y = buffer();
    threads.emplace_back([=, this, &mul] {
      map(x)[0] = 1, map(y)[0] = static_cast<float>(t);
      bp_execution execution{};
      execution.struct_size = sizeof(execution);
      const bp_operand in[2] = {{x, 0, 0}, {y, 0, 0}}, out{x, 0, 0};
      execution.desc = &mul.desc, execution.inputs = in, execution.outputs = &out;
      for (int i = 0; i < 20; ++i) {
        map(x)[0] = 1;
        for (int k = 0; k < 3; ++k) EXPECT_EQ(api->plan_execute(device, s, mul.plan, &execution, nullptr), BP_OK);
        EXPECT_EQ(api->stream_wait(device, s, BP_WAIT_FOREVER, nullptr), BP_OK);
        EXPECT_EQ(map(x)[0], static_cast<float>(t * t * t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace backplane::kit::test
