// SPDX-License-Identifier: Apache-2.0
// Fixture for tests of the host API: a plugin loaded by path, a device, a stream, and buffers
// with data.
#pragma once

#include <backplane/backplane.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "expect.hpp"
#include "owned.hpp"

namespace backplane::core::test {

// A registry without default directories, and one device of the plugin at `path`.
class Host {
 public:
  explicit Host(const std::string& path, const bph_device_desc* desc = nullptr, const char* search_path = "") {
    bph_registry_desc registry_desc = {};
    registry_desc.struct_size = sizeof(registry_desc);
    registry_desc.flags = BPH_REGISTRY_NO_DEFAULT_PATHS;
    registry_desc.search_path = search_path;
    registry_desc.log = [](void* context, int32_t, const char* message) {
      static_cast<std::vector<std::string>*>(context)->push_back(message);
    };
    registry_desc.log_context = &log;
    EXPECT_OK(bph_registry_create(&registry_desc, registry.out(), &error));
    EXPECT_OK(bph_plugin_load(registry, path.c_str(), plugin.out(), &error));
    EXPECT_OK(bph_plugin_device_open(plugin, 0, desc, device.out(), &error));
    EXPECT_OK(bph_stream_create(device, nullptr, stream.out(), &error));
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  bph_buffer* buffer(uint64_t bytes, uint32_t kind = BP_MEMORY_DEVICE) {
    bph_buffer_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.kind = kind;
    desc.bytes = bytes;
    desc.stream = stream;
    EXPECT_OK(bph_buffer_create(device, &desc, buffers_.emplace_back().out(), &error));
    return buffers_.back();
  }
  // Makes a dense tensor with `values`.
  template <class T>
  bph_tensor tensor(uint32_t dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
    bph_tensor view = empty(dtype, shape, values.size() * sizeof(T));
    EXPECT_OK(bph_copy_in(stream, view.buffer, 0, values.data(), values.size() * sizeof(T), 0, &error));
    EXPECT_OK(bph_stream_wait(stream, BP_WAIT_FOREVER, &error));
    return view;
  }
  bph_tensor empty(uint32_t dtype, std::vector<int64_t> shape, uint64_t bytes) {
    bph_tensor view = {};
    view.dtype = static_cast<uint16_t>(dtype);
    view.rank = static_cast<uint8_t>(shape.size());
    int64_t stride = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      view.shape[d] = shape[d];
      view.strides[d] = stride;
      stride *= shape[d];
    }
    if (bytes != 0) view.buffer = buffer(bytes);
    return view;
  }
  // Reads the first `count` elements of the tensor's buffer.
  template <class T>
  std::vector<T> read(const bph_tensor& view, size_t count) {
    std::vector<T> values(count);
    EXPECT_OK(bph_copy_out(stream, values.data(), view.buffer, 0, count * sizeof(T), 0, &error));
    return values;
  }
  bph_stats stats() {
    bph_stats stats = {};
    stats.struct_size = sizeof(stats);
    EXPECT_OK(bph_device_stats(device, &stats, &error));
    return stats;
  }

  // The destructor releases the objects in the reverse order of their declarations. The log comes
  // first, because a release can write a line.
  std::vector<std::string> log;
  Owned<bph_registry> registry;
  Owned<bph_plugin> plugin;
  Owned<bph_device> device;
  Owned<bph_stream> stream;

 private:
  std::vector<Owned<bph_buffer>> buffers_;
};

// A bph_call that owns its arrays.
struct Call : bph_call {
  Call(uint32_t operator_id, std::vector<bph_tensor> in, std::vector<bph_tensor> out,
       const void* attribute_struct = nullptr, std::vector<uint64_t> scalar_bits = {})
      : bph_call{}, input_views(std::move(in)), output_views(std::move(out)), scalar_values(std::move(scalar_bits)) {
    struct_size = sizeof(bph_call);
    op = operator_id;
    attributes = attribute_struct;
    inputs = input_views.data();
    outputs = output_views.data();
    scalars = scalar_values.data();
    input_count = static_cast<uint32_t>(input_views.size());
    output_count = static_cast<uint32_t>(output_views.size());
    scalar_count = static_cast<uint32_t>(scalar_values.size());
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  std::vector<bph_tensor> input_views, output_views;
  std::vector<uint64_t> scalar_values;
};

}  // namespace backplane::core::test
