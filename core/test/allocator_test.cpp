// SPDX-License-Identifier: Apache-2.0
// Tests the caching allocator: reuse, trimming, and exhausted memory.
#include "memory/allocator.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <random>
#include <thread>

#include "memory/pool.hpp"
#include "memory/size_class.hpp"
#include "memory_fixture.hpp"

namespace backplane::core::test {
namespace {

class AllocatorTest : public MemoryTest {
 protected:
  static constexpr uint64_t kMib = 1u << 20;

  bph_buffer* aligned(uint64_t bytes, uint64_t alignment, bph_stream* on = nullptr) {
    bph_buffer_desc desc = desc_of(bytes, on);
    desc.alignment = alignment;
    return create(desc);
  }
  struct InUse {
    bph_stream* stream;
    bph_buffer* buffer;
  };
  // Opens a device with 8 MiB of memory. Returns a stream and a buffer of 6 MiB that the stream's
  // pending work uses.
  InUse most_in_use() {
    FakeOptions options;
    options.limit = 8 * kMib;
    open(options);
    bph_stream* one = stream();
    bph_buffer* a = create(6 * kMib, one);
    fake->hold();
    use(a, one);
    return {one, a};
  }
};

TEST(SizeClassTest, EveryClassHoldsWhatItSaysAtLittleWaste) {
  for (uint32_t i = 0; i < SizeClass::kCount; ++i) {
    const uint64_t size = SizeClass::size(i);
    ASSERT_EQ(SizeClass::holding(size), i);
    ASSERT_EQ(SizeClass::within(size), i);
    ASSERT_EQ(size % SizeClass::kQuantum, 0u);
    if (i == 0) continue;
    const uint64_t below = SizeClass::size(i - 1);
    ASSERT_LT(below, size);
    ASSERT_EQ(SizeClass::holding(below + 1), i);
    ASSERT_EQ(SizeClass::within(size - 1), i - 1);
    const uint64_t waste = size - (below + 1);
    if (below >= 1u << 20) {
      ASSERT_LE(waste * 16, size);
    } else if (below >= 4096) {
      ASSERT_LE(waste * 8, size);
    }
  }
  EXPECT_EQ(SizeClass::size(SizeClass::kCount - 1), SizeClass::kMaxBytes);
}

TEST_F(AllocatorTest, AStreamReusesItsOwnMemoryAtOnce) {
  open();
  bph_stream* one = stream();
  bph_buffer* a = create(1000, one);
  bph_buffer* b = create(1000, one);
  const auto a_place = place(a);
  const auto b_place = place(b);
  EXPECT_NE(a_place, b_place);
  fake->hold();
  use(a, one);
  bph_buffer_release(b);
  bph_buffer_release(a);
  const uint64_t calls = fake->calls("buffer_create");
  a = create(700, one);
  b = create(1024, one);
  EXPECT_EQ(place(a), a_place) << "the latest freed comes first: it is the likeliest to be in a cache";
  EXPECT_EQ(place(b), b_place);
  EXPECT_EQ(fake->calls("buffer_create"), calls);
}

TEST_F(AllocatorTest, AnotherStreamGetsOtherMemory) {
  open();
  bph_stream* one = stream();
  bph_stream* two = stream();
  bph_buffer* a = create(1000, one);
  const auto a_place = place(a);
  fake->hold();
  use(a, one);
  bph_buffer_release(a);
  bph_buffer* b = create(1000, two);
  EXPECT_NE(place(b), a_place);
}

TEST_F(AllocatorTest, RecordedStreamsMustPassFirst) {
  open();
  bph_stream* one = stream();
  bph_stream* two = stream();
  bph_buffer* a = create(1000, one);
  const auto a_place = place(a);
  ASSERT_OK(bph_buffer_record(a, two, &error));
  ASSERT_OK(bph_buffer_record(a, two, &error));
  ASSERT_OK(bph_buffer_record(a, one, &error));
  bph_buffer* other = create(1000, two);
  fake->hold();
  use(a, two);
  bph_buffer_release(a);
  bph_buffer* b = create(1000, one);
  EXPECT_NE(place(b), a_place);
  // The release of `a` requested a marker, an event that core records for itself, on stream `two`. The next call on
  // `two` records the marker, and work after the marker does not delay the reuse.
  const uint64_t marks = fake->calls("event_record");
  use(other, two);
  EXPECT_EQ(fake->calls("event_record"), marks + 1);
  use(other, two);
  EXPECT_EQ(fake->calls("event_record"), marks + 1) << "one mark is enough";
  bph_buffer* c = create(1000, one);
  EXPECT_NE(place(c), a_place);
  fake->run(plugin_stream(two));
  use(other, two);
  bph_buffer* d = create(1000, one);
  EXPECT_EQ(place(d), a_place);
}

TEST_F(AllocatorTest, MarksAreReusedAndBounded) {
  open();
  bph_stream* one = stream();
  bph_stream* two = stream();
  bph_buffer* other = create(1000, two);
  fake->hold();
  for (int i = 0; i < 100; ++i) {
    bph_buffer* a = create(1000, one);
    ASSERT_OK(bph_buffer_record(a, two, &error));
    use(a, two);
    bph_buffer_release(a);
    use(other, two);
    if (i % 10 == 9) fake->run(plugin_stream(two));
  }
  EXPECT_LE(fake->events(), 4u);
  EXPECT_LE(fake->bytes(), 2 * 2 * kMib);
}

TEST_F(AllocatorTest, MoreMarksThanThereMayBeCostNoCall) {
  open();
  bph_stream* one = stream();
  bph_stream* two = stream();
  bph_buffer* work = create(1024, two);
  fake->hold();
  for (int i = 0; i < 8; ++i) {
    bph_buffer* buffer = create(1024, one);
    ASSERT_OK(bph_buffer_record(buffer, two, &error));
    use(work, two);
    bph_buffer_release(buffer);  // requests a marker on stream `two`
  }
  use(work, two);
  const uint64_t polls = fake->calls("event_wait");
  for (int i = 0; i < 20; ++i) use(work, two);
  EXPECT_EQ(fake->calls("event_wait"), polls);
  fake->run(plugin_stream(two));
  trim();  // polls the markers, which makes room for another marker
  const uint64_t marks = fake->calls("event_record");
  use(work, two);
  EXPECT_EQ(fake->calls("event_record"), marks + 1);
}

TEST_F(AllocatorTest, AUserEventTellsTooThatAStreamPassed) {
  open();
  bph_stream* one = stream();
  bph_stream* two = stream();
  bph_buffer* a = create(1000, one);
  const auto a_place = place(a);
  bph_event* point = event();
  ASSERT_OK(bph_buffer_record(a, two, &error));
  fake->hold();
  use(a, two);
  bph_buffer_release(a);
  ASSERT_OK(bph_event_record(point, two, &error));
  ASSERT_OK(bph_event_wait(point, BP_WAIT_FOREVER, &error));
  a = create(1000, one);
  EXPECT_EQ(place(a), a_place);
}

TEST_F(AllocatorTest, MemoryOfNoStreamWaitsForAll) {
  open();
  bph_stream* one = stream();
  bph_stream* two = stream();
  bph_buffer* a = create(1000);
  const auto a_place = place(a);
  fake->hold();
  use(a, one);
  use(a, two);
  bph_buffer_release(a);
  const auto taken = [&] {
    bph_buffer* again = create(1000);
    const bool same = place(again) == a_place;
    bph_buffer_release(again);
    return same;
  };
  EXPECT_FALSE(taken());
  ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
  EXPECT_FALSE(taken());
  ASSERT_OK(bph_stream_wait(two, BP_WAIT_FOREVER, &error));
  bph_buffer* x = create(1000);
  bph_buffer* y = create(1000);
  EXPECT_TRUE(place(x) == a_place || place(y) == a_place);
}

TEST_F(AllocatorTest, MemoryThatTheHostWritesWaitsForItsOwnStream) {
  open();
  bph_stream* one = stream();
  bph_buffer* target = create(1000, one);
  for (const uint32_t kind : {BP_MEMORY_HOST, BP_MEMORY_SHARED}) {
    bph_buffer* a = create(1000, one, kind);
    const auto a_place = place(a);
    fake->hold();
    ASSERT_OK(bph_copy(one, target, 0, a, 0, 1000, 0, &error));
    bph_buffer_release(a);
    bph_buffer* b = create(1000, one, kind);
    EXPECT_NE(place(b), a_place) << "writing it now would change what the pending copy reads";
    ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
    bph_buffer* c = create(1000, one, kind);
    EXPECT_EQ(place(c), a_place);
  }
}

TEST_F(AllocatorTest, AnEndedStreamsMemoryServesOthers) {
  open();
  fake->limit = 60 * kMib;
  bph_stream* one = stream();
  bph_buffer* a = create(3 * kMib, one);
  bph_buffer* kept = create(100, one);
  const auto a_place = place(a);
  fake->hold();
  use(a, one);
  bph_buffer_release(a);
  bph_stream_release(one);
  bph_stream* two = stream();
  bph_buffer* b = create(3 * kMib, two);
  EXPECT_NE(place(b), a_place);
  fake->release();
  bph_buffer* c = create(16 * kMib, two);
  bph_buffer* d = create(15 * kMib, two);
  EXPECT_EQ(place(d).first, a_place.first) << "the whole segment moved over";
  bph_buffer* e = create(200, two);
  EXPECT_NE(place(e).first, place(kept).first);
  fake->limit = fake->bytes();
  std::vector<bph_buffer*> rest;
  while (rest.size() < 8 && (rest.empty() || place(rest.back()).first != place(kept).first)) {
    rest.push_back(create(900 * 1024, two));
  }
  EXPECT_EQ(place(rest.back()).first, place(kept).first)
      << "memory has run out: a part of a segment that another block is in";
  for (bph_buffer* each : rest) bph_buffer_release(each);
  for (bph_buffer* each : {b, c, d, e, kept}) bph_buffer_release(each);
  bph_stream_release(two);
  trim();
  EXPECT_EQ(fake->bytes(), 0u);
}

TEST_F(AllocatorTest, StatisticsAndPeaks) {
  open();
  bph_stream* one = stream();
  bph_buffer* a = create(512, one);
  bph_buffer* b = create(513, one);
  EXPECT_EQ(stats().bytes_in_use, 512u + 1024u);
  EXPECT_EQ(stats().bytes_reserved, 2 * kMib);
  EXPECT_EQ(stats().allocations, 2u);
  EXPECT_EQ(stats().allocations_cached, 1u) << "the second is cut from the first's segment";
  bph_buffer* c = create(8 * kMib, one);
  EXPECT_EQ(stats().bytes_in_use_peak, 8 * kMib + 1536);
  EXPECT_EQ(stats().bytes_reserved, 22 * kMib);
  for (bph_buffer* each : {a, b, c}) bph_buffer_release(each);
  EXPECT_EQ(stats().bytes_in_use, 0u);
  EXPECT_EQ(stats().bytes_in_use_peak, 8 * kMib + 1536);
  EXPECT_EQ(trim(), 22 * kMib);
  EXPECT_EQ(stats().bytes_reserved, 0u);
  EXPECT_EQ(stats().bytes_reserved_peak, 22 * kMib);
  EXPECT_EQ(stats().trims, 1u);
  EXPECT_EQ(fake->bytes(), 0u);
}

TEST_F(AllocatorTest, TrimLeavesWhatIsUsedOrPending) {
  open();
  bph_stream* one = stream();
  bph_buffer* a = create(12 * kMib, one);
  bph_buffer* b = create(14 * kMib, one);
  bph_buffer* c = create(16 * kMib, one);
  bph_buffer_release(c);
  fake->hold();
  use(a, one);
  bph_buffer_release(a);
  EXPECT_EQ(trim(), 16 * kMib) << "freed before the pending work";
  EXPECT_EQ(trim(), 0u);
  fake->run(plugin_stream(one));
  use(b, one);  // records the marker that the trim requested
  fake->run(plugin_stream(one));
  EXPECT_EQ(trim(), 12 * kMib);
}

TEST_F(AllocatorTest, AlignmentIsHonoured) {
  open();
  bph_stream* one = stream();
  std::vector<bph_buffer*> buffers;
  for (const uint64_t alignment : {1ull, 16ull, 256ull, 512ull, 4096ull, 65536ull, 1ull << 21}) {
    for (const uint64_t bytes : {uint64_t{1}, uint64_t{700}, uint64_t{5000}, 3 * kMib}) {
      for (bph_stream* on : {static_cast<bph_stream*>(nullptr), one}) {
        bph_buffer* buffer = aligned(bytes, alignment, on);
        bph_buffer_desc shared = desc_of(bytes, on, BP_MEMORY_SHARED);
        shared.alignment = alignment;
        bph_buffer* mapped = create(shared);
        void* address = nullptr;
        ASSERT_OK(bph_buffer_map(mapped, &address, &error));
        EXPECT_EQ(reinterpret_cast<uint64_t>(address) % alignment, 0u);
        EXPECT_EQ(info(buffer).plugin_offset % alignment, 0u);
        buffers.push_back(buffer);
        buffers.push_back(mapped);
      }
    }
  }
  for (bph_buffer* buffer : buffers) bph_buffer_release(buffer);
  bph_stream_release(one);
  trim();
  EXPECT_EQ(fake->bytes(), 0u);
}

TEST_F(AllocatorTest, OutOfMemorySaysTheNumbersAndRecovers) {
  FakeOptions options;
  options.limit = 8 * kMib;
  open(options);
  bph_stream* one = stream();
  bph_buffer* a = create(6 * kMib, one);
  bph_buffer_desc desc = desc_of(3 * kMib, one);
  bph_buffer* none = nullptr;
  EXPECT_FAILS(
      bph_buffer_create(device, &desc, &none, &error), BP_OUT_OF_MEMORY,
      "fake:0: DEVICE memory is exhausted: 3145728 bytes asked, 6291456 in use, 6291456 reserved, 2097152 of 8388608 "
      "free on the device");
  EXPECT_FAILS(bph_buffer_create(device, &desc, &none, &error), BP_OUT_OF_MEMORY, "(the fake's memory is full)");
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(stats().out_of_memory_retries, 2u);
  EXPECT_EQ(stats().bytes_in_use, 6 * kMib);
  bph_buffer_release(a);
  create(7 * kMib, one);
}

TEST_F(AllocatorTest, ExhaustionTakesIdleMemoryOfOtherStreams) {
  FakeOptions options;
  options.limit = 8 * kMib;
  open(options);
  bph_stream* one = stream();
  bph_stream* two = stream();
  bph_buffer_release(create(6 * kMib, one));
  create(6 * kMib, two);
  EXPECT_EQ(stats().out_of_memory_retries, 1u);
}

TEST_F(AllocatorTest, ExhaustionWaitsForTheCallersOwnWork) {
  const auto [one, a] = most_in_use();
  bph_buffer_release(a);
  create(7 * kMib, one);
  EXPECT_FALSE(fake->pending(plugin_stream(one)));
}

TEST_F(AllocatorTest, ExhaustionWaitsForEndingStreams) {
  const auto [one, a] = most_in_use();
  bph_buffer_release(a);
  bph_stream_release(one);
  create(7 * kMib);
}

TEST_F(AllocatorTest, ExhaustionOnAFailedStreamIsStillAboutMemory) {
  const auto [one, a] = most_in_use();
  fake->break_stream(plugin_stream(one));
  bph_buffer_desc desc = desc_of(7 * kMib, one);
  bph_buffer* made = nullptr;
  EXPECT_FAILS(bph_buffer_create(device, &desc, &made, &error), BP_OUT_OF_MEMORY, "is exhausted");
  EXPECT_EQ(bph_copy(one, a, 0, a, 256, 256, 0, nullptr), BP_EXECUTION_FAILED)
      << "told by the stream, and pending again";
  desc.flags = BPH_BUFFER_RAW;
  EXPECT_FAILS(bph_buffer_create(device, &desc, &made, &error), BP_OUT_OF_MEMORY, "is exhausted");
  bph_buffer_release(a);
  create(7 * kMib, one);
}

// While the first thread polls a released stream, another thread needs the stream's memory. The
// other thread must wait for the poll.
TEST_F(AllocatorTest, ExhaustionWaitsForWhatAnotherThreadLooksAt) {
  const auto [one, a] = most_in_use();
  bph_buffer_release(a);
  bph_stream_release(one);
  std::promise<bp_status> answered;
  std::future<bp_status> answer = answered.get_future();
  std::thread second;
  std::atomic<bool> begun{false};
  fake->hook = [&](const char* slot) {
    if (std::string_view(slot) != "stream_wait" || begun.exchange(true)) return;
    second = std::thread([&] {
      const bph_buffer_desc desc = desc_of(7 * kMib);
      Owned<bph_buffer> made;
      const bp_status status = bph_buffer_create(device, &desc, made.out(), nullptr);
      made.reset();
      answered.set_value(status);
    });
    // The second thread's bph_buffer_create must return only after this wait. If it did not wait
    // for the first thread's poll, it would return within 200 ms.
    (void)answer.wait_for(std::chrono::milliseconds(200));
  };
  trim();  // polls the released stream
  ASSERT_TRUE(second.joinable());
  second.join();
  EXPECT_EQ(answer.get(), BP_OK);
}

// One thread releases imported memory, and the release callback takes a lock of the framework.
// Another thread allocates while it holds that lock. If the allocation waited for the release, the
// test would hang until its timeout.
TEST_F(AllocatorTest, ExhaustionDoesNotWaitForARelease) {
  FakeOptions options;
  options.limit = 8 * kMib;
  open(options);
  bph_stream* one = stream();
  create(6 * kMib, one);
  struct Framework {
    std::recursive_mutex mutex;
    std::promise<void> entered;
    static void release(void* context) {
      auto& self = *static_cast<Framework*>(context);
      self.entered.set_value();
      const std::lock_guard lock(self.mutex);
    }
  } framework;
  alignas(256) static char memory[1024];
  bph_buffer* imported = nullptr;
  bph_import_desc import = import_of(memory, sizeof(memory), Framework::release, &framework);
  ASSERT_OK(bph_buffer_import(device, &import, &imported, &error));
  fake->hold();
  use(imported, one);
  bph_buffer_release(imported);
  std::thread other;
  {
    const std::lock_guard lock(framework.mutex);
    other = std::thread([&] { EXPECT_EQ(bph_stream_wait(one, BP_WAIT_FOREVER, nullptr), BP_OK); });
    framework.entered.get_future().wait();
    const bph_buffer_desc desc = desc_of(7 * kMib);
    bph_buffer* made = nullptr;
    EXPECT_FAILS(bph_buffer_create(device, &desc, &made, &error), BP_OUT_OF_MEMORY, "is exhausted");
  }
  other.join();
}

TEST_F(AllocatorTest, ExhaustionUsesWhatIsFreeInParts) {
  FakeOptions options;
  options.limit = 1 * kMib;  // less than the size of a segment
  open(options);
  bph_stream* one = stream();
  std::vector<bph_buffer*> buffers;
  for (int i = 0; i < 16; ++i) buffers.push_back(create(kMib / 16, one));
  EXPECT_EQ(fake->bytes(), kMib);
  for (bph_buffer* buffer : buffers) bph_buffer_release(buffer);
  create(kMib, one);
}

TEST_F(AllocatorTest, AHugeBlockMayTakeTheLargestBuffer) {
  FakeOptions options;
  options.max_buffer_bytes = 33 * kMib - 100;  // between two size classes
  options.limit = 40 * kMib;
  open(options);
  bph_stream* one = stream();
  for (int i = 0; i < 3; ++i) bph_buffer_release(create(33 * kMib - 100, one));
  bph_buffer_release(create(30 * kMib, one));
}

TEST_F(AllocatorTest, OtherPluginFailuresArePassedOn) {
  open();
  bph_buffer_desc desc = desc_of(1000);
  bph_buffer* none = nullptr;
  fake->fail("buffer_create", BP_DEVICE_LOST);
  EXPECT_FAILS(bph_buffer_create(device, &desc, &none, &error), BP_DEVICE_LOST,
               "fake:0: buffer_create: the test made buffer_create fail");
  fake->return_null("buffer_create");
  EXPECT_FAILS(bph_buffer_create(device, &desc, &none, &error), BP_INTERNAL, "nonconforming");
  desc.flags = BPH_BUFFER_RAW;
  fake->fail("buffer_create", BP_DEVICE_LOST);
  EXPECT_FAILS(bph_buffer_create(device, &desc, &none, &error), BP_DEVICE_LOST, "fake:0: buffer_create");
  fake->return_null("buffer_create");
  EXPECT_FAILS(bph_buffer_create(device, &desc, &none, &error), BP_INTERNAL, "nonconforming");
  EXPECT_EQ(stats().bytes_in_use + stats().bytes_reserved, 0u);
}

TEST_F(AllocatorTest, NoLockIsHeldAroundAPluginCall) {
  FakeOptions options;
  options.limit = 64 * kMib;
  open(options);
  // Core takes the allocator's lock for bph_device_stats, so this test hangs if core calls a slot
  // while it holds the lock.
  fake->hook = [&](const char*) {
    bph_stats now = {};
    now.struct_size = sizeof(now);
    ASSERT_EQ(bph_device_stats(device, &now, nullptr), BP_OK);
  };
  bph_stream* one = stream();
  bph_stream* two = stream();
  bph_buffer* a = create(30 * kMib, one);
  ASSERT_OK(bph_buffer_record(a, two, &error));
  fake->hold();
  use(a, two);
  bph_buffer_release(a);
  char memory[16];
  bph_buffer* imported = nullptr;
  const bph_import_desc import = import_of(memory, 16);
  ASSERT_OK(bph_buffer_import(device, &import, &imported, &error));
  bph_buffer_release(imported);
  bph_buffer_desc desc = desc_of(60 * kMib, one);
  bph_buffer* none = nullptr;
  EXPECT_EQ(bph_buffer_create(device, &desc, &none, nullptr), BP_OUT_OF_MEMORY);
  ASSERT_OK(bph_stream_wait(two, BP_WAIT_FOREVER, &error));
  bph_buffer_release(create(60 * kMib, one));
  bph_buffer* target = create(100, one);
  ASSERT_OK(bph_copy_in(one, target, 0, memory, 16, 0, &error));
  bph_buffer_release(target);
  for (bph_stream* each : {one, two}) bph_stream_release(each);
  trim();
}

// Makes random calls and compares the live buffers with a model: no two buffers share a byte, each
// buffer is aligned and large enough, and the counters agree. After all buffers are released, one
// trim frees all memory.
TEST_F(AllocatorTest, RandomCallsKeepTheInvariants) {
  open();
  std::mt19937 random(20);
  const auto below = [&](uint64_t most) { return std::uniform_int_distribution<uint64_t>(0, most - 1)(random); };
  struct Live {
    bph_buffer* buffer;
    bp_buffer* memory;
    uint64_t begin, end;
  };
  std::vector<Live> live;
  std::vector<bph_stream*> streams = {nullptr, stream(), stream()};
  uint64_t peak = 0;
  for (int round = 0; round < 6000; ++round) {
    if (live.size() < 60 && below(100) < 55) {
      const uint64_t bytes = 1 + below(uint64_t{1} << (6 + below(19)));
      const uint64_t alignment = below(8) == 0 ? uint64_t{1} << below(14) : 0;
      bph_buffer* buffer = aligned(bytes, alignment, streams[below(streams.size())]);
      const bph_buffer_info at = info(buffer);
      ASSERT_EQ(at.bytes, bytes);
      ASSERT_EQ(at.plugin_offset % std::max<uint64_t>(alignment, 256), 0u);
      for (const Live& other : live) {
        ASSERT_TRUE(other.memory != at.plugin_buffer || other.end <= at.plugin_offset ||
                    other.begin >= at.plugin_offset + bytes);
      }
      live.push_back({buffer, at.plugin_buffer, at.plugin_offset, at.plugin_offset + bytes});
    } else if (!live.empty()) {
      const size_t index = below(live.size());
      bph_buffer_release(live[index].buffer);
      live[index] = live.back();
      live.pop_back();
    }
    if (below(300) == 0) trim();
    if (below(100) == 0) {
      bph_stream*& any = streams[1 + below(2)];
      bph_stream_release(any);
      any = stream();
    }
    const bph_stats now = stats();
    uint64_t wanted = 0;
    for (const Live& each : live) wanted += each.end - each.begin;
    ASSERT_GE(now.bytes_in_use, wanted);
    ASSERT_GE(now.bytes_reserved, now.bytes_in_use);
    ASSERT_EQ(now.bytes_reserved, fake->bytes());
    peak = std::max(peak, now.bytes_in_use);
    ASSERT_EQ(now.bytes_in_use_peak, peak);
  }
  for (const Live& each : live) bph_buffer_release(each.buffer);
  EXPECT_EQ(stats().bytes_in_use, 0u);
  trim();
  EXPECT_EQ(fake->bytes(), 0u) << "all blocks merged to whole segments again";
}

TEST_F(AllocatorTest, ManyThreads) {
  FakeOptions options;
  options.limit = 64 * kMib;
  open(options);
  std::vector<std::thread> threads;
  std::atomic<uint64_t> made{0};
  bph_stream* common = stream();
  for (uint32_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      bph_stream* own = stream();
      std::vector<bph_buffer*> held;
      for (int round = 0; round < 600; ++round) {
        bph_buffer_desc desc = desc_of(512 + random() % (1u << (9 + random() % 12)), random() % 4 == 0 ? nullptr : own,
                                       static_cast<uint32_t>(random() % 3));
        bph_buffer* buffer = nullptr;
        if (bph_buffer_create(device, &desc, &buffer, nullptr) == BP_OK) {
          ++made;
          if (desc.kind != BP_MEMORY_HOST) {
            ASSERT_EQ(bph_copy(own, buffer, 0, buffer, 256, 256, 0, nullptr), BP_OK);
          }
          if (random() % 8 == 0) {
            ASSERT_EQ(bph_buffer_record(buffer, common, nullptr), BP_OK);
          }
          held.push_back(buffer);
        }
        while (held.size() > random() % 16) {
          bph_buffer_release(held.back());
          held.pop_back();
        }
        if (random() % 64 == 0) trim();
        if (random() % 32 == 0) {
          ASSERT_EQ(bph_stream_wait(own, BP_WAIT_FOREVER, nullptr), BP_OK);
        }
        if (random() % 64 == 0) {
          bph_stream_release(own);
          own = stream();
        }
        if (random() % 64 == 0) fake->hold();
        if (random() % 48 == 0) fake->release();
      }
      for (bph_buffer* buffer : held) bph_buffer_release(buffer);
      bph_stream_release(own);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(made, 2000u);
  fake->release();
  bph_stream_release(common);
  trim();
  EXPECT_EQ(stats().bytes_in_use, 0u);
  EXPECT_EQ(fake->bytes(), 0u);
}

TEST_F(AllocatorTest, UsesOfEndedStreamsDoNotAccumulate) {
  open();
  bph_buffer* lasting = create(1024);
  bph_buffer* own = create(1024, stream());
  for (int i = 0; i < 300; ++i) {
    const Owned<bph_stream> one(stream());
    for (bph_buffer* buffer : {lasting, own}) ASSERT_OK(bph_buffer_record(buffer, one, &error));
    ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
  }
  for (bph_buffer* buffer : {lasting, own}) {
    EXPECT_LT(static_cast<Block*>(find_handle<Buffer>(buffer))->uses.size(), 30u);
  }
}

}  // namespace
}  // namespace backplane::core::test
