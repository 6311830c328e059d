// SPDX-License-Identifier: Apache-2.0
// Tests copies with flags, copies to and from HOST buffers of other devices, and copies between
// streams.
#include <algorithm>
#include <cstring>
#include <thread>

#include "memory_fixture.hpp"

namespace backplane::core::test {
namespace {

std::string pattern(size_t bytes) {
  std::string data(bytes, 0);
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<char>('a' + (i * 7 + i / 251) % 26);
  return data;
}

class CopiesTest : public MemoryTest {
 protected:
  FakeOptions slots() const {
    FakeOptions options;
    options.copy_in = options.copy_out = true;
    return options;
  }
  // Waits for all work that was enqueued on stream `on`, and returns the content of `buffer`.
  std::string read(bph_stream* on, bph_buffer* buffer, uint64_t bytes) {
    std::string got(bytes, 0);
    EXPECT_EQ(bph_copy_out(on, got.data(), buffer, 0, bytes, 0, nullptr), BP_OK);
    return got;
  }
};

TEST_F(CopiesTest, UnknownFlagsAreRefused) {
  open(slots());
  bph_stream* one = stream();
  bph_stream* two = stream();
  bph_buffer* buffer = create(1024, one);
  char data[16] = {};
  for (const uint32_t flags : {4u, BPH_COPY_ENQUEUE, UINT32_MAX}) {
    EXPECT_FAILS(bph_copy_in(one, buffer, 0, data, 16, flags, &error), BP_UNSUPPORTED, "it knows 0x1");
  }
  for (const uint32_t flags : {4u, BPH_COPY_SOURCE_FREE, UINT32_MAX}) {
    EXPECT_FAILS(bph_copy_out(one, data, buffer, 0, 16, flags, &error), BP_UNSUPPORTED, "it knows 0x2");
  }
  for (const uint32_t flags : {1u, 2u, 0x80000000u}) {
    EXPECT_FAILS(bph_copy(one, buffer, 0, buffer, 512, 16, flags, &error), BP_UNSUPPORTED, "it knows 0x0");
    EXPECT_FAILS(bph_copy_across(one, buffer, 0, two, buffer, 512, 16, flags, &error), BP_UNSUPPORTED, "it knows 0x0");
  }
  for (const char* slot : {"copy", "copy_in", "copy_out"}) EXPECT_EQ(fake->calls(slot), 0u);
}

// While work is pending, core stages the source and does not wait.
TEST_F(CopiesTest, AFreeSourceMayChangeAtOnce) {
  for (const uint32_t flags : {0u, BPH_STREAM_SHARED}) {
    open(slots());
    bph_stream* one = stream(flags);
    constexpr uint64_t bytes = 3u << 20;
    bph_buffer* buffer = create(bytes, one);
    const std::string sent = pattern(bytes);
    std::string source = sent;
    fake->hold();
    use(buffer, one);
    ASSERT_OK(bph_copy_in(one, buffer, 0, source.data(), bytes, BPH_COPY_SOURCE_FREE, &error));
    EXPECT_TRUE(fake->pending(plugin_stream(one))) << "it did not wait";
    std::fill(source.begin(), source.end(), '!');
    EXPECT_EQ(fake->calls("copy_in"), 0u);
    EXPECT_EQ(stats().host_staged_copies, 1u);
    EXPECT_EQ(stats().host_staged_bytes, bytes);
    EXPECT_EQ(read(one, buffer, bytes), sent);
    close();
  }
}

TEST_F(CopiesTest, AFreeSourceIsWaitedForWhereStagingSavesNothing) {
  for (const bool idle : {false, true}) {
    for (const uint32_t flags : {0u, BPH_STREAM_SHARED}) {
      FakeOptions options = slots();
      if (!idle) options.kinds = 1;  // without HOST memory, core cannot stage the copy
      open(options);
      bph_stream* one = stream(flags);
      bph_buffer* buffer = create(1024, one);
      const std::string sent = pattern(1024);
      std::string source = sent;
      fake->hold();
      if (!idle) use(buffer, one);
      ASSERT_OK(bph_copy_in(one, buffer, 0, source.data(), 1024, BPH_COPY_SOURCE_FREE, &error));
      std::fill(source.begin(), source.end(), '!');
      EXPECT_EQ(fake->calls("copy_in"), 1u);
      EXPECT_EQ(stats().host_staged_copies, 0u);
      EXPECT_EQ(read(one, buffer, 1024), sent);
      close();
    }
  }
}

// A copy of more than two chunks is not staged. Core uses the plugin's slot and waits.
TEST_F(CopiesTest, AFreeSourceOfManyBytesIsWaitedFor) {
  open(slots());
  bph_stream* one = stream();
  constexpr uint64_t bytes = (4u << 20) + 1;
  bph_buffer* buffer = create(bytes, one);
  const std::string sent = pattern(bytes);
  std::string source = sent;
  fake->hold();
  use(buffer, one);
  ASSERT_OK(bph_copy_in(one, buffer, 0, source.data(), bytes, BPH_COPY_SOURCE_FREE, &error));
  std::fill(source.begin(), source.end(), '!');
  EXPECT_EQ(fake->calls("copy_in"), 1u);
  EXPECT_EQ(read(one, buffer, bytes), sent);
  // A submitted part of the copy may read the source until the stream's work has completed, so the
  // call waits for the stream.
  fake->submit_part("copy_in");
  EXPECT_FAILS(bph_copy_in(one, buffer, 0, source.data(), bytes, BPH_COPY_SOURCE_FREE, &error), BP_EXECUTION_FAILED,
               "broken");
  EXPECT_FALSE(fake->pending(plugin_stream(one)));
}

TEST_F(CopiesTest, AnEnqueuedCopyOutDoesNotWait) {
  for (const uint32_t flags : {0u, BPH_STREAM_SHARED}) {
    open(slots());
    bph_stream* one = stream(flags);
    bph_buffer* buffer = create(1024, one);
    const std::string sent = pattern(1024);
    ASSERT_OK(bph_copy_in(one, buffer, 0, sent.data(), 1024, BPH_COPY_SOURCE_FREE, &error));
    fake->hold();
    std::string got(1024, 0);
    ASSERT_OK(bph_copy_out(one, got.data(), buffer, 0, 1024, BPH_COPY_ENQUEUE, &error));
    EXPECT_EQ(got[0], 0) << "it did not wait";
    ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
    EXPECT_EQ(got, sent);
    close();
  }
}

TEST_F(CopiesTest, AStagedCopyOutWaitsAllTheSame) {
  for (const uint32_t flags : {0u, BPH_STREAM_SHARED}) {
    open();
    bph_stream* one = stream(flags);
    constexpr uint64_t bytes = 5u << 20;
    bph_buffer* buffer = create(bytes, one);
    const std::string sent = pattern(bytes);
    ASSERT_OK(bph_copy_in(one, buffer, 0, sent.data(), bytes, 0, &error));
    fake->hold();
    std::string got(bytes, 0);
    ASSERT_OK(bph_copy_out(one, got.data(), buffer, 0, bytes, BPH_COPY_ENQUEUE, &error));
    EXPECT_EQ(got, sent);
    EXPECT_EQ(stats().host_staged_copies, 2u);
    EXPECT_EQ(fake->calls("copy"), flags == 0 ? 6u : 2u) << "a SHARED stream stages the whole at once";
    close();
  }
}

// If there is no memory for the whole copy, core stages the copy in chunks, as on a stream without
// BPH_STREAM_SHARED.
TEST_F(CopiesTest, ASharedStreamStagesInChunksWhereMemoryIsShort) {
  FakeOptions options;
  options.max_buffer_bytes = 20u << 20;
  open(options);
  bph_stream* one = stream(BPH_STREAM_SHARED);
  constexpr uint64_t bytes = 9u << 20;
  bph_buffer* buffer = create(bytes, one);
  const std::string sent = pattern(bytes);
  ASSERT_OK(bph_copy_in(one, buffer, 0, sent.data(), bytes, 0, &error));
  trim();
  fake->limit = fake->bytes() + (5u << 20);
  fake->hold();
  EXPECT_EQ(read(one, buffer, bytes), sent);
  std::string other(sent.rbegin(), sent.rend());
  ASSERT_OK(bph_copy_in(one, buffer, 0, other.data(), bytes, 0, &error));
  EXPECT_EQ(read(one, buffer, bytes), other);
}

// ---- Two devices --------------------------------------------------------------------------------

class TwoDevicesTest : public CopiesTest {
 protected:
  void open_both(const FakeOptions& here_options, const FakeOptions& far_options) {
    open(here_options);
    far.emplace(far_options);
  }
  // Pending work on streams of the device `opened` can keep buffers of the device `far` alive, so
  // the objects of `opened` are released first.
  void close_both() {
    if (far) opened->release_objects();
    far.reset();
    close();
  }
  void TearDown() override { close_both(); }
  bph_buffer* create_far(uint64_t bytes, uint32_t kind, bph_stream* on = nullptr) {
    return far->create(bytes, on, kind);
  }
  static char* mapped(bph_buffer* buffer) {
    void* address = nullptr;
    EXPECT_EQ(bph_buffer_map(buffer, &address, nullptr), BP_OK);
    return static_cast<char*>(address);
  }
  std::optional<OpenDevice> far;
};

// The three paths of a copy from or to a HOST buffer of another device.
struct Route {
  const char* name;
  bool import, slots;
  uint64_t imports, slot_calls, staged;
};
class ForeignHostTest : public TwoDevicesTest, public ::testing::WithParamInterface<std::tuple<Route, uint32_t>> {};
INSTANTIATE_TEST_SUITE_P(Ways, ForeignHostTest,
                         ::testing::Combine(::testing::Values(Route{"import", true, true, 1, 0, 0},
                                                              Route{"slot", false, true, 0, 1, 0},
                                                              Route{"staging", false, false, 0, 0, 1}),
                                            ::testing::Values(0u, BPH_STREAM_SHARED)),
                         [](const auto& each) {
                           return std::string(std::get<0>(each.param).name) +
                                  (std::get<1>(each.param) != 0 ? "_shared" : "");
                         });

TEST_P(ForeignHostTest, IsAnEndOfACopy) {
  const auto [route, flags] = GetParam();
  FakeOptions options;
  options.import = route.import;
  options.copy_in = options.copy_out = route.slots;
  open_both(options, {});
  bph_stream* one = stream(flags);
  bph_buffer* own = create(4096, one);
  bph_buffer* host = create_far(4096, BP_MEMORY_HOST);
  const std::string sent = pattern(2000);
  std::memcpy(mapped(host) + 100, sent.data(), sent.size());
  fake->hold();
  ASSERT_OK(bph_copy(one, own, 7, host, 100, 2000, 0, &error));
  EXPECT_EQ(fake->calls("import_memory"), route.imports);
  EXPECT_EQ(fake->calls("copy_in"), route.slot_calls);
  EXPECT_EQ(stats().host_staged_copies, route.staged);
  // Both copies run in stream order, so the second reads the bytes that the first wrote.
  ASSERT_OK(bph_copy(one, host, 2096, own, 7, 2000, 0, &error));
  ASSERT_OK(bph_copy(one, own, 2007, host, 2096, 2000, 0, &error));
  ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
  EXPECT_EQ(std::string(mapped(host) + 2096, 2000), sent);
  EXPECT_EQ(read(one, own, 4007).substr(2007), sent);
  EXPECT_EQ(fake->calls("import_memory"), 3 * route.imports);
}

TEST_P(ForeignHostTest, LivesUntilTheStreamHasPassed) {
  const auto [route, flags] = GetParam();
  if (route.staged != 0) return;  // on this path the call waits for its copy, so no work is pending
  FakeOptions options;
  options.import = route.import;
  options.copy_in = options.copy_out = route.slots;
  open_both(options, {});
  bph_stream* one = stream(flags);
  bph_buffer* own = create(4096, one);
  bph_stream* on_far = far->stream();
  bph_buffer* host = create_far(512, BP_MEMORY_HOST, on_far);
  const auto before = place(host);
  fake->hold();
  ASSERT_OK(bph_copy(one, own, 0, host, 0, 512, 0, &error));
  bph_buffer_release(host);
  bph_buffer* next = create_far(512, BP_MEMORY_HOST, on_far);
  EXPECT_NE(place(next), before) << "a stream of another device reads it";
  ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
  ASSERT_EQ(bph_device_trim(far->device, 0, nullptr, nullptr), BP_OK);
  bph_buffer* again = create_far(512, BP_MEMORY_HOST, on_far);
  EXPECT_EQ(place(again), before);
}

TEST_F(TwoDevicesTest, AnImportThatFailsIsReplaced) {
  FakeOptions options = slots();
  open_both(options, {});
  bph_stream* one = stream();
  bph_buffer* own = create(512, one);
  bph_buffer* host = create_far(512, BP_MEMORY_HOST);
  for (const bp_status status : {BP_UNSUPPORTED, BP_OUT_OF_MEMORY}) {
    fake->fail("import_memory", status);
    ASSERT_OK(bph_copy(one, own, 0, host, 0, 512, 0, &error));
  }
  EXPECT_EQ(fake->calls("copy_in"), 2u);
  fake->fail("import_memory", BP_DEVICE_LOST);
  EXPECT_FAILS(bph_copy(one, own, 0, host, 0, 512, 0, &error), BP_DEVICE_LOST, "import_memory");
  fake->fail("copy", BP_OUT_OF_MEMORY);
  EXPECT_FAILS(bph_copy(one, own, 0, host, 0, 512, 0, &error), BP_OUT_OF_MEMORY, "copy");
}

TEST_F(TwoDevicesTest, OtherForeignBuffersAreErrors) {
  open_both({}, {});
  bph_stream* one = stream();
  bph_buffer* own = create(512, one);
  bph_buffer* own_host = create(512, one, BP_MEMORY_HOST);
  bph_buffer* host = create_far(512, BP_MEMORY_HOST);
  for (const uint32_t kind : {BP_MEMORY_DEVICE, BP_MEMORY_SHARED}) {
    bph_buffer* foreign = create_far(512, kind);
    EXPECT_FAILS(bph_copy(one, own, 0, foreign, 0, 16, 0, &error), BP_INVALID_ARGUMENT, "not HOST memory");
    EXPECT_FAILS(bph_copy(one, foreign, 0, own, 0, 16, 0, &error), BP_INVALID_ARGUMENT, "not HOST memory");
    EXPECT_FAILS(bph_copy(one, foreign, 0, host, 0, 16, 0, &error), BP_INVALID_ARGUMENT, "bph_copy");
  }
  EXPECT_FAILS(bph_copy(one, own_host, 0, host, 0, 16, 0, &error), BP_INVALID_ARGUMENT, "both buffers are HOST");
  EXPECT_FAILS(bph_copy(one, host, 0, own_host, 0, 16, 0, &error), BP_INVALID_ARGUMENT, "both buffers are HOST");
  EXPECT_FAILS(bph_copy(one, own, 0, host, 500, 13, 0, &error), BP_INVALID_ARGUMENT, "do not fit src");
  EXPECT_FAILS(bph_copy(one, host, UINT64_MAX, own, 0, 2, 0, &error), BP_INVALID_ARGUMENT, "do not fit dst");
  ASSERT_OK(bph_copy(one, own, 512, host, 512, 0, 0, &error));
  // Imports the memory of `host` a second time.
  bph_buffer* twin = opened->import(import_of(mapped(host), 512));
  EXPECT_FAILS(bph_copy(one, twin, 10, host, 0, 20, 0, &error), BP_INVALID_ARGUMENT, "overlap");
  ASSERT_OK(bph_copy(one, twin, 256, host, 0, 256, 0, &error));
  EXPECT_EQ(fake->calls("copy"), 1u);
}

TEST_F(TwoDevicesTest, ACloseFreesMemoryThatAnotherDeviceUsed) {
  FakeOptions options;
  options.copy_in = true;
  for (const uint64_t bytes : {uint64_t{512}, uint64_t{64} << 20}) {  // from a pool, and with a buffer of its own
    open_both(options, {});
    bph_stream* one = stream();
    bph_buffer* own = create(bytes, one);
    bph_buffer* host = create_far(bytes, BP_MEMORY_HOST);
    fake->hold();
    ASSERT_OK(bph_copy(one, own, 0, host, 0, bytes, 0, &error));
    bph_buffer_release(host);
    fake->release();
    far.reset();  // expects that no buffer is left; nobody has waited for `one`
    close_both();
  }
}

TEST_F(TwoDevicesTest, AcrossGoesThroughHostMemory) {
  for (const bool slots_here : {false, true}) {
    for (const bool slots_there : {false, true}) {
      for (const uint32_t flags : {0u, BPH_STREAM_SHARED}) {
        FakeOptions here, there;
        here.copy_in = here.copy_out = slots_here;
        there.copy_in = there.copy_out = slots_there;
        if (slots_here) here.kinds = 1;
        if (slots_there) there.kinds = 1;
        open_both(here, there);
        bph_stream* to = stream(flags);
        bph_stream* from = far->stream(flags);
        for (const uint64_t bytes : {uint64_t{1}, uint64_t{1000}, uint64_t{7} << 20}) {
          bph_buffer* target = create(bytes + 9, to);
          bph_buffer* source = create_far(bytes + 9, BP_MEMORY_DEVICE, from);
          const std::string sent = pattern(bytes);
          ASSERT_OK(bph_copy_in(from, source, 9, sent.data(), bytes, BPH_COPY_SOURCE_FREE, &error));
          fake->hold();
          far->fake.hold();
          ASSERT_OK(bph_copy_across(to, target, 4, from, source, 9, bytes, 0, &error));
          // Later work on the source's stream must not change the copied bytes.
          std::string other(bytes, '!');
          ASSERT_OK(bph_copy_in(from, source, 9, other.data(), bytes, BPH_COPY_SOURCE_FREE, &error));
          ASSERT_OK(bph_stream_wait(from, BP_WAIT_FOREVER, &error));
          EXPECT_EQ(read(to, target, bytes + 4).substr(4), sent);
          fake->release();
          far->fake.release();
        }
        EXPECT_GE(stats().host_staged_copies, 3u);
        close_both();
      }
    }
  }
}

TEST_F(TwoDevicesTest, AcrossWithHostEndsKeepsTheOrderOfBothStreams) {
  open_both({}, {});
  bph_stream* here = stream();
  bph_stream* there = far->stream();
  bph_buffer* own = create(512, here);
  bph_buffer* own_host = create(512, here, BP_MEMORY_HOST);
  bph_buffer* far_memory = create_far(512, BP_MEMORY_DEVICE, there);
  bph_buffer* far_host = create_far(512, BP_MEMORY_HOST, there);
  const std::string sent = pattern(512);
  ASSERT_OK(bph_copy_in(there, far_memory, 0, sent.data(), 512, 0, &error));
  fake->hold();
  far->fake.hold();
  // Pending work writes far_host. Then far_host is copied, and the host overwrites far_host.
  ASSERT_OK(bph_copy(there, far_host, 0, far_memory, 0, 512, 0, &error));
  ASSERT_OK(bph_copy_across(here, own, 0, there, far_host, 0, 512, 0, &error));
  std::memset(mapped(far_host), '!', 512);
  EXPECT_EQ(read(here, own, 512), sent);
  ASSERT_OK(bph_copy_across(here, own_host, 0, there, far_memory, 0, 512, 0, &error));
  ASSERT_OK(bph_stream_wait(here, BP_WAIT_FOREVER, &error));
  EXPECT_EQ(std::string(mapped(own_host), 512), sent);
  EXPECT_FAILS(bph_copy_across(here, own_host, 0, there, far_host, 0, 16, 0, &error), BP_INVALID_ARGUMENT,
               "both buffers are HOST");
}

TEST_F(TwoDevicesTest, AcrossChecksItsArguments) {
  open_both({}, {});
  bph_stream* here = stream();
  bph_stream* there = far->stream();
  bph_buffer* own = create(512, here);
  bph_buffer* foreign = create_far(512, BP_MEMORY_DEVICE, there);
  EXPECT_FAILS(bph_copy_across(here, own, 0, here, own, 256, 16, 0, &error), BP_INVALID_ARGUMENT,
               "both streams are one");
  EXPECT_FAILS(bph_copy_across(here, foreign, 0, there, own, 0, 16, 0, &error), BP_INVALID_ARGUMENT, "dst is of");
  EXPECT_FAILS(bph_copy_across(here, own, 0, there, own, 0, 16, 0, &error), BP_INVALID_ARGUMENT, "src is of");
  EXPECT_FAILS(bph_copy_across(here, own, 0, there, foreign, 500, 16, 0, &error), BP_INVALID_ARGUMENT,
               "do not fit src");
  EXPECT_FAILS(bph_copy_across(here, own, 513, there, foreign, 0, 0, 0, &error), BP_INVALID_ARGUMENT, "do not fit dst");
  EXPECT_FAILS(bph_copy_across(here, own, 0, nullptr, foreign, 0, 16, 0, &error), BP_INVALID_ARGUMENT,
               "the stream is null");
  ASSERT_OK(bph_copy_across(here, own, 512, there, foreign, 512, 0, 0, &error));
}

TEST_F(CopiesTest, AcrossOnOneDeviceIsOrderedByEvents) {
  for (const uint32_t flags : {0u, BPH_STREAM_SHARED}) {
    open();
    bph_stream* to = stream(flags);
    bph_stream* from = stream(flags);
    bph_buffer* source = create(1024, from);
    bph_buffer* target = create(1024, to);
    const std::string sent = pattern(512), other(512, '!');
    ASSERT_OK(bph_copy_in(from, source, 512, sent.data(), 512, 0, &error));
    ASSERT_OK(bph_copy_in(from, source, 0, other.data(), 512, 0, &error));
    fake->hold();
    ASSERT_OK(bph_copy(from, source, 0, source, 512, 512, 0, &error));
    const uint64_t waits = fake->calls("stream_wait") + fake->calls("event_wait");
    ASSERT_OK(bph_copy_across(to, target, 0, from, source, 0, 512, 0, &error));
    EXPECT_EQ(fake->calls("stream_wait") + fake->calls("event_wait"), waits) << "the host waits for nothing";
    // Overwrites `source` after the copy.
    ASSERT_OK(bph_copy_in(from, source, 0, other.data(), 512, 0, &error));
    bph_buffer_release(source);
    fake->run(plugin_stream(from));
    EXPECT_EQ(read(to, target, 512), sent);
    EXPECT_FAILS(bph_copy_across(to, target, 10, from, target, 0, 20, 0, &error), BP_INVALID_ARGUMENT, "overlap");
    close();
  }
}

}  // namespace
}  // namespace backplane::core::test
