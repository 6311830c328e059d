// SPDX-License-Identifier: Apache-2.0
// Tests calls whose scalars are in device memory (BP_OP_FLAG_DEVICE_SCALARS).
#include <cmath>

#include "host.hpp"

namespace backplane::core::test {
namespace {

using Floats = std::vector<float>;

// A call whose scalars are views.
struct DeviceCall : Call {
  DeviceCall(uint32_t operator_id, std::vector<bph_tensor> in, std::vector<bph_tensor> out,
             std::vector<bph_tensor> scalar_list, const void* attribute_struct = nullptr)
      : Call(operator_id, std::move(in), std::move(out), attribute_struct), scalar_views(std::move(scalar_list)) {
    flags = BP_OP_FLAG_DEVICE_SCALARS;
    scalars = nullptr;
    scalar_tensors = scalar_views.data();
    scalar_count = static_cast<uint32_t>(scalar_views.size());
  }

  std::vector<bph_tensor> scalar_views;
};

void write(Host& host, const bph_tensor& view, float value) {
  EXPECT_OK(bph_copy_in(host.stream, view.buffer, view.offset, &value, sizeof(value), BPH_COPY_SOURCE_FREE, &error));
}

TEST(DeviceScalars, AreReadWhenTheWorkRuns) {
  Host host(REFERENCE_PLUGIN);
  const bph_tensor value = host.tensor<float>(BP_F32, {}, {1});
  const bph_tensor half = host.tensor<float>(BP_F32, {}, {0.5});
  const bph_tensor out = host.tensor<float>(BP_F32, {3}, {0, 0, 0});
  const DeviceCall fill(BP_OP_FILL, {}, {out}, {value});
  const Call step(BP_OP_ADD, {value, half}, {value});
  EXPECT_OK(bph_execute(host.stream, &fill, &error));
  EXPECT_EQ(host.read<float>(out, 3), (Floats{1, 1, 1}));
  const uint64_t plans = host.stats().plans_created;
  for (int i = 0; i < 3; ++i) {
    EXPECT_OK(bph_execute(host.stream, &step, &error));
    EXPECT_OK(bph_execute(host.stream, &fill, &error));
  }
  EXPECT_EQ(host.read<float>(out, 3), (Floats{2.5, 2.5, 2.5})) << "earlier work computes the value";
  EXPECT_EQ(host.stats().plans_created, plans + 1) << "the values are no part of the plan";
}

// The step counter and everything that depends on it stay on the device.
TEST(DeviceScalars, ATrainingStepNeedsNoWait) {
  Host host(REFERENCE_PLUGIN);
  bp_adamw_attributes attributes = {};
  attributes.struct_size = sizeof(attributes);
  attributes.beta1 = 0.9f;
  attributes.beta2 = 0.99f;
  attributes.epsilon = 1e-8f;
  attributes.weight_decay = 0.01f;
  const Floats start = {1, -2, 3, 0.5};
  const bph_tensor gradient = host.tensor<float>(BP_F32, {4}, {0.1f, 0.2f, -0.3f, 4});
  const auto state = [&] {
    return std::vector<bph_tensor>{host.tensor<float>(BP_F32, {4}, start), host.tensor<float>(BP_F32, {4}, Floats(4)),
                                   host.tensor<float>(BP_F32, {4}, Floats(4))};
  };
  const std::vector<bph_tensor> on_device = state(), on_host = state();
  // The scalars are the learning rate and the corrections 1 - beta^t, three values of one buffer.
  const bph_tensor values = host.tensor<float>(BP_F32, {3}, {0.01f, 0, 0});
  const bph_tensor powers = host.tensor<float>(BP_F32, {2}, {1, 1});
  const bph_tensor betas = host.tensor<float>(BP_F32, {2}, {attributes.beta1, attributes.beta2});
  const bph_tensor ones = host.tensor<float>(BP_F32, {2}, {1, 1});
  bph_tensor corrections = values;
  corrections.shape[0] = 2;
  corrections.offset = 4;
  std::vector<bph_tensor> scalars(3, values);
  for (uint32_t i = 0; i < 3; ++i) {
    scalars[i].rank = 0;
    scalars[i].offset = 4 * i;
  }
  const Call multiply(BP_OP_MUL, {powers, betas}, {powers});
  const Call complement(BP_OP_SUB, {ones, powers}, {corrections});
  const DeviceCall update(BP_OP_ADAMW, {gradient}, on_device, scalars, &attributes);
  Call same(BP_OP_ADAMW, {gradient}, on_host, &attributes, {0, 0, 0});
  for (int t = 1; t <= 3; ++t) {
    EXPECT_OK(bph_execute(host.stream, &multiply, &error));
    EXPECT_OK(bph_execute(host.stream, &complement, &error));
    EXPECT_OK(bph_execute(host.stream, &update, &error));
    const Floats used = host.read<float>(values, 3);
    for (uint32_t i = 0; i < 3; ++i) std::memcpy(&same.scalar_values[i], &used[i], sizeof(float));
    EXPECT_NEAR(used[1], 1 - std::pow(attributes.beta1, t), 1e-6);
    EXPECT_OK(bph_execute(host.stream, &same, &error));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(host.read<float>(on_device[i], 4), host.read<float>(on_host[i], 4));
  }
  EXPECT_NE(host.read<float>(on_device[0], 4), start);
  EXPECT_EQ(host.stats().decomposed_executions, 6u) << "the reference has no adamw of its own";
}

// If core decomposes the call, the step that runs philox reads the scalars of the call.
TEST(DeviceScalars, RandomNumbersFollowACounterOnTheDevice) {
  Host host(REFERENCE_PLUGIN);
  const bph_tensor values = host.tensor<int64_t>(BP_I64, {3}, {42, 5, 0});
  const bph_tensor out = host.tensor<float>(BP_F32, {7}, Floats(7)), same = host.tensor<float>(BP_F32, {7}, Floats(7));
  std::vector<bph_tensor> scalars(3, values);
  for (uint32_t i = 0; i < 3; ++i) {
    scalars[i].rank = 0;
    scalars[i].offset = 8 * i;
  }
  const bph_tensor used = host.tensor<int64_t>(BP_I64, {}, {2});
  const DeviceCall draw(BP_OP_UNIFORM, {}, {out}, scalars);
  const Call advance(BP_OP_ADD, {scalars[1], used}, {scalars[1]});
  Floats before;
  for (const uint64_t counter : {5, 7, 9}) {
    EXPECT_OK(bph_execute(host.stream, &draw, &error));
    const Call drawn(BP_OP_UNIFORM, {}, {same}, nullptr, {42, counter, 0});
    EXPECT_OK(bph_execute(host.stream, &drawn, &error));
    const Floats numbers = host.read<float>(out, 7);
    EXPECT_EQ(numbers, host.read<float>(same, 7)) << counter;
    EXPECT_NE(numbers, before);
    before = numbers;
    EXPECT_OK(bph_execute(host.stream, &advance, &error));
  }
}

TEST(DeviceScalars, TheFallbackDeviceReadsThemFromTheHost) {
  bph_device_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.fallback = BPH_FALLBACK_ALLOW;
  Host host(DENSE_PLUGIN, &desc, REFERENCE_DIRECTORY);
  const bph_tensor values = host.tensor<float>(BP_F32, {2}, {5, 0});
  std::vector<bph_tensor> scalars(2, values);
  scalars[0].rank = scalars[1].rank = 0;
  scalars[1].offset = 4;
  write(host, scalars[1], 2);
  const bph_tensor out = host.tensor<float>(BP_F32, {3}, {0, 0, 0});
  const bp_axis_attributes axis = {sizeof(axis), 0};
  const DeviceCall call(BP_OP_IOTA, {}, {out}, scalars, &axis);
  bph_support support = {};
  support.struct_size = sizeof(support);
  EXPECT_OK(bph_device_supports(host.device, &call, &support, &error));
  EXPECT_EQ(support.path, BPH_PATH_FALLBACK);
  EXPECT_OK(bph_execute(host.stream, &call, &error));
  EXPECT_EQ(host.read<float>(out, 3), (Floats{5, 7, 9}));
  EXPECT_EQ(host.stats().fallback_executions, 1u);
  DeviceCall far = {BP_OP_IOTA, {}, {out}, scalars, &axis};
  far.scalar_views[0].offset = 8;
  EXPECT_FAILS(bph_execute(host.stream, &far, &error), BP_INVALID_ARGUMENT, "scalar 0 touches bytes 0 to 4");
}

TEST(DeviceScalars, WrongScalarsAreRefused) {
  Host host(REFERENCE_PLUGIN);
  Host other(REFERENCE_PLUGIN);
  const bph_tensor value = host.tensor<float>(BP_F32, {2}, {7, 8});
  const bph_tensor foreign = other.tensor<float>(BP_F32, {}, {7});
  const bph_tensor out = host.tensor<float>(BP_F32, {4}, {1, 2, 3, 4});
  bph_tensor good = value;
  good.rank = 0;
  DeviceCall call(BP_OP_FILL, {}, {out}, {good});
  bph_tensor& scalar = call.scalar_views[0];
  const auto refused = [&](bp_status status, const char* text, auto&& change) {
    scalar = good;
    change(scalar);
    EXPECT_FAILS(bph_execute(host.stream, &call, &error), status, text);
  };
  // The plan cache lacks the descriptor in the first iteration, and contains it in the second.
  for (int known = 0; known < 2; ++known) {
    refused(BP_UNSUPPORTED, "scalar 0 is i32", [](bph_tensor& t) { t.dtype = BP_I32; });
    refused(BP_UNSUPPORTED, "flags such as IMMEDIATE", [](bph_tensor& t) { t.flags = BPH_TENSOR_IMMEDIATE; });
    refused(BP_UNSUPPORTED, "reserved 0x1", [](bph_tensor& t) { t.reserved = 1; });
    refused(BP_UNSUPPORTED, "alias 1", [](bph_tensor& t) { t.alias = 1; });
    refused(BP_INVALID_ARGUMENT, "scalar 0 has rank 1", [](bph_tensor& t) { t.rank = 1; });
    refused(BP_INVALID_ARGUMENT, "the buffer is null", [](bph_tensor& t) { t.buffer = nullptr; });
    refused(BP_INVALID_ARGUMENT, "scalar 0 lies on", [&](bph_tensor& t) { t.buffer = foreign.buffer; });
    refused(BP_UNSUPPORTED, "aligned to 2 bytes; f32 needs 4", [](bph_tensor& t) { t.offset = 2; });
    refused(BP_INVALID_ARGUMENT, "scalar 0 touches bytes", [](bph_tensor& t) { t.offset = 8; });
    refused(BP_INVALID_ARGUMENT, "scalar 0 touches bytes", [](bph_tensor& t) { t.offset = UINT64_MAX - 3; });
    refused(BP_INVALID_ARGUMENT, "output 0 overlaps scalar 0", [&](bph_tensor& t) {
      t.buffer = out.buffer;
      t.offset = 12;
    });
    EXPECT_EQ(host.read<float>(out, 4), known == 0 ? (Floats{1, 2, 3, 4}) : (Floats{7, 7, 7, 7}));
    scalar = good;
    EXPECT_OK(bph_execute(host.stream, &call, &error));
  }
  const uint64_t bits = 0;
  call.scalars = &bits;
  EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_INVALID_ARGUMENT, "either scalars");
  call.scalars = nullptr;
  call.scalar_tensors = nullptr;
  EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_INVALID_ARGUMENT, "scalar_tensors");
  call.scalar_tensors = &scalar;
  call.scalar_count = 2;
  EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_UNSUPPORTED, "takes 1 to 1 scalars, 2 given");
  Call without(BP_OP_FILL, {}, {out}, nullptr, {0});
  without.scalar_tensors = &scalar;
  EXPECT_FAILS(bph_execute(host.stream, &without, &error), BP_INVALID_ARGUMENT, "either scalars");
  EXPECT_EQ(host.read<float>(out, 4), (Floats{7, 7, 7, 7}));
  // A view between the elements of the output shares no byte with the output.
  bph_tensor gaps = out;
  gaps.shape[0] = 2;
  gaps.strides[0] = 2;
  bph_tensor between = out;
  between.rank = 0;
  between.offset = 4;
  write(host, between, 9);
  const DeviceCall interleaved(BP_OP_FILL, {}, {gaps}, {between});
  EXPECT_OK(bph_execute(host.stream, &interleaved, &error));
  EXPECT_EQ(host.read<float>(out, 4), (Floats{9, 9, 9, 7}));
}

}  // namespace
}  // namespace backplane::core::test
