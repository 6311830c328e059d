// SPDX-License-Identifier: Apache-2.0
// Makes each allocation fail while a device is opened and operators are executed: first alone, then
// together with all later allocations. Covers plans, any-size classes, staging, fallback and
// decomposition.
#include <backplane/backplane.h>
#include <gtest/gtest.h>

#include <string>

#include "api/dlpack.hpp"
#include "fault_points.hpp"
#include "owned.hpp"

namespace backplane::core::test {

namespace {

// A fixture with one device of a plugin and three buffers.
class ExhaustionDispatch : public ::testing::Test {
 protected:
  void load(const char* path, const char* search_path) {
    bp_error error = {};
    error.struct_size = sizeof(error);
    bph_registry_desc desc = {};
    desc.struct_size = sizeof(desc);
    desc.flags = BPH_REGISTRY_NO_DEFAULT_PATHS;
    desc.search_path = search_path;
    ASSERT_EQ(bph_registry_create(&desc, registry_.out(), &error), BP_OK) << error.message;
    ASSERT_EQ(bph_plugin_load(registry_, path, plugin_.out(), &error), BP_OK) << error.message;
  }

  // `most` limits the number of points at which the sweep injects a failure. A limit of 0 means no
  // limit.
  template <class Body>
  fault_points::Result sweep(const char* what, uint32_t fallback, uint64_t most, Body body) {
    return fault_points::sweep(
        what, fault_points::memory,
        [&]() -> bp_status {
          bph_device_desc desc = {};
          desc.struct_size = sizeof(desc);
          desc.fallback = fallback;
          Owned<bph_device> device;
          Owned<bph_stream> stream;
          Owned<bph_buffer> buffers[3];
          bp_status status = bph_plugin_device_open(plugin_, 0, &desc, device.out(), nullptr);
          if (status == BP_OK) status = bph_stream_create(device, nullptr, stream.out(), nullptr);
          bph_buffer_desc buffer = {};
          buffer.struct_size = sizeof(buffer);
          buffer.bytes = 4096;
          buffer.stream = stream;
          for (Owned<bph_buffer>& made : buffers) {
            if (status == BP_OK) status = bph_buffer_create(device, &buffer, made.out(), nullptr);
          }
          if (status == BP_OK) status = body(device, stream, buffers);
          if (status == BP_OK) status = bph_stream_wait(stream, BP_WAIT_FOREVER, nullptr);
          return status;
        },
        most);
  }

  // Executes op(a, b) or op(a) on views of `rows` x 4 elements, whose rows start `pitch` elements
  // apart.
  static bp_status execute(bph_stream* stream, const Owned<bph_buffer>* buffers, uint32_t op, int64_t rows,
                           int64_t pitch, uint64_t flags = 0) {
    bph_tensor views[3] = {};
    for (int i = 0; i < 3; ++i) {
      views[i].buffer = buffers[i];
      views[i].dtype = BP_F32;
      views[i].rank = 2;
      views[i].shape[0] = rows;
      views[i].shape[1] = 4;
      views[i].strides[0] = pitch;
      views[i].strides[1] = 1;
    }
    bph_call call = {};
    call.struct_size = sizeof(call);
    call.op = op;
    call.flags = flags;
    call.inputs = views;
    call.input_count = op == BP_OP_SUB ? 2 : 1;
    call.outputs = views + 2;
    call.output_count = 1;
    return bph_execute(stream, &call, nullptr);
  }

 private:
  Owned<bph_registry> registry_;
  Owned<bph_plugin> plugin_;
};

TEST_F(ExhaustionDispatch, PlansAndClasses) {
  load(NULL_PLUGIN, "");
  const auto result = sweep("plans", BPH_FALLBACK_ERROR, 0,
                            [](bph_device* device, bph_stream* stream, const Owned<bph_buffer>* buffers) {
                              bp_status status = BP_OK;
                              for (int64_t rows = 1; rows < 6 && status == BP_OK; ++rows)
                                status = execute(stream, buffers, BP_OP_SUB, rows, 4);
                              if (status == BP_OK) status = execute(stream, buffers, BP_OP_NEG, 3, 8);
                              if (status == BP_OK) status = bph_device_trim(device, 1, nullptr, nullptr);
                              if (status == BP_OK) status = execute(stream, buffers, BP_OP_NEG, 3, 8);
                              return status;
                            });
  EXPECT_EQ(result.complaint, "");
  EXPECT_GT(result.errors, 10u);
}

TEST_F(ExhaustionDispatch, Staging) {
  load(DENSE_PLUGIN, "");
  const auto result =
      sweep("staging", BPH_FALLBACK_ERROR, 0, [](bph_device*, bph_stream* stream, const Owned<bph_buffer>* buffers) {
        return execute(stream, buffers, BP_OP_SUB, 5, 9);
      });
  EXPECT_EQ(result.complaint, "");
  EXPECT_GT(result.errors, 10u);
}

TEST_F(ExhaustionDispatch, Decomposition) {
  load(NULL_PLUGIN, "");
  const auto result = sweep("decomposition", BPH_FALLBACK_ERROR, 0,
                            [](bph_device* device, bph_stream* stream, const Owned<bph_buffer>* buffers) {
                              bp_status status = BP_OK;
                              for (int64_t rows = 1; rows < 4 && status == BP_OK; ++rows)
                                status = execute(stream, buffers, BP_OP_SILU, rows, 4, BPH_CALL_NO_NATIVE);
                              if (status == BP_OK) status = bph_device_trim(device, 1, nullptr, nullptr);
                              if (status == BP_OK)
                                status = execute(stream, buffers, BP_OP_SILU, 3, 8, BPH_CALL_NO_NATIVE);
                              return status;
                            });
  EXPECT_EQ(result.complaint, "");
  EXPECT_GT(result.errors, 30u);
}

// Imports a tensor, exports a view of the import, and imports this view again. The producer's deleter
// must run exactly once after each import, and never after a failure.
TEST_F(ExhaustionDispatch, Dlpack) {
  load(REFERENCE_PLUGIN, "");
  alignas(64) float data[4] = {1, 2, 3, 4};
  int64_t shape[] = {4};
  int imported = 0, deleted = 0;
  DLManagedTensorVersioned producer = {};
  producer.version = {dlpack::kMajor, 0};
  producer.manager_ctx = &deleted;
  producer.deleter = [](DLManagedTensorVersioned* self) { ++*static_cast<int*>(self->manager_ctx); };
  producer.dl_tensor = {data, {dlpack::kCpu, 0}, 1, {2, 32, 1}, shape, nullptr, 0};
  const auto result =
      sweep("dlpack", BPH_FALLBACK_ERROR, 0, [&](bph_device* device, bph_stream* stream, const Owned<bph_buffer>*) {
        bph_tensor first = {}, second = {};
        bp_status status = bph_dlpack_import(device, &producer, stream, &first, nullptr);
        if (status != BP_OK) return status;
        ++imported;
        DLManagedTensorVersioned* managed = nullptr;
        status = bph_dlpack_export(&first, stream, nullptr, &managed, nullptr);
        bph_buffer_release(first.buffer);
        if (status != BP_OK) return status;
        status = bph_dlpack_import(device, managed, stream, &second, nullptr);
        if (status == BP_OK) {
          bph_buffer_release(second.buffer);
        } else {
          managed->deleter(managed);
        }
        return status;
      });
  EXPECT_EQ(result.complaint, "");
  EXPECT_GT(result.errors, 5u);
  EXPECT_GT(imported, 0);
  EXPECT_EQ(deleted, imported);
}

// Executes adamw and fill with scalars in device memory. Core decomposes both calls.
TEST_F(ExhaustionDispatch, DeviceScalars) {
  load(NULL_PLUGIN, "");
  const auto result = sweep("device scalars", BPH_FALLBACK_ERROR, 0,
                            [](bph_device*, bph_stream* stream, const Owned<bph_buffer>* buffers) {
                              bph_tensor views[4] = {}, scalars[3] = {};
                              for (int i = 0; i < 4; ++i) {
                                views[i].buffer = buffers[0];
                                views[i].offset = static_cast<uint64_t>(i) * 256;
                                views[i].dtype = BP_F32;
                                views[i].rank = 1;
                                views[i].shape[0] = 4;
                                views[i].strides[0] = 1;
                              }
                              for (bph_tensor& scalar : scalars) {
                                scalar.buffer = buffers[1];
                                scalar.dtype = BP_F32;
                              }
                              bp_adamw_attributes attributes = {};
                              attributes.struct_size = sizeof(attributes);
                              bph_call call = {};
                              call.struct_size = sizeof(call);
                              call.op = BP_OP_ADAMW;
                              call.flags = BP_OP_FLAG_DEVICE_SCALARS | BPH_CALL_NO_NATIVE;
                              call.attributes = &attributes;
                              call.inputs = views;
                              call.input_count = 1;
                              call.outputs = views + 1;
                              call.output_count = 3;
                              call.scalar_tensors = scalars;
                              call.scalar_count = 3;
                              return bph_execute(stream, &call, nullptr);
                            });
  EXPECT_EQ(result.complaint, "");
  EXPECT_GT(result.errors, 30u);
}

TEST_F(ExhaustionDispatch, Fallback) {
  load(DENSE_PLUGIN, REFERENCE_DIRECTORY);
  const auto result =
      sweep("fallback", BPH_FALLBACK_ALLOW, 150, [](bph_device*, bph_stream* stream, const Owned<bph_buffer>* buffers) {
        return execute(stream, buffers, BP_OP_EXP, 5, 9);
      });
  EXPECT_EQ(result.complaint, "");
  EXPECT_GT(result.errors, 10u);
}

}  // namespace

}  // namespace backplane::core::test
