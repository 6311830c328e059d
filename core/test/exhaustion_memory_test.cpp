// SPDX-License-Identifier: Apache-2.0
// Injects a failure into each allocation of the functions for memory, streams, events and copies:
// first alone, then together with all later allocations.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include <backplane/backplane.h>

#include "fault_points.hpp"
#include "owned.hpp"

namespace backplane::core::test {

namespace {

class ExhaustionMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    bp_error error = {};
    error.struct_size = sizeof(error);
    bph_registry_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.flags = BPH_REGISTRY_NO_DEFAULT_PATHS;
    desc.search_path = "";
    ASSERT_EQ(bph_registry_create(&desc, registry.out(), &error), BP_OK) << error.message;
    const char* directory = std::getenv("BACKPLANE_TEST_PLUGINS");
    ASSERT_NE(directory, nullptr);
    const std::string path = std::string(directory) + "/null_plugin.so";
    ASSERT_EQ(bph_plugin_load(registry, path.c_str(), plugin.out(), &error), BP_OK) << error.message;
  }

  // Opens a device with two streams and runs `body`. `body` returns the status of its first call
  // that does not return OK.
  template <class Body>
  fault_points::Result sweep(const char* what, Body body) {
    return fault_points::sweep(what, fault_points::memory, [&]() -> bp_status {
      Owned<bph_device> device;
      Owned<bph_stream> streams[2];
      bp_status status = bph_plugin_device_open(plugin, 0, nullptr, device.out(), nullptr);
      for (Owned<bph_stream>& stream : streams) {
        if (status == BP_OK) status = bph_stream_create(device, nullptr, stream.out(), nullptr);
      }
      if (status == BP_OK) status = body(device, streams);
      return status;
    });
  }

  static bp_status make(bph_device* device, uint64_t bytes, uint32_t kind, uint32_t flags, bph_stream* stream,
                        bph_buffer** out) {
    bph_buffer_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.kind = kind;
    desc.bytes = bytes;
    desc.flags = flags;
    desc.stream = stream;
    return bph_buffer_create(device, &desc, out, nullptr);
  }

  Owned<bph_registry> registry;
  Owned<bph_plugin> plugin;
};

TEST_F(ExhaustionMemory, Streams) {
  const auto result = sweep("streams", [](bph_device*, const Owned<bph_stream>* streams) {
    return bph_stream_wait(streams[0], BP_WAIT_FOREVER, nullptr);
  });
  EXPECT_EQ(result.complaint, "");
  EXPECT_GT(result.errors, 10u);
}

TEST_F(ExhaustionMemory, RevivedStreams) {
  const auto result = sweep("revived streams", [](bph_device* device, const Owned<bph_stream>* streams) {
    const auto fails = [](void*, bp_device*, bp_stream*, bp_error*) -> bp_status { return BP_EXECUTION_FAILED; };
    Owned<bph_buffer> buffer;
    bp_status status = make(device, 1024, BP_MEMORY_DEVICE, 0, streams[0], buffer.out());
    if (status != BP_OK) return status;
    status = bph_stream_enqueue(streams[0], fails, nullptr, nullptr);
    if (status != BP_EXECUTION_FAILED) return status;
    status = bph_stream_revive(streams[0], nullptr);
    if (status == BP_OK) status = bph_copy(streams[0], buffer, 0, buffer, 512, 256, 0, nullptr);
    return status;
  });
  EXPECT_EQ(result.complaint, "");
  EXPECT_GT(result.errors, 10u);
}

TEST_F(ExhaustionMemory, Events) {
  const auto result = sweep("events", [](bph_device* device, const Owned<bph_stream>* streams) {
    Owned<bph_event> event;
    bp_status status = bph_event_create(device, 0, event.out(), nullptr);
    if (status == BP_OK) status = bph_event_record(event, streams[0], nullptr);
    if (status == BP_OK) status = bph_stream_wait_event(streams[1], event, nullptr);
    if (status == BP_OK) status = bph_event_wait(event, BP_WAIT_FOREVER, nullptr);
    return status;
  });
  EXPECT_EQ(result.complaint, "");
  EXPECT_GT(result.errors, 10u);
}

TEST_F(ExhaustionMemory, Buffers) {
  const auto result = sweep("buffers", [](bph_device* device, const Owned<bph_stream>* streams) {
    std::array<Owned<bph_buffer>, 12> buffers;
    bp_status status = BP_OK;
    for (size_t i = 0; i < buffers.size() && status == BP_OK; ++i) {
      status = make(device, i * 700, i % 3 == 2 ? BP_MEMORY_HOST : BP_MEMORY_DEVICE, i % 4 == 3 ? BPH_BUFFER_RAW : 0,
                    i % 2 == 0 ? nullptr : streams[0].get(), buffers[i].out());
      if (status == BP_OK && i == 5) status = bph_buffer_record(buffers[i], streams[1], nullptr);
      if (status == BP_OK && i == 7) buffers[1].reset();
    }
    for (Owned<bph_buffer>& buffer : buffers) buffer.reset();
    uint64_t bytes = 0;
    const bp_status trimmed = bph_device_trim(device, 1, &bytes, nullptr);
    return status != BP_OK ? status : trimmed;
  });
  EXPECT_EQ(result.complaint, "");
  EXPECT_GT(result.errors, 20u);
}

TEST_F(ExhaustionMemory, Copies) {
  const std::vector<char> sent(5u << 20, 'x');
  std::vector<char> received(sent.size());
  const auto result = sweep("copies", [&](bph_device* device, const Owned<bph_stream>* streams) {
    Owned<bph_buffer> buffers[2];
    bp_status status = make(device, sent.size(), BP_MEMORY_DEVICE, 0, streams[0], buffers[0].out());
    if (status == BP_OK) status = make(device, sent.size(), BP_MEMORY_DEVICE, 0, nullptr, buffers[1].out());
    if (status == BP_OK) status = bph_copy_in(streams[0], buffers[0], 0, sent.data(), sent.size(), 0, nullptr);
    if (status == BP_OK) status = bph_copy(streams[0], buffers[1], 0, buffers[0], 0, sent.size(), 0, nullptr);
    if (status == BP_OK) status = bph_copy_out(streams[0], received.data(), buffers[1], 0, sent.size(), 0, nullptr);
    return status;
  });
  EXPECT_EQ(result.complaint, "");
  EXPECT_GT(result.errors, 20u);
}

}  // namespace

}  // namespace backplane::core::test
