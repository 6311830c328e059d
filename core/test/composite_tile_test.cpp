// SPDX-License-Identifier: Apache-2.0
// Compares the results of a batch that needs several tiles with the results of a single image that needs one tile. The
// batch has 32 equal images, whose im2col data occupy 75 MB. The data are small whole numbers, so every sum is exact.
#include "composite_fixture.hpp"

namespace backplane::core::test {
namespace {

constexpr int64_t kImages = 32, kChannels = 16, kSide = 64, kOutputs = 2, kTaps = 9;
constexpr size_t kPlane = static_cast<size_t>(kSide * kSide);

class Tiles : public Composite {
 protected:
  static Values repeated(const Values& image) {
    Values all;
    for (int64_t i = 0; i < kImages; ++i) all.insert(all.end(), image.begin(), image.end());
    return all;
  }
  Values whole_numbers(size_t count) {
    Values values = numbers(count);
    for (float& value : values) value = std::floor(value * 4);
    return values;
  }
  static bp_conv_attributes conv_attributes() {
    bp_conv_attributes attributes = sized(bp_conv_attributes{});
    attributes.spatial_rank = 2;
    attributes.groups = 1;
    for (int d = 0; d < 2; ++d) {
      attributes.stride[d] = attributes.dilation[d] = attributes.pad_begin[d] = attributes.pad_end[d] = 1;
    }
    return attributes;
  }
  // Runs `op` on one image and on all images. The output for each image of the second run must
  // equal the output of the first run.
  void check(uint32_t op, const Values& image, int64_t from, int64_t to, const bph_tensor* weight,
             const void* attributes) {
    const bph_tensor one = out({1, to, kSide, kSide}), all = out({kImages, to, kSide, kSide});
    std::vector<bph_tensor> in = {f32({1, from, kSide, kSide}, image)};
    if (weight != nullptr) in.push_back(*weight);
    run(op, in, {one}, attributes);
    in[0] = f32({kImages, from, kSide, kSide}, repeated(image));
    run(op, in, {all}, attributes);
    const size_t count = static_cast<size_t>(to) * kPlane;
    EXPECT_TRUE(host.read<float>(all, count * kImages) == repeated(host.read<float>(one, count)));
    EXPECT_LT(host.stats().workspace_bytes, 110u << 20);
  }
};

TEST_F(Tiles, OfAConvolution) {
  const bp_conv_attributes attributes = conv_attributes();
  const bph_tensor w = f32({kOutputs, kChannels, 3, 3}, whole_numbers(kOutputs * kChannels * kTaps));
  check(BP_OP_CONV, whole_numbers(kChannels * kPlane), kChannels, kOutputs, &w, &attributes);
  check(BP_OP_CONV_BWD_INPUT, whole_numbers(kOutputs * kPlane), kOutputs, kChannels, &w, &attributes);
}

TEST_F(Tiles, OfAWeightGradientAddUp) {
  const bp_conv_attributes attributes = conv_attributes();
  const Values x = whole_numbers(kChannels * kPlane), dy = whole_numbers(kOutputs * kPlane);
  const bph_tensor one = out({kOutputs, kChannels, 3, 3}), all = out({kOutputs, kChannels, 3, 3});
  run(BP_OP_CONV_BWD_WEIGHT, {f32({1, kChannels, kSide, kSide}, x), f32({1, kOutputs, kSide, kSide}, dy)}, {one},
      &attributes);
  run(BP_OP_CONV_BWD_WEIGHT,
      {f32({kImages, kChannels, kSide, kSide}, repeated(x)), f32({kImages, kOutputs, kSide, kSide}, repeated(dy))},
      {all}, &attributes);
  Values wanted = host.read<float>(one, kOutputs * kChannels * kTaps);
  for (float& value : wanted) value *= kImages;
  EXPECT_EQ(host.read<float>(all, wanted.size()), wanted);
}

TEST_F(Tiles, OfAPoolWithItsIndex) {
  bp_pool_attributes attributes = sized(bp_pool_attributes{});
  attributes.spatial_rank = 2;
  for (int d = 0; d < 2; ++d) {
    attributes.kernel[d] = 3;
    attributes.stride[d] = attributes.dilation[d] = attributes.pad_begin[d] = attributes.pad_end[d] = 1;
  }
  const Values image = whole_numbers(kChannels * kPlane);
  const std::vector<int64_t> shape = {kImages, kChannels, kSide, kSide};
  const bph_tensor y = out(shape), index = out(shape, BP_I32);
  run(BP_OP_MAX_POOL, {f32(shape, repeated(image))}, {y, index}, &attributes);
  const Values greatest = host.read<float>(y, count_of(shape));
  const std::vector<int32_t> indices = host.read<int32_t>(index, count_of(shape));
  for (size_t i = 0; i < greatest.size(); i += 97) {
    const size_t from = i % image.size() / kPlane * kPlane;
    ASSERT_EQ(greatest[i], image[from + static_cast<size_t>(indices[i])]) << i;
  }
}

// The weights of 5000 columns, as f32, occupy 82 MB. All elements of row c of the weights are c % 16,
// and the row's scale is 1 + c % 3. A wrong tile therefore gives wrong column sums.
TEST_F(Tiles, OfAQuantizedProductWithItsOperandsOfColumns) {
  constexpr int64_t kDepth = 4096, kColumns = 5000, kBlock = 1024;
  const auto attributes = sized(bp_quantized_matmul_attributes{0, 4, kBlock, 0});
  std::vector<uint8_t> weights(static_cast<size_t>(kColumns * kDepth / 2));
  Values scales(static_cast<size_t>(kColumns * kDepth / kBlock)), biases(static_cast<size_t>(kColumns));
  std::vector<double> wanted(biases.size());
  for (size_t c = 0; c < biases.size(); ++c) {
    const size_t weight = c % 16, scale = 1 + c % 3;
    std::fill_n(weights.begin() + static_cast<int64_t>(c) * kDepth / 2, kDepth / 2, static_cast<uint8_t>(weight * 17));
    std::fill_n(scales.begin() + static_cast<int64_t>(c) * (kDepth / kBlock), kDepth / kBlock,
                static_cast<float>(scale));
    biases[c] = static_cast<float>(c);
    wanted[c] = static_cast<double>(kDepth) * (static_cast<double>(weight) - 3) * static_cast<double>(scale) +
                static_cast<double>(c);
  }
  const bph_tensor w = host.tensor<uint8_t>(BP_U8, {kColumns, kDepth / 2}, weights);
  const bph_tensor zero = host.tensor<uint8_t>(BP_U8, {1}, std::vector<uint8_t>{3});
  const bph_tensor absent = {}, y = out({1, kColumns});
  run(BP_OP_QUANTIZED_MATMUL,
      {f32({1, kDepth}, Values(kDepth, 1)), w, f32({kColumns, kDepth / kBlock}, scales), zero, absent, absent,
       f32({kColumns}, biases)},
      {y}, &attributes);
  expect_near(y, wanted, 0);
  EXPECT_LT(host.stats().workspace_bytes, 80u << 20);

  // With an integer `a`, the sums are exact, and a tile stores the weights as bytes.
  const auto by_column = sized(bp_quantized_matmul_attributes{0, 4, 0, 0});
  const bph_tensor ones = host.tensor<int8_t>(BP_I8, {1, kDepth}, std::vector<int8_t>(kDepth, 1));
  Values of_columns(biases.size());
  for (size_t c = 0; c < of_columns.size(); ++c) of_columns[c] = static_cast<float>(1 + c % 3);
  run(BP_OP_QUANTIZED_MATMUL,
      {ones, w, f32({kColumns}, of_columns), zero, f32({1}, {1}), absent, f32({kColumns}, biases)}, {y}, &by_column);
  expect_near(y, wanted, 0);
}

// Core refuses a kernel with more taps than a program may have steps.
TEST_F(Tiles, TooManyStepsAreRefused) {
  bp_conv_attributes attributes = sized(bp_conv_attributes{});
  attributes.spatial_rank = 1;
  attributes.groups = 1;
  attributes.stride[0] = attributes.dilation[0] = 1;
  const int64_t kernel = 1 << 19;
  Call call(BP_OP_CONV_TRANSPOSE, {out({1, 1, 1}), out({1, 1, kernel})}, {out({1, 1, kernel})}, &attributes);
  EXPECT_FAILS(bph_execute(host.stream, &call, &error), BP_UNSUPPORTED, "more than 262144 steps");
}

}  // namespace
}  // namespace backplane::core::test
