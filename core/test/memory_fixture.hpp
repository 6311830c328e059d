// SPDX-License-Identifier: Apache-2.0
// What the tests of memory, streams and events share: an open fake device, and short calls that must succeed.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "fake_device.hpp"

namespace backplane::core::test {

// A status with the message that came with it.
struct Answer {
  bp_status status;
  std::string message;
};

template <class Call>
Answer answer(Call&& call) {
  bp_error error = fresh_error();
  const bp_status status = call(&error);
  return {status, error.message};
}

#define EXPECT_FAILS(expected, text, call)                                                       \
  do {                                                                                           \
    const auto failed_ = ::backplane::core::test::answer([&](bp_error* error) { return call; }); \
    EXPECT_EQ(failed_.status, expected) << failed_.message;                                      \
    EXPECT_THAT(failed_.message, ::testing::HasSubstr(text));                                    \
  } while (false)

#define ASSERT_WORKS(call)                                                                       \
  do {                                                                                           \
    const auto worked_ = ::backplane::core::test::answer([&](bp_error* error) { return call; }); \
    ASSERT_EQ(worked_.status, BP_OK) << worked_.message;                                         \
  } while (false)

class MemoryTest : public ::testing::Test {
 protected:
  void open(FakeOptions options = {}, const bph_device_desc* desc = nullptr) {
    fake = std::make_unique<FakeDevice>(options);
    device = fake->open(desc);
  }
  void TearDown() override {
    if (fake == nullptr) return;
    fake->release();
    fake->hook = nullptr;
    bph_device_release(device);
    EXPECT_TRUE(fake->is_closed());
    EXPECT_TRUE(fake->has_ended());
    EXPECT_EQ(fake->buffers() + fake->streams() + fake->events(), 0u);
    EXPECT_THAT(fake->violations(), ::testing::IsEmpty());
  }

  static bph_buffer_desc desc_of(uint64_t bytes, bph_stream* on = nullptr, uint32_t kind = BP_MEMORY_DEVICE) {
    bph_buffer_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.kind = kind;
    desc.bytes = bytes;
    desc.stream = on;
    return desc;
  }
  bph_buffer* create(const bph_buffer_desc& desc) {
    bph_buffer* buffer = nullptr;
    bp_error error = fresh_error();
    EXPECT_EQ(bph_buffer_create(device, &desc, &buffer, &error), BP_OK) << error.message;
    return buffer;
  }
  bph_buffer* create(uint64_t bytes, bph_stream* on = nullptr, uint32_t kind = BP_MEMORY_DEVICE) {
    return create(desc_of(bytes, on, kind));
  }
  static bph_import_desc import_of(void* memory, uint64_t bytes, void (*release)(void*) = nullptr,
                                   void* context = nullptr) {
    bph_import_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.type = BP_IMPORT_HOST;
    desc.address = reinterpret_cast<uint64_t>(memory);
    desc.bytes = bytes;
    desc.release = release;
    desc.context = context;
    return desc;
  }
  bph_stream* stream(uint32_t flags = 0) {
    bph_stream* made = nullptr;
    bp_error error = fresh_error();
    const bph_stream_desc desc = {sizeof(desc), 0, flags, 0};
    EXPECT_EQ(bph_stream_create(device, &desc, &made, &error), BP_OK) << error.message;
    return made;
  }
  bph_event* event(uint32_t flags = 0) {
    bph_event* made = nullptr;
    bp_error error = fresh_error();
    EXPECT_EQ(bph_event_create(device, flags, &made, &error), BP_OK) << error.message;
    return made;
  }
  static bph_buffer_info info(bph_buffer* buffer) {
    bph_buffer_info info = {};
    info.struct_size = sizeof(info);
    EXPECT_EQ(bph_buffer_get_info(buffer, &info, nullptr), BP_OK);
    return info;
  }
  // Where a buffer's memory is: equal for the same memory.
  static std::pair<bp_buffer*, uint64_t> place(bph_buffer* buffer) {
    return {info(buffer).plugin_buffer, info(buffer).plugin_offset};
  }
  bph_stats stats() {
    bph_stats stats = {};
    stats.struct_size = sizeof(stats);
    EXPECT_EQ(bph_device_stats(device, &stats, nullptr), BP_OK);
    return stats;
  }
  uint64_t trim() {
    uint64_t bytes = 0;
    EXPECT_EQ(bph_device_trim(device, 0, &bytes, nullptr), BP_OK);
    return bytes;
  }
  // Some work on `on` that uses `buffer`.
  static void use(bph_buffer* buffer, bph_stream* on) {
    bp_error error = fresh_error();
    ASSERT_EQ(bph_copy(on, buffer, 0, buffer, 256, 256, 0, &error), BP_OK) << error.message;
  }

  std::unique_ptr<FakeDevice> fake;
  bph_device* device = nullptr;
};

}  // namespace backplane::core::test
