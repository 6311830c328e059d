// SPDX-License-Identifier: Apache-2.0
// Tests buffers: arguments, handles, raw and imported memory, and the framework's allocator.
#include "memory/buffer.hpp"

#include <algorithm>

#include "memory_fixture.hpp"

namespace backplane::core::test {
namespace {

class BufferTest : public MemoryTest {
 protected:
  bp_status import(const bph_import_desc& desc, bph_buffer** out, bp_error* error) const {
    return bph_buffer_import(device, &desc, out, error);
  }
};

TEST_F(BufferTest, NoBytesIsLegal) {
  open();
  bph_buffer* empty = create(0);
  EXPECT_EQ(info(empty).bytes, 0u);
  EXPECT_EQ(info(empty).plugin_buffer, nullptr);
  bph_buffer* host = create(0, nullptr, BP_MEMORY_HOST);
  void* address = this;
  ASSERT_OK(bph_buffer_map(host, &address, &error));
  EXPECT_EQ(address, nullptr);
  EXPECT_EQ(fake->buffers(), 0u);
}

TEST_F(BufferTest, WrongArgumentsAreNamed) {
  FakeOptions options;
  options.kinds = 1;
  options.copy_in = options.copy_out = true;
  options.max_buffer_bytes = 1u << 20;
  open(options);
  bph_buffer* out = reinterpret_cast<bph_buffer*>(1);
  bph_buffer_desc desc = desc_of(100);
  desc.kind = 3;
  EXPECT_FAILS(bph_buffer_create(device, &desc, &out, &error), BP_UNSUPPORTED,
               "memory of kind 3 (unknown) is not offered; it has DEVICE");
  EXPECT_EQ(out, nullptr);
  desc.kind = BP_MEMORY_HOST;
  EXPECT_FAILS(bph_buffer_create(device, &desc, &out, &error), BP_UNSUPPORTED, "kind 1 (HOST) is not offered");
  desc.bytes = 0;
  EXPECT_FAILS(bph_buffer_create(device, &desc, &out, &error), BP_UNSUPPORTED, "kind 1 (HOST) is not offered");
  desc = desc_of((1u << 20) + 1);
  EXPECT_FAILS(bph_buffer_create(device, &desc, &out, &error), BP_OUT_OF_MEMORY,
               "1048577 bytes asked, and one buffer has at most 1048576");
  desc.bytes = UINT64_MAX;
  EXPECT_FAILS(bph_buffer_create(device, &desc, &out, &error), BP_OUT_OF_MEMORY, "at most 1048576");
  desc = desc_of(100);
  for (const uint64_t alignment : {uint64_t{3}, uint64_t{1} << 40, UINT64_MAX}) {
    desc.alignment = alignment;
    EXPECT_FAILS(bph_buffer_create(device, &desc, &out, &error), BP_INVALID_ARGUMENT, "is not a power of two");
  }
  desc = desc_of(100);
  desc.flags = 6;
  EXPECT_FAILS(bph_buffer_create(device, &desc, &out, &error), BP_UNSUPPORTED, "flags 0x6");
  desc = desc_of(100);
  desc.reserved = 1;
  EXPECT_FAILS(bph_buffer_create(device, &desc, &out, &error), BP_UNSUPPORTED, "reserved 0x1");
  desc = desc_of(100);
  desc.struct_size = 8;
  EXPECT_FAILS(bph_buffer_create(device, &desc, &out, &error), BP_INVALID_ARGUMENT, "struct_size is 8");
  EXPECT_FAILS(bph_buffer_create(device, nullptr, &out, &error), BP_INVALID_ARGUMENT, "is null");
  desc = desc_of(100);
  EXPECT_FAILS(bph_buffer_create(device, &desc, nullptr, &error), BP_INVALID_ARGUMENT, "out is null");
  EXPECT_FAILS(bph_buffer_create(nullptr, &desc, &out, &error), BP_INVALID_ARGUMENT, "the device is null");
  desc.stream = reinterpret_cast<bph_stream*>(device);
  EXPECT_FAILS(bph_buffer_create(device, &desc, &out, &error), BP_INVALID_ARGUMENT, "is not a live stream");
  EXPECT_EQ(out, nullptr);
}

TEST_F(BufferTest, LargerStructsAreReadByTheirRole) {
  open();
  struct {
    bph_buffer_desc desc;
    uint64_t more;
  } longer = {desc_of(100), 0};
  longer.desc.struct_size = sizeof(longer);
  bph_buffer* buffer = create(longer.desc);
  longer.more = 1;
  bph_buffer* none = nullptr;
  EXPECT_FAILS(bph_buffer_create(device, &longer.desc, &none, &error), BP_UNSUPPORTED, "non-zero bytes beyond");
  struct {
    bph_buffer_info info;
    uint64_t more;
  } wide;
  wide.info.struct_size = sizeof(wide);
  wide.more = 9;
  ASSERT_OK(bph_buffer_get_info(buffer, &wide.info, &error));
  EXPECT_EQ(wide.info.bytes, 100u);
  EXPECT_EQ(wide.more, 0u);
}

TEST_F(BufferTest, ReleasedHandlesNeverMatchAgain) {
  open();
  bph_stream* one = stream();
  std::vector<bph_buffer*> old;
  for (int i = 0; i < 100; ++i) {
    bph_buffer* buffer = create(1000, one);
    EXPECT_EQ(std::count(old.begin(), old.end(), buffer), 0);
    for (bph_buffer* stale : old) {
      void* address = nullptr;
      EXPECT_EQ(bph_buffer_map(stale, &address, nullptr), BP_INVALID_ARGUMENT);
      bph_buffer_release(stale);
    }
    EXPECT_EQ(info(buffer).bytes, 1000u) << "a stale release touches nothing";
    old.push_back(buffer);
    bph_buffer_release(buffer);
  }
}

TEST_F(BufferTest, MapIsForTheHostsMemory) {
  open();
  bph_buffer* memory = create(1000);
  void* address = this;
  EXPECT_FAILS(bph_buffer_map(memory, &address, &error), BP_UNSUPPORTED,
               "DEVICE memory of 1000 bytes has no host address");
  EXPECT_EQ(address, nullptr);
  for (const uint32_t kind : {BP_MEMORY_HOST, BP_MEMORY_SHARED}) {
    bph_buffer* a = create(1000, nullptr, kind);
    bph_buffer* b = create(1000, nullptr, kind);
    void* a_address = nullptr;
    void* b_address = nullptr;
    ASSERT_OK(bph_buffer_map(a, &a_address, &error));
    ASSERT_OK(bph_buffer_map(b, &b_address, &error));
    EXPECT_GE(std::abs(static_cast<char*>(a_address) - static_cast<char*>(b_address)), 1000);
    fake->return_null("buffer_map");
    EXPECT_FAILS(bph_buffer_map(a, &a_address, &error), BP_INTERNAL, "nonconforming");
  }
}

TEST_F(BufferTest, BufferKeepsItsDevice) {
  open();
  bph_buffer* a = create(1000);
  bph_buffer* b = create(0);
  bph_device_release(device);
  EXPECT_FALSE(fake->is_closed());
  bph_buffer_release(a);
  EXPECT_FALSE(fake->is_closed());
  bph_buffer_release(b);
  EXPECT_TRUE(fake->is_closed());
}

TEST_F(BufferTest, RawIsThePluginsOwnAndWaitsForItsStream) {
  open();
  bph_stream* one = stream();
  bph_buffer_desc desc = desc_of(1000, one);
  desc.flags = BPH_BUFFER_RAW;
  desc.alignment = 4096;
  bph_buffer* raw = create(desc);
  EXPECT_EQ(fake->bytes(), 1000u);
  EXPECT_EQ(info(raw).plugin_offset, 0u);
  EXPECT_EQ(stats().bytes_reserved, 1000u);
  EXPECT_EQ(stats().bytes_in_use, 1000u);
  fake->hold();
  use(raw, one);
  bph_buffer_release(raw);
  EXPECT_EQ(stats().bytes_in_use, 0u);
  EXPECT_EQ(fake->buffers(), 1u);
  ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
  EXPECT_EQ(fake->buffers(), 0u) << "a wait lets what it passed go";
  EXPECT_EQ(stats().bytes_reserved, 0u);
}

TEST_F(BufferTest, APartOfACopyKeepsItsBuffers) {
  FakeOptions options;
  options.copy_in = options.copy_out = true;
  open(options);
  fake->hold();
  std::vector<char> host(256);
  for (const std::string slot : {"copy", "copy_in", "copy_out"}) {
    bph_stream* one = stream();
    bph_buffer_desc desc = desc_of(1024, one);
    desc.flags = BPH_BUFFER_RAW;
    bph_buffer* buffer = create(desc);
    const uint64_t destroyed = fake->calls("buffer_destroy");
    fake->submit_part(slot);
    if (slot == "copy") {
      EXPECT_FAILS(bph_copy(one, buffer, 0, buffer, 256, 256, 0, &error), BP_EXECUTION_FAILED, "a part of copy");
    } else if (slot == "copy_in") {
      EXPECT_FAILS(bph_copy_in(one, buffer, 0, host.data(), 256, 0, &error), BP_EXECUTION_FAILED, "a part of copy_in");
    } else {
      EXPECT_FAILS(bph_copy_out(one, host.data(), buffer, 0, 256, 0, &error), BP_EXECUTION_FAILED, "broken");
      EXPECT_FALSE(fake->pending(plugin_stream(one))) << "nothing writes to the caller's memory any more";
    }
    bph_buffer_release(buffer);
    EXPECT_EQ(fake->calls("buffer_destroy"), destroyed + (slot == "copy_out" ? 1 : 0)) << slot << " may still use it";
    EXPECT_EQ(bph_stream_wait(one, BP_WAIT_FOREVER, nullptr), BP_EXECUTION_FAILED);
    EXPECT_EQ(fake->calls("buffer_destroy"), destroyed + 1) << slot;
  }
}

TEST_F(BufferTest, IdleRawIsDestroyedAtOnce) {
  open();
  bph_buffer_desc desc = desc_of(1000);
  desc.flags = BPH_BUFFER_RAW;
  bph_buffer_release(create(desc));
  EXPECT_EQ(fake->buffers(), 0u);
}

struct Released {
  int count = 0;
  static void call(void* context) { ++static_cast<Released*>(context)->count; }
};

TEST_F(BufferTest, ImportCallsBackOnceWhenEveryStreamPassed) {
  open();
  alignas(64) char memory[1024] = {};
  bph_stream* one = stream();
  bph_stream* two = stream();
  Released released;
  bph_buffer* buffer = nullptr;
  ASSERT_OK(import(import_of(memory, sizeof(memory), Released::call, &released), &buffer, &error));
  EXPECT_EQ(info(buffer).kind, BP_MEMORY_SHARED);
  void* address = nullptr;
  ASSERT_OK(bph_buffer_map(buffer, &address, &error));
  EXPECT_EQ(address, memory);
  fake->hold();
  use(buffer, one);
  use(buffer, two);
  bph_buffer_release(buffer);
  bph_buffer_release(buffer);
  EXPECT_EQ(released.count, 0);
  ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
  EXPECT_EQ(released.count, 0);
  ASSERT_OK(bph_stream_wait(two, BP_WAIT_FOREVER, &error));
  EXPECT_EQ(released.count, 1);
  for (bph_stream* each : {one, two}) bph_stream_release(each);
  EXPECT_EQ(released.count, 1);
}

TEST_F(BufferTest, ImportOfAnIdleDeviceCallsBackAtRelease) {
  open();
  char memory[16];
  Released released;
  bph_buffer* buffer = nullptr;
  ASSERT_OK(import(import_of(memory, sizeof(memory), Released::call, &released), &buffer, &error));
  EXPECT_EQ(released.count, 0);
  bph_buffer_release(buffer);
  EXPECT_EQ(released.count, 1);
  ASSERT_OK(import(import_of(memory, 0, Released::call, &released), &buffer, &error));
  bph_buffer_release(buffer);
  EXPECT_EQ(released.count, 2);
  ASSERT_OK(import(import_of(memory, sizeof(memory)), &buffer, &error));
  bph_buffer_release(buffer);
}

TEST_F(BufferTest, ImportOutlivesEverythingUntilTheDeviceCloses) {
  open();
  char memory[1024];
  bph_stream* one = stream();
  Released released;
  bph_buffer* buffer = nullptr;
  ASSERT_OK(import(import_of(memory, sizeof(memory), Released::call, &released), &buffer, &error));
  fake->hold();
  use(buffer, one);
  bph_buffer_release(buffer);
  bph_stream_release(one);
  EXPECT_EQ(released.count, 0);
  bph_device_release(device);
  EXPECT_EQ(released.count, 1);
  EXPECT_TRUE(fake->is_closed());
}

TEST_F(BufferTest, AFailedImportCallsNobodyBack) {
  open();
  char memory[16];
  Released released;
  bph_buffer* buffer = nullptr;
  const bph_import_desc desc = import_of(memory, 16, Released::call, &released);
  fake->fail("import_memory", BP_OUT_OF_MEMORY);
  EXPECT_FAILS(import(desc, &buffer, &error), BP_OUT_OF_MEMORY, "fake:0: import_memory");
  fake->return_null("import_memory");
  EXPECT_FAILS(import(desc, &buffer, &error), BP_INTERNAL, "nonconforming");
  bph_import_desc bad = desc;
  bad.address = 0;
  EXPECT_FAILS(import(bad, &buffer, &error), BP_INVALID_ARGUMENT, "the address is null, and 16 bytes");
  bad = desc;
  bad.bytes = UINT64_MAX;
  EXPECT_FAILS(import(bad, &buffer, &error), BP_INVALID_ARGUMENT, "past the end of memory");
  for (auto field : {&bph_import_desc::type, &bph_import_desc::flags, &bph_import_desc::reserved}) {
    bad = desc;
    bad.*field = 7;
    EXPECT_FAILS(import(bad, &buffer, &error), BP_UNSUPPORTED, "is unknown; use BP_IMPORT_HOST");
  }
  bad = desc;
  bad.struct_size = BPH_IMPORT_DESC_MIN_SIZE - 1;
  EXPECT_FAILS(import(bad, &buffer, &error), BP_INVALID_ARGUMENT,
               "bph_import_desc.struct_size is 55, less than its minimum of 56");
  bad.struct_size = BP_STRUCT_LIMIT + 1;
  EXPECT_FAILS(import(bad, &buffer, &error), BP_INVALID_ARGUMENT,
               "struct_size is 4097, and no struct is longer than 4096");
  EXPECT_FAILS(bph_buffer_import(device, nullptr, &buffer, &error), BP_INVALID_ARGUMENT, "the bph_import_desc is null");
  EXPECT_FAILS(bph_buffer_import(nullptr, &desc, &buffer, &error), BP_INVALID_ARGUMENT, "the device is null");
  EXPECT_FAILS(bph_buffer_import(device, &desc, nullptr, &error), BP_INVALID_ARGUMENT, "out is null");
  bad = desc;
  bad.stream = reinterpret_cast<bph_stream*>(&bad);
  EXPECT_FAILS(import(bad, &buffer, &error), BP_INVALID_ARGUMENT, "is not a live stream");
  EXPECT_EQ(released.count, 0);
  EXPECT_EQ(buffer, nullptr);
  EXPECT_EQ(fake->buffers(), 0u);
}

TEST_F(BufferTest, AnImportOfOneStreamWaitsForItAlone) {
  open();
  alignas(64) char memory[1024] = {};
  bph_stream* one = stream();
  bph_stream* two = stream();
  Released released;
  bph_import_desc desc = import_of(memory, sizeof(memory), Released::call, &released);
  desc.stream = one;
  bph_buffer* buffer = nullptr;
  ASSERT_OK(import(desc, &buffer, &error));
  bph_buffer* other = create(512, two);
  fake->hold();
  use(buffer, one);
  use(other, two);
  bph_buffer_release(buffer);
  EXPECT_EQ(released.count, 0);
  ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
  EXPECT_EQ(released.count, 1);
}

TEST_F(BufferTest, DeviceMemoryIsImportedAsSuch) {
  open();
  alignas(64) char memory[64] = {};
  bph_import_desc desc = import_of(memory, sizeof(memory));
  desc.type = BP_IMPORT_DEVICE;
  EXPECT_EQ(info(opened->import(desc)).kind, BP_MEMORY_DEVICE);
}

TEST_F(BufferTest, AnImportOfAnotherKindIsTheDefectOfThePlugin) {
  for (const uint32_t kind : {BP_MEMORY_DEVICE, 3u, 40u}) {
    FakeOptions options;
    options.import_kind = kind;
    open(options);
    char memory[64];
    bph_buffer* none = nullptr;
    EXPECT_FAILS(import(import_of(memory, sizeof(memory)), &none, &error), BP_INTERNAL,
                 "of kind " + std::to_string(kind) + ", which must be HOST or SHARED");
    EXPECT_EQ(none, nullptr);
    EXPECT_EQ(fake->buffers(), 0u);
    close();
  }
}

// Core refuses a device if the properties that it reports violate the rules in device.h.
TEST_F(BufferTest, WhatADeviceSaysOfItselfIsChecked) {
  const auto refused = [](FakeOptions options, const char* text) {
    FakeDevice wrong(options);
    try {
      wrong.open();
      ADD_FAILURE() << "opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), BP_INTERNAL) << error.what();
      EXPECT_THAT(error.what(), ::testing::HasSubstr(text));
    }
    EXPECT_TRUE(wrong.has_ended());
  };
  for (const uint64_t alignment : {uint64_t{0}, uint64_t{768}, uint64_t{1} << 31, UINT64_MAX}) {
    FakeOptions options;
    options.alignment = alignment;
    refused(options, "a power of two up to 1073741824");
  }
  FakeOptions hostly;
  hostly.kinds = 1u << BP_MEMORY_HOST;
  refused(hostly, "must have DEVICE");
  for (const bool in : {false, true}) {
    FakeOptions unreachable;
    unreachable.kinds = 1u << BP_MEMORY_DEVICE | 1u << BP_MEMORY_SHARED;
    unreachable.copy_in = in;
    refused(unreachable, in ? "has no copy_out" : "has no copy_in");
  }
}

TEST_F(BufferTest, ImportNeedsTheInterface) {
  FakeOptions options;
  options.import = false;
  open(options);
  char memory[16];
  bph_buffer* buffer = nullptr;
  EXPECT_FAILS(import(import_of(memory, 16), &buffer, &error), BP_UNSUPPORTED, "takes no foreign memory");
}

TEST_F(BufferTest, RecordChecksTheDevice) {
  open();
  OpenDevice other;
  bph_stream* foreign = other.stream();
  bph_buffer* buffer = create(10);
  EXPECT_FAILS(bph_buffer_record(buffer, foreign, &error), BP_INVALID_ARGUMENT,
               "bph_buffer_record: the buffer is of fake:0, the stream of fake:0 as opened");
  bph_buffer_desc desc = desc_of(10, foreign);
  bph_buffer* none = nullptr;
  EXPECT_FAILS(bph_buffer_create(device, &desc, &none, &error), BP_INVALID_ARGUMENT, "as opened another time");
}

// A framework's bump allocator, which hands out consecutive ranges of one raw buffer.
struct Bump {
  Owned<bph_buffer> raw{};
  uint64_t used = 0;
  int live = 0;
  std::vector<std::pair<uint64_t, bph_stream*>> released;  // pairs of offset and stream
  bp_status answer = BP_OK;

  static bp_status allocate(void* context, bph_device* device, uint32_t kind, uint64_t bytes, uint64_t alignment,
                            bph_stream*, bph_buffer** out, uint64_t* out_offset, bp_error* error) {
    auto& bump = *static_cast<Bump*>(context);
    if (bump.answer != BP_OK) return write_error(error, bump.answer, "bump is full");
    if (bump.raw == nullptr) {
      bph_buffer_desc desc = {};
      desc.struct_size = sizeof(desc);
      desc.kind = kind;
      desc.bytes = 1u << 20;
      desc.flags = BPH_BUFFER_RAW;
      const bp_status status = bph_buffer_create(device, &desc, bump.raw.out(), error);
      if (status != BP_OK) return status;
    }
    *out = bump.raw;
    *out_offset = (bump.used + alignment - 1) / alignment * alignment;
    bump.used = *out_offset + bytes;
    ++bump.live;
    return BP_OK;
  }
  static void release(void* context, bph_buffer*, uint64_t offset, uint64_t, bph_stream* stream) {
    auto& bump = *static_cast<Bump*>(context);
    bump.released.emplace_back(offset, stream);
    --bump.live;
  }
  bph_allocator table() { return {sizeof(bph_allocator), 0, this, allocate, release}; }
};

TEST_F(BufferTest, TheFrameworksAllocatorIsAsked) {
  Bump bump;
  const bph_allocator table = bump.table();
  bph_device_desc device_desc = {};
  device_desc.struct_size = sizeof(device_desc);
  device_desc.allocator = &table;
  open({}, &device_desc);
  bph_stream* one = stream();
  bph_stream* two = stream();
  bph_buffer* a = create(1000, one);
  bph_buffer* b = create(1000, one);
  EXPECT_EQ(info(a).plugin_buffer, info(b).plugin_buffer);
  EXPECT_EQ(info(b).plugin_offset, 1024u);
  EXPECT_EQ(stats().bytes_in_use, 2000u + (1u << 20));
  fake->hold();
  use(a, one);
  bph_buffer_release(a);
  EXPECT_EQ(bump.released.back(), std::pair(uint64_t{0}, one)) << "its stream's order is handed on";
  ASSERT_OK(bph_buffer_record(b, two, &error));
  use(b, two);
  bph_buffer_release(b);
  EXPECT_EQ(bump.live, 1) << "another stream still uses it";
  ASSERT_OK(bph_stream_wait(two, BP_WAIT_FOREVER, &error));
  EXPECT_EQ(bump.live, 0);
  bph_buffer* c = create(1000);
  use(c, two);
  bph_buffer_release(c);
  EXPECT_EQ(bump.live, 1);
  fake->release();
  ASSERT_OK(bph_stream_wait(one, BP_WAIT_FOREVER, &error));
  ASSERT_OK(bph_stream_wait(two, BP_WAIT_FOREVER, &error));
  EXPECT_EQ(bump.live, 0);
  EXPECT_EQ(bump.released.back().second, nullptr);
  bump.answer = BP_OUT_OF_MEMORY;
  const bph_buffer_desc desc = desc_of(10);
  bph_buffer* none = nullptr;
  EXPECT_FAILS(bph_buffer_create(device, &desc, &none, &error), BP_OUT_OF_MEMORY,
               "the framework's allocator: bump is full");
  bump.answer = BP_OK;
  bump.used = 1u << 20;
  EXPECT_FAILS(bph_buffer_create(device, &desc, &none, &error), BP_INTERNAL,
               "no live, writable buffer of fake:0 that holds them");
}

TEST_F(BufferTest, ABufferWithoutMemoryIsNotExported) {
  open();
  bph_buffer* empty = opened->import(import_of(nullptr, 0));
  bp_external_handle handle = {};
  handle.struct_size = sizeof(handle);
  EXPECT_FAILS(bph_buffer_export(empty, "opaque_fd", &handle, &error), BP_INVALID_ARGUMENT, "0 bytes");
}

}  // namespace
}  // namespace backplane::core::test
