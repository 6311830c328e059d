// SPDX-License-Identifier: Apache-2.0
// Tests copies: bounds, overlap, and staging of pageable memory.
#include <numeric>
#include <random>

#include "memory_fixture.hpp"

namespace backplane::core::test {
namespace {

std::vector<char> pattern(size_t bytes) {
  std::vector<char> data(bytes);
  std::mt19937 random(static_cast<uint32_t>(bytes));
  std::generate(data.begin(), data.end(), [&] { return static_cast<char>(random()); });
  return data;
}

class TransferTest : public MemoryTest {
 protected:
  void round_trip(uint64_t bytes, uint64_t offset, uint32_t kind) {
    const Owned<bph_stream> one(stream());
    const Owned<bph_buffer> buffer(create(bytes + offset, one, kind));
    const std::vector<char> sent = pattern(bytes);
    std::vector<char> changed = sent;
    ASSERT_OK(bph_copy_in(one, buffer, offset, changed.data(), bytes, 0, &error));
    // The caller may change a staged source as soon as the call returns.
    if (!fake->options.copy_in) std::fill(changed.begin(), changed.end(), '!');
    std::vector<char> received(bytes);
    ASSERT_OK(bph_copy_out(one, received.data(), buffer, offset, bytes, 0, &error));
    EXPECT_TRUE(sent == received);
  }
};

TEST_F(TransferTest, StagedRoundTripOfManySizes) {
  open();
  const uint64_t sizes[] = {1, 513, 2u << 20, (2u << 20) + 1, (4u << 20) + 7, (9u << 20) + 3};
  uint64_t bytes = 0;
  for (const bool held : {false, true}) {
    if (held) fake->hold();
    for (const uint64_t size : sizes) {
      round_trip(size, 77, BP_MEMORY_DEVICE);
      bytes += 2 * size;
    }
  }
  EXPECT_EQ(stats().host_staged_copies, 2 * 2 * std::size(sizes));
  EXPECT_EQ(stats().host_staged_bytes, bytes);
}

TEST_F(TransferTest, HostMemoryIsCopiedByTheHost) {
  open();
  round_trip(5000, 3, BP_MEMORY_HOST);
  round_trip(5000, 3, BP_MEMORY_SHARED);
}

TEST_F(TransferTest, ThePluginsSlotsAreUsedWhereItHasThem) {
  FakeOptions options;
  options.copy_in = options.copy_out = true;
  options.kinds = 1;
  open(options);
  round_trip(5u << 20, 5, BP_MEMORY_DEVICE);
  EXPECT_EQ(fake->calls("copy_in"), 1u);
  EXPECT_EQ(fake->calls("copy_out"), 1u);
  EXPECT_EQ(stats().host_staged_copies, 0u);
}

TEST_F(TransferTest, CopyInDoesNotDisturbStagedWorkThatIsPending) {
  open();
  bph_stream* one = stream();
  bph_buffer* buffer = create(64 * 256, one);
  fake->hold();
  for (char i = 0; i < 64; ++i) {
    const std::string text(256, i);
    ASSERT_OK(bph_copy_in(one, buffer, 256u * static_cast<uint64_t>(i), text.data(), 256, 0, &error));
  }
  std::vector<char> out(64 * 256);
  ASSERT_OK(bph_copy_out(one, out.data(), buffer, 0, out.size(), 0, &error));
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], static_cast<char>(i / 256)) << i;
}

TEST_F(TransferTest, BoundsAreCheckedWithoutOverflow) {
  open();
  bph_stream* one = stream();
  bph_buffer* small = create(100, one);
  bph_buffer* big = create(1000, one);
  char data[8] = {};
  const uint64_t copies = fake->calls("copy");
  EXPECT_FAILS(bph_copy(one, small, 0, big, 0, 101, 0, &error), BP_INVALID_ARGUMENT,
               "bph_copy: 101 bytes from offset 0 do not fit dst, which has 100");
  EXPECT_FAILS(bph_copy(one, small, 0, big, 993, 8, 0, &error), BP_INVALID_ARGUMENT,
               "8 bytes from offset 993 do not fit src, which has 1000");
  EXPECT_FAILS(bph_copy(one, small, UINT64_MAX, big, 0, 8, 0, &error), BP_INVALID_ARGUMENT, "do not fit dst");
  EXPECT_FAILS(bph_copy(one, small, 8, big, 8, UINT64_MAX - 4, 0, &error), BP_INVALID_ARGUMENT, "do not fit dst");
  EXPECT_FAILS(bph_copy_in(one, small, 93, data, 8, 0, &error), BP_INVALID_ARGUMENT,
               "bph_copy_in: 8 bytes from offset 93");
  EXPECT_FAILS(bph_copy_out(one, data, small, 93, 8, 0, &error), BP_INVALID_ARGUMENT,
               "bph_copy_out: 8 bytes from offset 93");
  EXPECT_FAILS(bph_copy_in(one, small, 0, nullptr, 8, 0, &error), BP_INVALID_ARGUMENT, "src is null");
  EXPECT_FAILS(bph_copy_out(one, nullptr, small, 0, 8, 0, &error), BP_INVALID_ARGUMENT, "dst is null");
  EXPECT_EQ(fake->calls("copy"), copies);
}

TEST_F(TransferTest, OverlapIsAnError) {
  open();
  bph_stream* one = stream();
  bph_buffer* buffer = create(1000, one);
  EXPECT_FAILS(bph_copy(one, buffer, 99, buffer, 0, 100, 0, &error), BP_INVALID_ARGUMENT,
               "overlap: 100 bytes from offset 0 to offset 99");
  EXPECT_FAILS(bph_copy(one, buffer, 0, buffer, 0, 1, 0, &error), BP_INVALID_ARGUMENT, "overlap");
  ASSERT_OK(bph_copy(one, buffer, 100, buffer, 0, 100, 0, &error));
}

TEST_F(TransferTest, HostToHostIsAnError) {
  open();
  bph_stream* one = stream();
  bph_buffer* a = create(1000, one, BP_MEMORY_HOST);
  bph_buffer* b = create(1000, one, BP_MEMORY_HOST);
  EXPECT_FAILS(bph_copy(one, a, 0, b, 0, 10, 0, &error), BP_INVALID_ARGUMENT, "both buffers are HOST memory");
}

TEST_F(TransferTest, NoBytesNeedNoPlugin) {
  open();
  bph_stream* one = stream();
  bph_buffer* empty = create(0, one);
  bph_buffer* full = create(10, one);
  ASSERT_OK(bph_copy(one, empty, 0, full, 10, 0, 0, &error));
  ASSERT_OK(bph_copy(one, full, 0, full, 0, 0, 0, &error));
  ASSERT_OK(bph_copy_in(one, empty, 0, nullptr, 0, 0, &error));
  ASSERT_OK(bph_copy_out(one, nullptr, empty, 0, 0, 0, &error));
  EXPECT_FAILS(bph_copy_in(one, empty, 1, nullptr, 0, 0, &error), BP_INVALID_ARGUMENT, "do not fit");
  EXPECT_EQ(fake->calls("copy"), 0u);
}

TEST_F(TransferTest, BuffersOfAnotherDeviceAreErrors) {
  open();
  OpenDevice other;
  bph_stream* one = stream();
  bph_buffer* own = create(10, one);
  bph_buffer* foreign = other.create(10);
  char data[10] = {};
  EXPECT_FAILS(bph_copy(one, own, 0, foreign, 0, 10, 0, &error), BP_INVALID_ARGUMENT,
               "bph_copy: src is of fake:0, the stream of fake:0 as opened another time");
  EXPECT_FAILS(bph_copy(one, foreign, 0, own, 0, 10, 0, &error), BP_INVALID_ARGUMENT, "dst is of");
  EXPECT_FAILS(bph_copy_in(one, foreign, 0, data, 10, 0, &error), BP_INVALID_ARGUMENT, "dst is of");
  EXPECT_FAILS(bph_copy_out(one, data, foreign, 0, 10, 0, &error), BP_INVALID_ARGUMENT, "src is of");
}

TEST_F(TransferTest, FailuresInTheMiddleLeakNothing) {
  open();
  bph_stream* one = stream();
  bph_buffer* buffer = create(8u << 20, one);
  std::vector<char> data(8u << 20);
  for (const char* slot : {"buffer_map", "event_create", "copy", "event_record"}) {
    // Makes the stream idle, so that it needs no marker. A marker would consume the injected
    // failure.
    ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
    fake->fail(slot, BP_OUT_OF_MEMORY);
    EXPECT_FAILS(bph_copy_in(one, buffer, 0, data.data(), data.size(), 0, &error), BP_OUT_OF_MEMORY, slot);
    ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
    fake->fail(slot, BP_OUT_OF_MEMORY);
    EXPECT_FAILS(bph_copy_out(one, data.data(), buffer, 0, data.size(), 0, &error), BP_OUT_OF_MEMORY, slot);
    ASSERT_OK(bph_copy_out(one, data.data(), buffer, 0, data.size(), 0, &error));
  }
}

}  // namespace
}  // namespace backplane::core::test
