// SPDX-License-Identifier: Apache-2.0
// Tests that composites with their own shape rules reject every wrong shape, at plan creation and
// at execution.
#include <memory>

#include "driver.hpp"

namespace backplane::kit::test {
namespace {

bp_tensor_desc of(uint16_t dtype, std::initializer_list<int64_t> shape) {
  bp_tensor_desc out = view(shape);
  out.dtype = dtype;
  return out;
}

// A valid descriptor. Extents are at least 2 unless a shape rule requires 1.
struct Legal {
  uint32_t op;
  std::vector<bp_tensor_desc> in, out;
  std::shared_ptr<const void> attributes;
  const char* free = "";  // "12" means that no rule constrains dimension 2 of operand 1
};

std::shared_ptr<const void> window() {
  bp_conv_attributes out{};
  out.spatial_rank = 2;
  out.groups = 2;
  for (int d = 0; d < 2; ++d) out.stride[d] = out.dilation[d] = out.pad_begin[d] = out.pad_end[d] = 1;
  return sized(out);
}
std::shared_ptr<const void> pool() {
  bp_pool_attributes out{};
  out.spatial_rank = 2;
  for (int d = 0; d < 2; ++d) out.kernel[d] = 3, out.stride[d] = out.dilation[d] = 1;
  return sized(out);
}

std::vector<Legal> legal() {
  const auto norm = sized(bp_norm_attributes{0, 4, 1e-5f, 0});
  const auto norm_bwd = [](uint32_t kind, uint32_t axes, uint32_t groups) {
    return sized(bp_norm_bwd_attributes{0, kind, axes, groups, 1e-5f, 0});
  };
  const auto quantize = [](uint32_t bits) { return sized(bp_quantize_attributes{0, bits}); };
  const auto weights = [](uint32_t bits, uint32_t block) {
    return sized(bp_quantized_matmul_attributes{0, bits, block, 0});
  };
  const auto loss = [](uint32_t reduction) { return sized(bp_cross_entropy_attributes{0, reduction, -1, 0, 0}); };
  const auto x = view({2, 3, 4}), lane = view({4}), kept = view({2, 3, 1});
  const auto image = view({2, 4, 6, 6}), filter = view({6, 2, 3, 3}), result = view({2, 6, 6, 6});
  const auto grouped = view({2, 4, 5}), channels = view({4}), groups = view({2, 2});
  const auto scores = view({5, 3});
  return {
      {BP_OP_LAYER_NORM, {x, lane, lane}, {x, kept, kept}, norm},
      {BP_OP_RMS_NORM, {x, lane}, {x, kept}, norm},
      {BP_OP_GROUP_NORM,
       {grouped, channels, channels},
       {grouped, groups, groups},
       sized(bp_group_norm_attributes{0, 2, 1e-5f, 0})},
      {BP_OP_BATCH_NORM,
       {grouped, channels, channels, channels, channels},
       {grouped, channels, channels, channels, channels},
       sized(bp_batch_norm_attributes{0, 1, 1e-5f, 0.1f, 0, 0})},
      {BP_OP_NORM_BWD, {x, x, lane, kept, kept}, {x, lane, lane}, norm_bwd(BP_NORM_LAYER, 4, 0)},
      {BP_OP_NORM_BWD, {x, x, lane, {}, kept}, {x, lane}, norm_bwd(BP_NORM_RMS, 4, 0)},
      {BP_OP_NORM_BWD,
       {grouped, grouped, channels, groups, groups},
       {grouped, channels, channels},
       norm_bwd(BP_NORM_GROUP, 0, 2)},
      {BP_OP_NORM_BWD,
       {grouped, grouped, channels, channels, channels},
       {grouped, channels, channels},
       norm_bwd(BP_NORM_BATCH, 0, 0)},
      {BP_OP_LINEAR, {x, view({5, 4}), view({5})}, {view({2, 3, 5})}, sized(bp_linear_attributes{0, 0, 0, 0})},
      {BP_OP_CONV, {image, filter, view({6})}, {result}, window()},
      {BP_OP_CONV_TRANSPOSE, {result, filter, view({4})}, {image}, window()},
      {BP_OP_CONV_BWD_INPUT, {result, filter}, {image}, window()},
      {BP_OP_CONV_BWD_WEIGHT, {image, result}, {filter}, window()},
      {BP_OP_MAX_POOL, {image}, {view({2, 4, 4, 4}), of(BP_I32, {2, 4, 4, 4})}, pool()},
      {BP_OP_AVG_POOL, {image}, {view({2, 4, 4, 4})}, pool()},
      {BP_OP_ATTENTION,
       {view({2, 4, 3, 8}), view({2, 2, 5, 8}), view({2, 2, 5, 6}), of(BP_BOOL, {2, 4, 3, 5}), view({4})},
       {view({2, 4, 3, 6}), view({2, 4, 3})},
       sized(bp_attention_attributes{0, 0, 0.5f, 0, 0, 0})},
      {BP_OP_ATTENTION_BWD,
       {view({2, 4, 3, 6}), view({2, 4, 3, 8}), view({2, 2, 5, 8}), view({2, 2, 5, 6}), view({2, 4, 3, 6}),
        view({2, 4, 3}), of(BP_BOOL, {2, 4, 3, 5})},
       {view({2, 4, 3, 8}), view({2, 2, 5, 8}), view({2, 2, 5, 6})},
       sized(bp_attention_attributes{0, 0, 0.5f, 0, 0, 0})},
      {BP_OP_ROPE, {x, of(BP_I32, {2, 3})}, {x}, sized(bp_rope_attributes{0, 0, 10000, 0})},
      {BP_OP_QUANTIZE, {x, x, of(BP_U8, {2, 3, 4})}, {of(BP_U8, {2, 3, 4})}, quantize(8)},
      {BP_OP_QUANTIZE, {x, view({1, 1})}, {of(BP_U8, {2, 3, 2})}, quantize(4)},
      {BP_OP_DEQUANTIZE, {of(BP_U8, {2, 3, 4}), x, of(BP_U8, {2, 3, 4})}, {x}, quantize(8)},
      {BP_OP_QUANTIZED_MATMUL,
       {x, of(BP_I8, {5, 4}), view({5, 2}), of(BP_I8, {5, 2}), {}, {}, view({5}), view({5, 2})},
       {view({2, 3, 5})},
       weights(8, 2)},
      {BP_OP_QUANTIZED_MATMUL, {x, of(BP_U8, {5, 2}), view({5})}, {view({2, 3, 5})}, weights(4, 0)},
      {BP_OP_QUANTIZED_MATMUL,
       {of(BP_I8, {2, 3, 4}), of(BP_I8, {5, 4}), view({5}), {}, view({6}), of(BP_I8, {6})},
       {view({2, 3, 5})},
       weights(8, 0)},
      {BP_OP_EMBEDDING, {view({7, 4}), of(BP_I32, {2, 3})}, {x}, nullptr, "00"},
      {BP_OP_TOPK, {x}, {view({2, 3, 2}), of(BP_I32, {2, 3, 2})}, sized(bp_topk_attributes{0, 2, 0, 0}), "02"},
      {BP_OP_CROSS_ENTROPY, {scores, of(BP_I32, {5}), view({3})}, {view({}), scores}, loss(BP_REDUCTION_MEAN)},
      {BP_OP_CROSS_ENTROPY, {scores, of(BP_I32, {5})}, {view({5})}, loss(BP_REDUCTION_NONE), "01"},
      {BP_OP_NLL,
       {scores, of(BP_I32, {5}), view({3})},
       {view({}), view({})},
       sized(bp_nll_attributes{0, BP_REDUCTION_MEAN, -1})},
      {BP_OP_NLL_BWD,
       {view({5}), of(BP_I32, {5}), view({3}), view({})},
       {scores},
       sized(bp_nll_attributes{0, BP_REDUCTION_NONE, -1})},
      {BP_OP_GEMM, {x, view({2, 4, 5}), view({2, 3, 5})}, {view({2, 3, 5})}, sized(bp_matmul_attributes{0, 0})},
      {BP_OP_DROPOUT, {x}, {x, of(BP_BOOL, {2, 3, 4})}, sized(bp_dropout_attributes{0, 0.5f})},
      {BP_OP_ROTATE,
       {view({2, 3, 6}), view({2, 3, 3}), view({2, 3, 3})},
       {view({2, 3, 6})},
       sized(bp_rotate_attributes{0, 0})},
      {BP_OP_ADAMW, {x}, {x, x, x}, sized(bp_adamw_attributes{0, 0.9f, 0.999f, 1e-8f, 0, 0})},
  };
}

class Composites : public KitTest {
 protected:
  // For each dimension that a rule constrains, applies change(view, dimension) to the operand,
  // calls body(what) and restores the operand.
  static void for_wrong(Op& one, const Legal& legal, const auto& change, const auto& body) {
    for (uint32_t i = 0; i < one.in.size() + one.out.size(); ++i) {
      bp_tensor_desc& operand = i < one.in.size() ? one.in[i] : one.out[i - one.in.size()];
      for (uint32_t d = 0; operand.dtype != 0 && d < operand.rank; ++d) {
        if (std::string_view(legal.free) == text(i, d)) continue;
        const bp_tensor_desc before = operand;
        change(operand, d);
        operand = dense_like(operand);
        body(text("operand ", i, ", dimension ", d, ": ", shape_text(operand)));
        operand = before;
      }
    }
  }
  static Op made_of(const Legal& legal) {
    Op op;
    op.in = legal.in, op.out = legal.out;
    op.desc.attributes = legal.attributes.get();
    return op;
  }
  bp_status run(Op& op, bp_buffer* memory) {
    const std::vector<bp_operand> in(op.in.size(), {memory, 0, 0}), out(op.out.size(), {memory, 0, 0});
    const std::vector<bp_operand> scalars(op.desc.scalar_count);
    bp_execution execution{};
    execution.struct_size = sizeof(execution);
    execution.desc = &op.desc;
    execution.inputs = in.data(), execution.outputs = out.data(), execution.scalars = scalars.data();
    return api->plan_execute(device, a, op.plan, &execution, &error);
  }
};

TEST_F(Composites, HaveAllKernels) {
  const std::vector<Legal> all = legal();
  for (uint32_t id = 0; id < BP_OP_LIMIT; ++id) {
    if (find_op(id) == nullptr || find_op(id)->shape_rule != BP_SHAPE_COMPOSITE) continue;
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Legal& one) { return one.op == id; })) << op_name(id);
  }
}

TEST_F(Composites, WrongShapesHaveNoPlan) {
  for (const Legal& one : legal()) {
    SCOPED_TRACE(op_name(one.op));
    Op op = made_of(one);
    EXPECT_EQ(prepare(one.op, op, true), BP_OK) << error.message;
    const auto refused = [&](const std::string& what) {
      error.message[0] = '\0';
      EXPECT_EQ(prepare(one.op, op, true), BP_INVALID_ARGUMENT) << what;
      EXPECT_STRNE(error.message, "") << what;
    };
    for_wrong(
        op, one, [](bp_tensor_desc& view, uint32_t d) { ++view.shape[d]; }, refused);
    const auto append = [](bp_tensor_desc& view, uint32_t) { view.shape[view.rank++] = 2; };
    for_wrong(op, one, append, refused);
  }
}

TEST_F(Composites, WrongShapesAreNotExecuted) {
  bp_buffer* memory = buffer(4096);
  for (const Legal& one : legal()) {
    SCOPED_TRACE(op_name(one.op));
    Op op = made_of(one);
    ASSERT_EQ(prepare(one.op, op), BP_OK) << error.message;
    ASSERT_NE(op.info.flags & BP_PLAN_ANY_SIZE, 0u);
    EXPECT_EQ(run(op, memory), BP_OK) << error.message;
    for_wrong(
        op, one, [](bp_tensor_desc& view, uint32_t d) { ++view.shape[d]; },
        [&](const std::string& what) { EXPECT_EQ(run(op, memory), BP_INVALID_ARGUMENT) << what; });
    EXPECT_EQ(wait(a), BP_OK);
  }
}

TEST_F(Composites, WrongDtypesHaveNoPlan) {
  for (const Legal& one : legal()) {
    SCOPED_TRACE(op_name(one.op));
    Op op = made_of(one);
    for (std::vector<bp_tensor_desc>* operands : {&op.in, &op.out}) {
      for (bp_tensor_desc& operand : *operands) {
        if (operand.dtype == 0) continue;
        const uint16_t before = std::exchange(operand.dtype, uint16_t{BP_U32});
        EXPECT_EQ(prepare(one.op, op, true), BP_UNSUPPORTED);
        EXPECT_THAT(error.message, testing::HasSubstr("u32"));
        operand.dtype = before;
      }
    }
  }
}

}  // namespace
}  // namespace backplane::kit::test
