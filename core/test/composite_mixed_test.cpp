// SPDX-License-Identifier: Apache-2.0
// Tests mixed dtypes. Core decomposes composites, and lowers the mixed forms of primitives to their
// plain forms (rules/mixed.hpp).
#include <bit>

#include "composite_fixture.hpp"

namespace backplane::core::test {
namespace {

class Mixed : public Composite {
 protected:
  // Makes a bf16 tensor. bf16 must represent each value exactly.
  bph_tensor bf16(const std::vector<int64_t>& shape, const Values& values) {
    std::vector<uint16_t> bits;
    for (const float value : values) bits.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16));
    return host.tensor<uint16_t>(BP_BF16, shape, bits);
  }
  Values read_bf16(const bph_tensor& view, size_t count) {
    Values values;
    for (const uint16_t bits : host.read<uint16_t>(view, count)) {
      values.push_back(std::bit_cast<float>(uint32_t{bits} << 16));
    }
    return values;
  }
  // Runs the operator without BPH_CALL_NO_NATIVE, so that core lowers only what the plugin lacks.
  void run_lowered(uint32_t op, std::vector<bph_tensor> in, std::vector<bph_tensor> outs, const void* attributes) {
    Call call(op, std::move(in), std::move(outs), attributes);
    bph_support support = {};
    support.struct_size = sizeof(support);
    ASSERT_OK(bph_device_supports(host.device, &call, &support, &error));
    EXPECT_EQ(support.path, BPH_PATH_DECOMPOSED);
    const uint64_t before = host.stats().decomposed_executions;
    ASSERT_OK(bph_execute(host.stream, &call, &error));
    EXPECT_EQ(host.stats().decomposed_executions, before + 1);
  }
};

TEST_F(Mixed, AnIndexOf64BitsIsOneOf32Cast) {
  const bph_tensor x = f32({2, 3}, {1, 5, 2, 7, 0, 7});
  const bp_axis_attributes axis = {sizeof(axis), 1};
  const bph_tensor most = out({2, 1}, BP_I64), least = out({2, 1}, BP_I64);
  run_lowered(BP_OP_ARGMAX, {x}, {most}, &axis);
  run_lowered(BP_OP_ARGMIN, {x}, {least}, &axis);
  EXPECT_EQ(host.read<int64_t>(most, 2), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(host.read<int64_t>(least, 2), (std::vector<int64_t>{0, 1}));
  const auto sort = sized(bp_sort_attributes{0, 1, 0, 0});
  const bph_tensor values = out({2, 3}), places = out({2, 3}, BP_I64);
  run_lowered(BP_OP_SORT, {x}, {values, places}, &sort);
  EXPECT_EQ(host.read<float>(values, 6), (Values{1, 2, 5, 0, 7, 7}));
  EXPECT_EQ(host.read<int64_t>(places, 6), (std::vector<int64_t>{0, 2, 1, 1, 0, 2}));
  const auto topk = sized(bp_topk_attributes{0, 1, 0, 0});
  const bph_tensor first = out({2, 1}), where = out({2, 1}, BP_I64);
  run_lowered(BP_OP_TOPK, {x}, {first, where}, &topk);
  EXPECT_EQ(host.read<int64_t>(where, 2), (std::vector<int64_t>{1, 0}));
}

TEST_F(Mixed, ThePlainFormOfAPrimitiveIsNative) {
  const bp_axis_attributes axis = {sizeof(axis), 1};
  Call call(BP_OP_ARGMAX, {f32({1, 3}, {1, 5, 2})}, {out({1, 1}, BP_I32)}, &axis);
  // The flag is legal, because core has a program for the i64 form of argmax.
  call.flags = BPH_CALL_NO_NATIVE;
  ASSERT_OK(bph_execute(host.stream, &call, &error));
  EXPECT_EQ(host.stats().decomposed_executions, 0u);
}

TEST_F(Mixed, AProductTakesHalvesOnEitherSide) {
  const auto attributes = sized(bp_matmul_attributes{0, 0});
  const Values a = {1, 2, 3, 4}, b = {0.5f, 1, 2, -1};
  for (const bool left : {false, true}) {
    const bph_tensor y = out({2, 2});
    run_lowered(BP_OP_MATMUL, {left ? bf16({2, 2}, a) : f32({2, 2}, a), left ? f32({2, 2}, b) : bf16({2, 2}, b)}, {y},
                &attributes);
    EXPECT_EQ(host.read<float>(y, 4), (Values{4.5f, -1, 9.5f, -1}));
  }
}

// bf16 cannot represent the values of gamma and beta exactly. The statistics are f32.
TEST_F(Mixed, ANormWithParametersOfF32) {
  const Values x = {1, 2, 4, 8, -1, 0, 1, 2}, gamma = {1.001f, 1, 1, 1}, beta = {0, 0.0001f, 0, 0};
  const auto attributes = sized(bp_norm_attributes{0, 2, 1e-3f, 0});
  const bph_tensor y = out({2, 4}, BP_BF16), mean = out({2, 1}), rstd = out({2, 1});
  run(BP_OP_LAYER_NORM, {bf16({2, 4}, x), f32({4}, gamma), f32({4}, beta)}, {y, mean, rstd}, &attributes);
  expect_near(mean, {3.75, 0.5}, 1e-6);
  expect_near(rstd, {1 / std::sqrt(7.1875 + 1e-3), 1 / std::sqrt(1.25 + 1e-3)}, 1e-6);
  EXPECT_NEAR(read_bf16(y, 8)[0], (1 - 3.75f) / std::sqrt(7.1885f) * 1.001f, 0x1p-8f);
}

TEST_F(Mixed, AdamwKeepsItsStateInF32) {
  const auto attributes = sized(bp_adamw_attributes{0, 0.9f, 0.999f, 1e-8f, 0, 0});
  const bph_tensor p = bf16({2}, {1, 2}), m = f32({2}, {0, 0}), v = f32({2}, {0, 0});
  const auto bits = [](float value) { return uint64_t{std::bit_cast<uint32_t>(value)}; };
  run(BP_OP_ADAMW, {bf16({2}, {1, -1})}, {p, m, v}, &attributes, {bits(0.5f), bits(0.1f), bits(0.001f)});
  expect_near(m, {0.1, -0.1}, 1e-7);
  expect_near(v, {0.001, 0.001}, 2e-8);  // 1 - beta2 is inexact, because beta2 is 0.999 rounded to f32
  EXPECT_EQ(read_bf16(p, 2), (Values{0.5f, 2.5f}));
}

TEST_F(Mixed, AttentionOverACacheOfHalves) {
  const auto attributes = sized(bp_attention_attributes{0, 0, 1.0f, 0, 0, 0});
  const bph_tensor q = f32({1, 1, 1, 2}, {1, 0}), k = bf16({1, 1, 2, 2}, {0, 0, 1, 0});
  const bph_tensor v = bf16({1, 1, 2, 1}, {1, 2}), mask = bf16({1, 1, 1, 2}, {0, 1});
  const bph_tensor y = out({1, 1, 1, 1}), sum = out({1, 1, 1});
  run(BP_OP_ATTENTION, {q, k, v, mask}, {y, sum}, &attributes);
  const double e = std::exp(2.0);
  expect_near(y, {(1 + 2 * e) / (1 + e)}, 1e-6);
  expect_near(sum, {std::log(1 + e)}, 1e-6);
}

TEST_F(Mixed, QuantizedWeightsWithAMinimumAndScalesOfTheirOwn) {
  const auto attributes = sized(bp_quantized_matmul_attributes{0, 8, 2, 0});
  const bph_tensor w = host.tensor<int8_t>(BP_I8, {1, 4}, std::vector<int8_t>{1, 2, 3, 4});
  const bph_tensor absent = {}, y = out({1, 1});
  run(BP_OP_QUANTIZED_MATMUL,
      {f32({1, 4}, {1, 1, 1, 1}), w, bf16({1, 2}, {0.5f, 2}), absent, absent, absent, absent,
       bf16({1, 2}, {-1, 0.25f})},
      {y}, &attributes);
  expect_near(y, {0.5 * 3 - 2 + 2 * 7 + 0.5}, 1e-6);
  // If `a` is u8, core sums the products exactly in integers before it applies the scales.
  const auto whole = sized(bp_quantized_matmul_attributes{0, 8, 0, 0});
  const bph_tensor a = host.tensor<uint8_t>(BP_U8, {1, 4}, std::vector<uint8_t>{1, 2, 3, 4});
  const bph_tensor zero = host.tensor<uint8_t>(BP_U8, {1}, std::vector<uint8_t>{1});
  run(BP_OP_QUANTIZED_MATMUL, {a, w, f32({1}, {2}), absent, f32({1}, {0.5f}), zero, absent, f32({1}, {10})}, {y},
      &whole);
  expect_near(y, {0.5 * (0 * 12 + 1 * 14 + 2 * 16 + 3 * 18)}, 1e-5);
}

TEST_F(Mixed, SoftmaxOfHalvesInF32) {
  const bp_axis_attributes axis = {sizeof(axis), 1};
  const bph_tensor y = out({1, 2});
  run(BP_OP_SOFTMAX, {bf16({1, 2}, {0, 1})}, {y}, &axis);
  expect_near(y, {1 / (1 + std::exp(1.0)), 1 / (1 + std::exp(-1.0))}, 1e-6);
}

// Core must refuse an axis that is too long for i32 indices. An i32 index would wrap, and core
// computes an i64 index by a cast from i32.
TEST_F(Mixed, IndicesOf32BitsDoNotReachThroughMore) {
  const bp_axis_attributes axis = {sizeof(axis), 0};
  const auto sort = sized(bp_sort_attributes{0, 0, 0, 0});
  const auto topk = sized(bp_topk_attributes{0, 0, 0, 0});
  const auto view = [](uint32_t dtype, int64_t extent) {
    bph_tensor tensor = {};
    tensor.dtype = static_cast<uint16_t>(dtype);
    tensor.rank = 1;
    tensor.shape[0] = extent;
    tensor.strides[0] = 1;
    return tensor;
  };
  constexpr int64_t kMany = int64_t{1} << 31;
  for (const uint32_t index : {BP_I32, BP_I64}) {
    const auto refused = [&](uint32_t op, int64_t k, bool values, const void* attributes) {
      std::vector<bph_tensor> outs;
      if (values) outs.push_back(view(BP_U8, k));
      outs.push_back(view(index, k));
      Call call(op, {view(BP_U8, kMany)}, outs, attributes);
      bph_support support = {};
      support.struct_size = sizeof(support);
      EXPECT_FAILS(bph_device_supports(host.device, &call, &support, &error), BP_UNSUPPORTED, "indices of i32");
    };
    refused(BP_OP_ARGMAX, 1, false, &axis);
    refused(BP_OP_SORT, kMany, true, &sort);
    refused(BP_OP_TOPK, 3, true, &topk);
  }
}

// The second target equals ignore_index, so its loss is 0.
TEST_F(Mixed, TargetsOf64Bits) {
  const auto attributes = sized(bp_cross_entropy_attributes{0, BP_REDUCTION_NONE, -100, 0, 0});
  const bph_tensor target = host.tensor<int64_t>(BP_I64, {2}, std::vector<int64_t>{1, -100});
  const bph_tensor loss = out({2});
  run(BP_OP_CROSS_ENTROPY, {f32({2, 2}, {0, 1, 3, 4}), target}, {loss}, &attributes);
  expect_near(loss, {std::log(1 + std::exp(-1.0)), 0}, 1e-6);
}

}  // namespace
}  // namespace backplane::core::test
