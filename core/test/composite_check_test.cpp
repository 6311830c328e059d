// SPDX-License-Identifier: Apache-2.0
// Tests that core refuses invalid composites before execution, and that the message names the defect.
#include <cmath>
#include <limits>

#include "host.hpp"

namespace backplane::core::test {
namespace {

// Makes a view without memory. If `dtype` is 0, the operand is absent.
bph_tensor view(uint32_t dtype, std::vector<int64_t> shape) {
  bph_tensor tensor = {};
  tensor.dtype = static_cast<uint16_t>(dtype);
  tensor.rank = static_cast<uint8_t>(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    tensor.shape[d] = shape[d];
    tensor.strides[d] = stride;
    stride *= shape[d];
  }
  return tensor;
}
bph_tensor f32(std::vector<int64_t> shape) { return view(BP_F32, std::move(shape)); }
const bph_tensor absent = {};

template <class Attributes>
Attributes sized(Attributes attributes) {
  attributes.struct_size = sizeof(attributes);
  return attributes;
}

class CompositeCheck : public ::testing::Test {
 protected:
  Host host{REFERENCE_PLUGIN};

  void accepted(uint32_t op, std::vector<bph_tensor> in, std::vector<bph_tensor> out, const void* attributes,
                std::vector<uint64_t> scalars = {}) {
    bph_support support = {};
    support.struct_size = sizeof(support);
    const Call call(op, std::move(in), std::move(out), attributes, std::move(scalars));
    EXPECT_OK(bph_device_supports(host.device, &call, &support, &error));
    EXPECT_EQ(support.path, BPH_PATH_DECOMPOSED);
  }
  void answers(bp_status status, const char* word, const Call& call) {
    SCOPED_TRACE(word);
    bph_support support = {};
    support.struct_size = sizeof(support);
    EXPECT_FAILS(bph_device_supports(host.device, &call, &support, &error), status, word);
  }
  // Expects that core refuses a descriptor that no later ABI version will allow.
  void refused(const char* word, uint32_t op, std::vector<bph_tensor> in, std::vector<bph_tensor> out,
               const void* attributes, std::vector<uint64_t> scalars = {}) {
    answers(BP_INVALID_ARGUMENT, word, Call(op, std::move(in), std::move(out), attributes, std::move(scalars)));
  }
  // Expects that core refuses a descriptor that a later ABI version may allow.
  void unsupported(const char* word, uint32_t op, std::vector<bph_tensor> in, std::vector<bph_tensor> out,
                   const void* attributes, std::vector<uint64_t> scalars = {}) {
    answers(BP_UNSUPPORTED, word, Call(op, std::move(in), std::move(out), attributes, std::move(scalars)));
  }
};

TEST_F(CompositeCheck, Norms) {
  const auto with = [](uint32_t axes, float epsilon) { return sized(bp_norm_attributes{0, axes, epsilon, 0}); };
  const bp_norm_attributes good = with(2, 1e-5f);
  accepted(BP_OP_LAYER_NORM, {f32({2, 3}), f32({3}), absent}, {f32({2, 3}), f32({2, 1})}, &good);
  const bp_norm_attributes none = with(0, 1e-5f), beyond = with(4, 1e-5f), nan = with(2, NAN);
  const bp_norm_attributes zero = with(2, 0), ten = with(2, 10), below = with(2, -1), infinite = with(2, INFINITY);
  unsupported("axes is 0", BP_OP_LAYER_NORM, {f32({2, 3})}, {f32({2, 3})}, &none);
  refused("the rank is 2", BP_OP_LAYER_NORM, {f32({2, 3})}, {f32({2, 3})}, &beyond);
  for (const bp_norm_attributes* legal : {&zero, &ten}) accepted(BP_OP_RMS_NORM, {f32({2, 3})}, {f32({2, 3})}, legal);
  unsupported("epsilon is -1", BP_OP_LAYER_NORM, {f32({2, 3})}, {f32({2, 3})}, &below);
  unsupported("epsilon is inf", BP_OP_LAYER_NORM, {f32({2, 3})}, {f32({2, 3})}, &infinite);
  unsupported("epsilon is nan", BP_OP_RMS_NORM, {f32({2, 3})}, {f32({2, 3})}, &nan);
  refused("must be [3]", BP_OP_LAYER_NORM, {f32({2, 3}), f32({2})}, {f32({2, 3})}, &good);
  refused("must be [2,1]", BP_OP_LAYER_NORM, {f32({2, 3})}, {f32({2, 3}), f32({2})}, &good);
  refused("output 0 has shape [3,2]", BP_OP_LAYER_NORM, {f32({2, 3})}, {f32({3, 2})}, &good);
  unsupported("input 1 is f16", BP_OP_LAYER_NORM, {f32({2, 3}), view(BP_F16, {3})}, {f32({2, 3})}, &good);
  unsupported("input 0 is i32", BP_OP_LAYER_NORM, {view(BP_I32, {2, 3})}, {view(BP_I32, {2, 3})}, &good);

  const auto group = [](uint32_t groups) { return sized(bp_group_norm_attributes{0, groups, 1e-5f, 0}); };
  const bp_group_norm_attributes two = group(2), four = group(4), no_group = group(0);
  accepted(BP_OP_GROUP_NORM, {f32({2, 6, 5})}, {f32({2, 6, 5}), f32({2, 2})}, &two);
  unsupported("attribute groups is 0", BP_OP_GROUP_NORM, {f32({2, 6, 5})}, {f32({2, 6, 5})}, &no_group);
  refused("do not divide", BP_OP_GROUP_NORM, {f32({2, 6, 5})}, {f32({2, 6, 5})}, &four);
  refused("groups is 2", BP_OP_GROUP_NORM, {f32({2, 6, 5})}, {f32({2, 6, 5}), f32({2, 3})}, &two);
  refused("must be [N,C,..]", BP_OP_GROUP_NORM, {f32({6})}, {f32({6})}, &two);
  const auto batch = [](uint32_t training) { return sized(bp_batch_norm_attributes{0, training, 0, 0.1f, 0, 0}); };
  const bp_batch_norm_attributes training = batch(1), inference = batch(0);
  const bph_tensor images = f32({2, 3}), channel = f32({3});
  accepted(BP_OP_BATCH_NORM, {images, channel, channel, channel, channel}, {images}, &inference);
  accepted(BP_OP_BATCH_NORM, {images, absent, absent, channel, channel}, {images}, &inference);
  accepted(BP_OP_BATCH_NORM, {images}, {images, absent, absent, channel, channel}, &training);
  refused("input 3, the running mean, is missing; only training", BP_OP_BATCH_NORM, {images}, {images}, &inference);
  refused("input 4, the running variance, is missing", BP_OP_BATCH_NORM, {images, channel, channel, channel}, {images},
          &inference);
  refused("is missing; output 1 needs it", BP_OP_BATCH_NORM, {images}, {images, channel}, &training);
  const auto unbiased = sized(bp_batch_norm_attributes{0, 1, 0, 0.1f, 1, 0});
  accepted(BP_OP_BATCH_NORM, {images}, {images}, &unbiased);
  unsupported("a channel has 1 element", BP_OP_BATCH_NORM, {f32({1, 3, 1})}, {f32({1, 3, 1})}, &unbiased);

  const auto backward = [](uint32_t norm, uint32_t axes, uint32_t groups) {
    return sized(bp_norm_bwd_attributes{0, norm, axes, groups, 1e-5f, 0});
  };
  const auto rms = backward(BP_NORM_RMS, 2, 0), groupless = backward(BP_NORM_GROUP, 0, 0);
  const auto needless = backward(BP_NORM_LAYER, 2, 3), stray_axes = backward(BP_NORM_BATCH, 2, 0);
  const std::vector<bph_tensor> pair = {f32({2, 4}), f32({2, 4})};
  unsupported("rms_norm has none", BP_OP_NORM_BWD, {pair[0], pair[1], absent, f32({2, 1}), f32({2, 1})}, {f32({2, 4})},
              &rms);
  unsupported("groups is 0", BP_OP_NORM_BWD, pair, {f32({2, 4})}, &groupless);
  unsupported("groups is 3", BP_OP_NORM_BWD, pair, {f32({2, 4})}, &needless);
  unsupported("axes is 0b10", BP_OP_NORM_BWD, pair, {f32({2, 4})}, &stray_axes);
}

bp_conv_attributes conv_2d(uint32_t groups, int64_t stride, int64_t dilation, int64_t pad) {
  bp_conv_attributes attributes = {};
  attributes.struct_size = sizeof(attributes);
  attributes.spatial_rank = 2;
  attributes.groups = groups;
  for (int d = 0; d < 2; ++d) {
    attributes.stride[d] = stride;
    attributes.dilation[d] = dilation;
    attributes.pad_begin[d] = attributes.pad_end[d] = pad;
  }
  return attributes;
}

TEST_F(CompositeCheck, Windows) {
  const bph_tensor x = f32({1, 4, 5, 5}), w = f32({6, 4, 3, 3}), y = f32({1, 6, 3, 3});
  const bp_conv_attributes good = conv_2d(1, 1, 1, 0), no_groups = conv_2d(0, 1, 1, 0), odd = conv_2d(3, 1, 1, 0);
  const bp_conv_attributes no_stride = conv_2d(1, 0, 1, 0), wide = conv_2d(1, 1, 3, 0), padded = conv_2d(1, 1, 1, 1);
  accepted(BP_OP_CONV, {x, w, f32({6})}, {y}, &good);
  unsupported("attribute groups is 0", BP_OP_CONV, {x, w}, {y}, &no_groups);
  refused("do not divide", BP_OP_CONV, {x, w}, {y}, &odd);
  unsupported("stride 0", BP_OP_CONV, {x, w}, {y}, &no_stride);
  refused("larger than the padded extent 5", BP_OP_CONV, {x, w}, {y}, &wide);
  refused("5 windows fit", BP_OP_CONV, {x, w}, {y}, &padded);
  refused("O being 6", BP_OP_CONV, {x, w, f32({5})}, {y}, &good);
  refused("channels a group", BP_OP_CONV, {x, f32({6, 3, 3, 3})}, {y}, &good);
  refused("spatial_rank is 2", BP_OP_CONV, {f32({1, 4, 5}), f32({6, 4, 3}), absent}, {f32({1, 6, 3})}, &good);
  bp_conv_attributes stray = good;
  stray.stride[2] = 1;
  unsupported("dimension 2 are not 0", BP_OP_CONV, {x, w}, {y}, &stray);
  bp_conv_attributes active = good;
  active.activation = BP_ACTIVATION_RELU;
  unsupported("a gradient has none", BP_OP_CONV_BWD_INPUT, {y, w}, {x}, &active);

  bp_pool_attributes pool = {};
  pool.struct_size = sizeof(pool);
  pool.spatial_rank = 1;
  pool.kernel[0] = 0;
  pool.stride[0] = pool.dilation[0] = 1;
  unsupported("must be at least 1", BP_OP_MAX_POOL, {f32({1, 1, 5})}, {f32({1, 1, 5})}, &pool);
  pool.kernel[0] = 6;
  refused("larger than the padded extent", BP_OP_AVG_POOL, {f32({1, 1, 5})}, {f32({1, 1, 5})}, &pool);
  pool.kernel[0] = 2;
  accepted(BP_OP_MAX_POOL, {f32({1, 1, 5})}, {f32({1, 1, 4}), view(BP_I32, {1, 1, 4})}, &pool);
  unsupported("output 1 is u32", BP_OP_MAX_POOL, {f32({1, 1, 5})}, {f32({1, 1, 4}), view(BP_U32, {1, 1, 4})}, &pool);
}

TEST_F(CompositeCheck, Gemm) {
  const auto attributes = sized(bp_matmul_attributes{0, 0});
  const std::vector<uint64_t> one(2, bph_scalar_from_f64(BP_F32, 1));
  const bph_tensor a = f32({2, 3, 4}), b = f32({2, 4, 5}), c = f32({2, 3, 5});
  accepted(BP_OP_GEMM, {a, b, c}, {c}, &attributes, one);
  accepted(BP_OP_GEMM, {a, view(BP_F16, {2, 4, 5})}, {c}, &attributes, one);
  refused("input 1 has shape [4,5]", BP_OP_GEMM, {a, f32({4, 5}), c}, {c}, &attributes, one);
  refused("input 2 has shape [5]", BP_OP_GEMM, {a, b, f32({5})}, {c}, &attributes, one);
  unsupported("output 0 is f16", BP_OP_GEMM, {a, b, c}, {view(BP_F16, {2, 3, 5})}, &attributes, one);
}

TEST_F(CompositeCheck, RandomNumbers) {
  const std::vector<uint64_t> start(3);
  const auto half = sized(bp_dropout_attributes{0, 0.5f}), never = sized(bp_dropout_attributes{0, -0.5f}),
             nan = sized(bp_dropout_attributes{0, NAN});
  const bph_tensor x = f32({2, 3});
  accepted(BP_OP_UNIFORM, {}, {x}, nullptr, start);
  accepted(BP_OP_NORMAL, {}, {view(BP_F16, {2, 3})}, nullptr, start);
  unsupported("i32", BP_OP_UNIFORM, {}, {view(BP_I32, {2, 3})}, nullptr, start);
  accepted(BP_OP_DROPOUT, {x}, {x, view(BP_BOOL, {2, 3})}, &half, start);
  refused("output 0 has shape [3]", BP_OP_DROPOUT, {x}, {f32({3})}, &half, start);
  unsupported("output 1 is f32", BP_OP_DROPOUT, {x}, {x, x}, &half, start);
  unsupported("attribute p is -0.5", BP_OP_DROPOUT, {x}, {x}, &never, start);
  unsupported("attribute p is nan", BP_OP_DROPOUT, {x}, {x}, &nan, start);
}

TEST_F(CompositeCheck, Rotate) {
  const auto attributes = sized(bp_rotate_attributes{0, 0}), two = sized(bp_rotate_attributes{0, 2});
  const bph_tensor x = f32({2, 7}), table = f32({2, 3});
  accepted(BP_OP_ROTATE, {x, table, table}, {x}, &attributes);
  accepted(BP_OP_ROTATE, {view(BP_F16, {2, 7}), table, table}, {view(BP_F16, {2, 7})}, &attributes);
  refused("the tables have 4 pairs", BP_OP_ROTATE, {x, f32({2, 4}), f32({2, 4})}, {x}, &attributes);
  refused("input 2 has shape [2,2]", BP_OP_ROTATE, {x, table, f32({2, 2})}, {x}, &attributes);
  refused("input 1 has shape [3]", BP_OP_ROTATE, {x, f32({3}), table}, {x}, &attributes);
  unsupported("attribute interleaved is 2", BP_OP_ROTATE, {x, table, table}, {x}, &two);
}

TEST_F(CompositeCheck, AttentionAndRope) {
  const auto with = [](float scale) { return sized(bp_attention_attributes{0, 0, scale, 0, 0, 0}); };
  const bp_attention_attributes good = with(0.5f), nan = with(NAN), infinite = with(INFINITY);
  const bph_tensor q = f32({1, 4, 3, 8}), k = f32({1, 2, 5, 8}), v = f32({1, 2, 5, 6}), y = f32({1, 4, 3, 6});
  accepted(BP_OP_ATTENTION, {q, k, v, view(BP_BOOL, {1, 4, 3, 5})}, {y, f32({1, 4, 3})}, &good);
  unsupported("attribute scale is nan", BP_OP_ATTENTION, {q, k, v}, {y}, &nan);
  unsupported("attribute scale is inf", BP_OP_ATTENTION, {q, k, v}, {y}, &infinite);
  refused("no multiple of 3", BP_OP_ATTENTION, {q, f32({1, 3, 5, 8}), f32({1, 3, 5, 6})}, {y}, &good);
  refused("D being 8", BP_OP_ATTENTION, {q, f32({1, 2, 5, 7}), v}, {y}, &good);
  unsupported("input 3 is i32", BP_OP_ATTENTION, {q, k, v, view(BP_I32, {1, 4, 3, 5})}, {y}, &good);
  refused("input 3 has shape [3,5]", BP_OP_ATTENTION, {q, k, v, f32({3, 5})}, {y}, &good);
  accepted(BP_OP_ATTENTION, {q, k, v, absent, f32({4})}, {y}, &good);
  refused("input 4 has shape [2]", BP_OP_ATTENTION, {q, k, v, absent, f32({2})}, {y}, &good);
  unsupported("input 4 is i32", BP_OP_ATTENTION, {q, k, v, absent, view(BP_I32, {4})}, {y}, &good);
  const auto negative = sized(bp_attention_attributes{0, 0, 1, 0, -1, 0});
  unsupported("attribute softcap is -1", BP_OP_ATTENTION, {q, k, v}, {y}, &negative);
  const bph_tensor sums = f32({1, 4, 3});
  accepted(BP_OP_ATTENTION_BWD, {y, q, k, v, y, sums}, {q, absent, v}, &good);
  refused("input 5 has shape [4,3]", BP_OP_ATTENTION_BWD, {y, q, k, v, y, f32({4, 3})}, {q}, &good);
  refused("output 1 has shape [1,4,3,8]", BP_OP_ATTENTION_BWD, {y, q, k, v, y, sums}, {q, q}, &good);

  const auto rope = [](float base, uint32_t extent) { return sized(bp_rope_attributes{0, 0, base, extent}); };
  const auto all = rope(10000, 0), three = rope(10000, 3), ten = rope(10000, 10), no_base = rope(0, 0);
  const bph_tensor x = f32({2, 8}), position = view(BP_I32, {2});
  accepted(BP_OP_ROPE, {x, position}, {x}, &all);
  unsupported("must be even", BP_OP_ROPE, {x, position}, {x}, &three);
  refused("rotary_extent is 10", BP_OP_ROPE, {x, position}, {x}, &ten);
  unsupported("base is 0", BP_OP_ROPE, {x, position}, {x}, &no_base);
  unsupported("input 1 is f32", BP_OP_ROPE, {x, f32({2})}, {x}, &all);
}

TEST_F(CompositeCheck, Quantised) {
  const auto bits = [](uint32_t count) { return sized(bp_quantize_attributes{0, count}); };
  const auto four = bits(4), five = bits(5), eight = bits(8);
  const bph_tensor x = f32({2, 5}), one = f32({});
  accepted(BP_OP_QUANTIZE, {x, one, view(BP_U8, {})}, {view(BP_U8, {2, 5})}, &eight);
  accepted(BP_OP_QUANTIZE, {x, one}, {view(BP_U8, {2, 3})}, &four);
  unsupported("bits is 5", BP_OP_QUANTIZE, {x, one}, {view(BP_U8, {2, 5})}, &five);
  unsupported("two to a u8", BP_OP_QUANTIZE, {x, one}, {view(BP_I8, {2, 3})}, &four);
  refused("must be [2,3]", BP_OP_QUANTIZE, {x, one}, {view(BP_U8, {2, 5})}, &four);
  refused("input 1 has shape [5]", BP_OP_QUANTIZE, {x, f32({5})}, {view(BP_U8, {2, 5})}, &eight);
  unsupported("output 0 is u8; it may be one of i8", BP_OP_QUANTIZE, {x, one, view(BP_I8, {})}, {view(BP_U8, {2, 5})},
              &eight);
  const auto blocks = [](uint32_t weight_bits, uint32_t block) {
    return sized(bp_quantized_matmul_attributes{0, weight_bits, block, 0});
  };
  const auto w8 = blocks(8, 0), w4 = blocks(4, 4), w6 = blocks(6, 0);
  const bph_tensor a = f32({3, 10}), y = f32({3, 7}), w = view(BP_I8, {7, 10});
  accepted(BP_OP_QUANTIZED_MATMUL, {a, w, f32({7})}, {y}, &w8);
  accepted(BP_OP_QUANTIZED_MATMUL, {a, view(BP_U8, {7, 5}), f32({7, 3})}, {y}, &w4);
  unsupported("weight_bits is 6", BP_OP_QUANTIZED_MATMUL, {a, w, f32({7})}, {y}, &w6);
  unsupported("it must be u8", BP_OP_QUANTIZED_MATMUL, {a, w, f32({7})}, {y}, &w4);
  refused("[7] or [7,1]", BP_OP_QUANTIZED_MATMUL, {a, w, f32({3})}, {y}, &w8);
  unsupported("only an i8 or u8 one", BP_OP_QUANTIZED_MATMUL, {a, w, f32({7}), absent, f32({})}, {y}, &w8);
  refused("its scale, is missing", BP_OP_QUANTIZED_MATMUL, {view(BP_I8, {3, 10}), w, f32({7})}, {y}, &w8);
  refused("one for each row", BP_OP_QUANTIZED_MATMUL, {view(BP_I8, {3, 10}), w, f32({7}), absent, f32({2})}, {y}, &w8);
}

TEST_F(CompositeCheck, TheRest) {
  const auto top = [](uint32_t axis) { return sized(bp_topk_attributes{0, axis, 0, 0}); };
  const auto first = top(0), beyond = top(3);
  accepted(BP_OP_TOPK, {f32({5})}, {f32({2}), view(BP_I32, {2})}, &first);
  refused("k is 6", BP_OP_TOPK, {f32({5})}, {f32({6}), view(BP_I32, {6})}, &first);
  refused("axis is 3", BP_OP_TOPK, {f32({5})}, {f32({2}), view(BP_I32, {2})}, &beyond);
  unsupported("output 1 is u32", BP_OP_TOPK, {f32({5})}, {f32({2}), view(BP_U32, {2})}, &first);
  const auto mean = sized(bp_cross_entropy_attributes{0, BP_REDUCTION_MEAN, -1, 0, 0});
  const auto each = sized(bp_cross_entropy_attributes{0, BP_REDUCTION_NONE, -1, 0, 0});
  const auto smooth = sized(bp_cross_entropy_attributes{0, BP_REDUCTION_MEAN, -1, NAN, 0});
  const bph_tensor logits = f32({4, 3}), target = view(BP_I32, {4});
  accepted(BP_OP_CROSS_ENTROPY, {logits, target}, {f32({})}, &mean);
  refused("one element", BP_OP_CROSS_ENTROPY, {logits, target}, {f32({4})}, &mean);
  refused("must be [4]", BP_OP_CROSS_ENTROPY, {logits, target}, {f32({})}, &each);
  unsupported("label_smoothing is nan", BP_OP_CROSS_ENTROPY, {logits, target}, {f32({})}, &smooth);
  unsupported("no classes", BP_OP_CROSS_ENTROPY, {f32({4, 0}), target}, {f32({})}, &mean);
  refused("N being 4", BP_OP_CROSS_ENTROPY, {logits, view(BP_I32, {3})}, {f32({})}, &mean);
  const auto nll_mean = sized(bp_nll_attributes{0, BP_REDUCTION_MEAN, -1});
  const auto nll_each = sized(bp_nll_attributes{0, BP_REDUCTION_NONE, -1});
  accepted(BP_OP_NLL, {logits, target}, {f32({}), f32({1})}, &nll_mean);
  refused("one element", BP_OP_NLL, {logits, target}, {f32({4})}, &nll_mean);
  refused("the total weight has shape [4]", BP_OP_NLL, {logits, target}, {f32({}), f32({4})}, &nll_mean);
  refused("must be [4]", BP_OP_NLL, {logits, target}, {f32({})}, &nll_each);
  unsupported("no classes", BP_OP_NLL, {f32({4, 0}), target}, {f32({})}, &nll_mean);
  accepted(BP_OP_NLL_BWD, {f32({4}), target}, {logits}, &nll_each);
  accepted(BP_OP_NLL_BWD, {f32({}), target, absent, f32({})}, {logits}, &nll_mean);
  refused("must be [4]", BP_OP_NLL_BWD, {f32({}), target}, {logits}, &nll_each);
  refused("the total weight has shape [4]", BP_OP_NLL_BWD, {f32({}), target, absent, f32({4})}, {logits}, &nll_mean);
  const auto linear = sized(bp_linear_attributes{0, 0, 0, 0}), unknown = sized(bp_linear_attributes{0, 9, 0, 0});
  accepted(BP_OP_LINEAR, {f32({2, 3, 4}), f32({5, 4}), f32({5})}, {f32({2, 3, 5})}, &linear);
  refused("K being 4", BP_OP_LINEAR, {f32({3, 4}), f32({5, 3})}, {f32({3, 5})}, &linear);
  unsupported("attribute activation is 9", BP_OP_LINEAR, {f32({3, 4}), f32({5, 4})}, {f32({3, 5})}, &unknown);
  unsupported("input 1 is f32", BP_OP_EMBEDDING, {f32({9, 4}), f32({3})}, {f32({3, 4})}, nullptr);
  refused(".. being [3]", BP_OP_EMBEDDING, {f32({9, 4}), view(BP_I32, {3})}, {f32({2, 4})}, nullptr);
  const auto adamw = sized(bp_adamw_attributes{0, 0.9f, 0.999f, 1e-8f, 0, 0});
  accepted(BP_OP_ADAMW, {f32({3})}, {f32({3}), f32({3}), f32({3})}, &adamw, {0, 0, 0});
  refused("output 2 has shape [4]", BP_OP_ADAMW, {f32({3})}, {f32({3}), f32({3}), f32({4})}, &adamw, {0, 0, 0});
  const bp_axis_attributes axis = {sizeof(axis), 2};
  refused("axis is 2", BP_OP_SOFTMAX, {f32({2, 3})}, {f32({2, 3})}, &axis);
}

}  // namespace
}  // namespace backplane::core::test
