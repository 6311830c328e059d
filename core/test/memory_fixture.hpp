// SPDX-License-Identifier: Apache-2.0
// Fixture for tests of memory, streams and events: an open fake device, and helper functions for
// calls that must succeed.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "expect.hpp"
#include "fake_device.hpp"
#include "owned.hpp"

namespace backplane::core::test {

inline bph_buffer_desc desc_of(uint64_t bytes, bph_stream* on = nullptr, uint32_t kind = BP_MEMORY_DEVICE) {
  bph_buffer_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.kind = kind;
  desc.bytes = bytes;
  desc.stream = on;
  return desc;
}

// Owns an open fake device and the objects that a test creates on the device. The destructor
// releases the device and the objects. It expects that the device closes and that the fake saw no
// violation.
class OpenDevice {
 public:
  explicit OpenDevice(const FakeOptions& options = {}, const bph_device_desc* desc = nullptr)
      : fake(options), device(fake.open(desc)) {}
  ~OpenDevice() {
    release_objects();
    bph_device_release(device);
    EXPECT_TRUE(fake.is_closed());
    EXPECT_TRUE(fake.has_ended());
    EXPECT_EQ(fake.buffers() + fake.streams() + fake.events(), 0u);
    EXPECT_THAT(fake.violations(), ::testing::IsEmpty());
  }
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;

  // Runs all pending work and releases all objects. Handles that the test has already released are
  // stale, and releasing a stale handle does nothing.
  void release_objects() {
    fake.release();
    fake.hook = nullptr;
    for (bph_buffer* buffer : buffers_) bph_buffer_release(buffer);
    for (bph_event* event : events_) bph_event_release(event);
    for (bph_stream* stream : streams_) bph_stream_release(stream);
    buffers_.clear();
    events_.clear();
    streams_.clear();
  }

  bph_buffer* create(const bph_buffer_desc& desc) {
    bph_buffer* buffer = nullptr;
    EXPECT_OK(bph_buffer_create(device, &desc, &buffer, &error));
    return keep(buffers_, buffer);
  }
  bph_buffer* create(uint64_t bytes, bph_stream* on = nullptr, uint32_t kind = BP_MEMORY_DEVICE) {
    return create(desc_of(bytes, on, kind));
  }
  bph_buffer* import(const bph_import_desc& desc) {
    bph_buffer* buffer = nullptr;
    EXPECT_OK(bph_buffer_import(device, &desc, &buffer, &error));
    return keep(buffers_, buffer);
  }
  bph_stream* stream(uint32_t flags = 0) {
    bph_stream* made = nullptr;
    bph_stream_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.flags = flags;
    EXPECT_OK(bph_stream_create(device, &desc, &made, &error));
    return keep(streams_, made);
  }
  bph_event* event(uint32_t flags = 0) {
    bph_event* made = nullptr;
    EXPECT_OK(bph_event_create(device, flags, &made, &error));
    return keep(events_, made);
  }

  FakeDevice fake;
  bph_device* device = nullptr;

 private:
  // Registers a handle for release_objects.
  template <class Handle>
  Handle* keep(std::vector<Handle*>& list, Handle* handle) {
    const std::lock_guard lock(mutex_);
    list.push_back(handle);
    return handle;
  }

  std::mutex mutex_;  // guards the lists
  std::vector<bph_buffer*> buffers_;
  std::vector<bph_event*> events_;
  std::vector<bph_stream*> streams_;
};

class MemoryTest : public ::testing::Test {
 protected:
  void open(const FakeOptions& options = {}, const bph_device_desc* desc = nullptr) {
    opened.emplace(options, desc);
    fake = &opened->fake;
    device = opened->device;
  }
  // Closes the device. The test may then open another device.
  void close() {
    opened.reset();
    fake = nullptr;
    device = nullptr;
  }
  void TearDown() override { close(); }

  bph_buffer* create(const bph_buffer_desc& desc) { return opened->create(desc); }
  bph_buffer* create(uint64_t bytes, bph_stream* on = nullptr, uint32_t kind = BP_MEMORY_DEVICE) {
    return opened->create(bytes, on, kind);
  }
  bph_stream* stream(uint32_t flags = 0) { return opened->stream(flags); }
  bph_event* event(uint32_t flags = 0) { return opened->event(flags); }
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
  static bph_buffer_info info(bph_buffer* buffer) {
    bph_buffer_info info = {};
    info.struct_size = sizeof(info);
    EXPECT_EQ(bph_buffer_get_info(buffer, &info, nullptr), BP_OK);
    return info;
  }
  // Returns a pair that identifies a buffer's memory.
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
  // Enqueues work on stream `on` that uses `buffer`.
  static void use(bph_buffer* buffer, bph_stream* on) {
    ASSERT_OK(bph_copy(on, buffer, 0, buffer, 256, 256, 0, &error));
  }

  std::optional<OpenDevice> opened;
  FakeDevice* fake = nullptr;
  bph_device* device = nullptr;
};

}  // namespace backplane::core::test
