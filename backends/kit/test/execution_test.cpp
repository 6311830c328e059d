// SPDX-License-Identifier: Apache-2.0
// Tests that an execution outside its plan's class is rejected, so that kernels can rely on the
// class.
#include "driver.hpp"

namespace backplane::kit::test {
namespace {

using testing::HasSubstr;

TEST_F(KitTest, ExecutionsAreChecked) {
  bp_buffer *x = buffer(16), *workspace = buffer(256);
  Op op;
  ASSERT_EQ(prepare(BP_OP_ADD, op), BP_OK);
  EXPECT_EQ(execute(a, op, {{x, 0, 0}, {x, 0, 0}}, {x, 0, 0}), BP_INVALID_ARGUMENT) << "no workspace";
  EXPECT_EQ(execute(a, op, {{x, 0, 0}, {x, 0, 0}}, {x, 0, 0}, {}, workspace), BP_OK);
  EXPECT_EQ(execute(a, op, {{x, 4, 0}, {x, 0, 0}}, {x, 0, 0}, {}, workspace), BP_INVALID_ARGUMENT) << "past the end";
  EXPECT_THAT(error.message, HasSubstr("4 to 20 of a buffer of 16"));
  EXPECT_EQ(execute(a, op, {{nullptr, 0, 0}, {x, 0, 0}}, {x, 0, 0}, {}, workspace), BP_INVALID_ARGUMENT);
  bp_buffer* wide = buffer(64);
  EXPECT_EQ(execute(a, op, {{wide, 2, 0}, {x, 0, 0}}, {x, 0, 0}, {}, workspace), BP_INVALID_ARGUMENT) << "not aligned";
}

TEST_F(KitTest, AnUnknownFieldOfAnExecutionIsInvalid) {
  bp_buffer* x = buffer(64);
  Op op;
  ASSERT_EQ(prepare(BP_OP_MUL, op), BP_OK);
  struct LongerExecution {
    bp_execution known;
    uint64_t later;
  } execution{};
  struct LongerDesc {
    bp_op_desc known;
    uint64_t later;
  } desc{};
  desc.known = op.desc;
  desc.known.struct_size = sizeof(desc);
  const bp_operand in[2] = {{x, 0, 0}, {x, 0, 0}}, out{x, 0, 0};
  execution.known.struct_size = sizeof(execution);
  execution.known.desc = &desc.known;
  execution.known.inputs = in, execution.known.outputs = &out;
  const auto run = [&] { return api->plan_execute(device, a, op.plan, &execution.known, &error); };
  EXPECT_EQ(run(), BP_OK) << error.message;
  execution.later = uint64_t{1} << 56;
  EXPECT_EQ(run(), BP_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("bp_execution has a field at byte 71"));
  execution.later = 0;
  desc.later = 1;
  EXPECT_EQ(run(), BP_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("bp_op_desc has a field"));
  desc.later = 0;
  EXPECT_EQ(run(), BP_OK) << error.message;
  EXPECT_EQ(wait(a), BP_OK);
}

// Plans of `mul` on two vectors of 4 elements, with any strides. Tests change the operands before
// the execution.
class PlanClass : public KitTest {
 protected:
  bp_status execute_changed(const auto& plan_of, const auto& change) {
    Op op;
    op.in = {view({4}), view({4})}, op.out = {view({4})};
    plan_of(op);
    EXPECT_EQ(prepare(BP_OP_MUL, op), BP_OK) << error.message;
    change(op);
    bp_buffer* x = buffer(64);
    return execute(a, op, {{x, 16, 0}, {x, 16, 0}}, {x, 16, 0});
  }
  static void as_made(Op&) {}
};

TEST_F(PlanClass, IsKeptByEachExecution) {
  const auto refused = [&](const char* word, const auto& change) {
    error.message[0] = '\0';
    EXPECT_EQ(execute_changed(as_made, change), BP_INVALID_ARGUMENT) << word;
    EXPECT_THAT(error.message, HasSubstr(word));
  };
  EXPECT_EQ(execute_changed(as_made, as_made), BP_OK) << error.message;
  EXPECT_EQ(execute_changed(as_made, [](Op& op) { op.in[0] = op.in[1] = op.out[0] = view({7}); }), BP_OK)
      << error.message;
  refused("is f64", [](Op& op) { op.in[0].dtype = BP_F64; });
  refused("is absent", [](Op& op) { op.in[1].dtype = 0; });
  refused("output 0 is i64", [](Op& op) { op.out[0].dtype = BP_I64; });
  refused("rank 255", [](Op& op) { op.in[0].rank = 255; });
  refused("rank 0", [](Op& op) { op.in[0] = op.in[1] = op.out[0] = view({}); });
  refused("the flags 1", [](Op& op) { op.in[0].flags = BP_DESC_IMMEDIATE, op.in[0].strides[0] = 0; });
  refused("the flags 2", [](Op& op) { op.in[0].flags = BP_DESC_PACKED; });
  refused("strides [0]", [](Op& op) { op.in[0].strides[0] = 0; });
  refused("strides [-1]", [](Op& op) { op.in[0].strides[0] = -1; });
  refused("strides [2]", [](Op& op) { op.out[0].strides[0] = 2; });
  refused("shape [-4]", [](Op& op) { op.in[0].shape[0] = -4; });
  refused("shape [1]", [](Op& op) { op.in[0] = op.in[1] = op.out[0] = view({1}); });
  refused("shape [0]", [](Op& op) { op.in[0] = op.in[1] = op.out[0] = view({0}); });
  refused("must be equal", [](Op& op) { op.out[0] = view({3}); });
  refused("null", [](Op& op) { op.desc.inputs = nullptr; });
  refused("null", [](Op& op) { op.desc.outputs = nullptr; });
}

TEST_F(PlanClass, DensenessIsKeptWhereThePlanHadIt) {
  const auto matrix = [](Op& op) { op.in[0] = op.in[1] = op.out[0] = view({2, 2}); };
  const auto with_pitch = [&](Op& op) { matrix(op), op.in[0].strides[0] = 3; };
  EXPECT_EQ(execute_changed(matrix, with_pitch), BP_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("dense operands"));
  EXPECT_EQ(execute_changed(with_pitch, with_pitch), BP_OK) << error.message;
  EXPECT_EQ(execute_changed(with_pitch, [&](Op& op) { op.in[0].strides[0] = 4; }), BP_OK) << error.message;
}

TEST_F(PlanClass, ReachIsCheckedWithoutOverflow) {
  const auto strided = [](Op& op) { op.in[0].strides[0] = 2; };
  const auto back = [](Op& op) { op.in[0].strides[0] = -2; };
  for (const int64_t stride : {INT64_MAX, INT64_MAX / 2, int64_t{1} << 60, int64_t{100}}) {
    EXPECT_EQ(execute_changed(strided, [&](Op& op) { op.in[0].strides[0] = stride; }), BP_INVALID_ARGUMENT) << stride;
    EXPECT_EQ(execute_changed(back, [&](Op& op) { op.in[0].strides[0] = -stride; }), BP_INVALID_ARGUMENT) << stride;
  }
  const auto broadcast = [](Op& op) { op.in[0].strides[0] = 0; };
  EXPECT_EQ(execute_changed(broadcast, as_made), BP_OK) << error.message;
  // The view spans few bytes, but has so many elements that a loop over them would not end.
  const auto planes = [](Op& op) {
    op.in[0] = op.in[1] = op.out[0] = view({2, 2});
    for (bp_tensor_desc* each : {&op.in[0], &op.in[1], &op.out[0]}) each->strides[0] = each->strides[1] = 0;
  };
  EXPECT_EQ(execute_changed(planes,
                            [](Op& op) {
                              for (bp_tensor_desc* each : {&op.in[0], &op.in[1], &op.out[0]}) {
                                each->shape[0] = each->shape[1] = int64_t{1} << 40;
                              }
                            }),
            BP_INVALID_ARGUMENT);
}

TEST_F(KitTest, ADenseKernelReceivesOnlyDenseOperands) {
  bp_buffer *x = buffer(64), *workspace = buffer(256);
  Op op;
  op.in = {view({4}), view({4})}, op.out = {view({4})};
  op.in[0].strides[0] = 0;
  op.in[0].flags = BP_DESC_IMMEDIATE;
  ASSERT_EQ(prepare(BP_OP_ADD, op), BP_OK);
  ASSERT_EQ(op.info.stage_inputs, 1u);
  const auto run = [&] { return execute(a, op, {{x, 0, 0}, {x, 0, 0}}, {x, 0, 0}, {}, workspace); };
  EXPECT_EQ(run(), BP_INVALID_ARGUMENT) << "an immediate is staged";
  op.in[0].flags = 0;
  EXPECT_EQ(run(), BP_INVALID_ARGUMENT) << "a broadcast is staged";
  op.in[0].strides[0] = 1;  // core makes staged operands dense
  EXPECT_EQ(run(), BP_OK) << error.message;
  op.in[1].strides[0] = 2;
  EXPECT_EQ(run(), BP_INVALID_ARGUMENT) << "packed when the plan was made";
}

TEST_F(KitTest, PresenceOfOperandsMatchesThePlan) {
  Op op;
  ASSERT_EQ(prepare_quantized_matmul(op), BP_OK) << error.message;
  bp_buffer* x = buffer(64);
  const auto run = [&] { return execute(a, op, std::vector<bp_operand>(5, {x, 0, 0}), {x, 0, 0}); };
  EXPECT_EQ(run(), BP_OK) << error.message;
  op.in[3] = view({4}), op.in[3].dtype = BP_I8;
  EXPECT_EQ(run(), BP_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("the plan is for absent"));
  op.in[3] = op.in[4] = {};
  EXPECT_EQ(run(), BP_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("input 4 is absent"));
  op.in[4] = view({4});
  op.in[3].rank = 255;  // the fields of an absent view are ignored
  EXPECT_EQ(run(), BP_OK) << error.message;
}

TEST_F(KitTest, APlanForOneSizeServesStagedOperandsWithoutElements) {
  bp_buffer *x = buffer(64), *workspace = buffer(256);
  Op op;
  op.in = {view({4, 0}), view({4, 0})}, op.out = {view({4, 0})};
  op.in[0].strides[0] = 2;
  ASSERT_EQ(prepare(BP_OP_DIV, op), BP_OK) << error.message;
  ASSERT_EQ(op.info.flags & BP_PLAN_ANY_SIZE, 0u);
  op.in[0].strides[0] = 1;  // core makes staged operands dense
  EXPECT_EQ(execute(a, op, {{x, 0, 0}, {x, 0, 0}}, {x, 0, 0}, {}, workspace), BP_OK) << error.message;
}

// Tests the binding of a release build, which relies on core's checks.
class Unchecked : public testing::Test {
 protected:
  Unchecked() { plan.op = &op; }
  // Binds views[i] to operands[i]. The first `inputs` views are inputs.
  void bind(uint32_t inputs, const std::vector<bp_tensor_desc>& views, std::vector<bp_operand> operands,
            const std::vector<bp_operand>& scalars = {}) {
    plan.input_count = inputs;
    plan.output_count = static_cast<uint32_t>(views.size()) - inputs;
    bp_op_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.inputs = views.data();
    desc.outputs = views.data() + inputs;
    desc.scalar_count = static_cast<uint32_t>(scalars.size());
    bp_execution execution{};
    execution.struct_size = sizeof(execution);
    execution.desc = &desc;
    execution.inputs = operands.data();
    execution.outputs = operands.data() + inputs;
    execution.scalars = scalars.data();
    execution.workspace = at(0);
    execution.workspace_offset = 32;
    execution.workspace_bytes = 16;
    const auto span_of = [this](bp_buffer* buffer) {
      return Span{reinterpret_cast<std::byte*>(memory) + 16 * (reinterpret_cast<uintptr_t>(buffer) - 1), 16};
    };
    bind_unchecked(plan, execution, span_of, call);
  }
  static bp_buffer* at(uintptr_t index) { return reinterpret_cast<bp_buffer*>(index + 1); }
  std::byte* address(size_t bytes) { return reinterpret_cast<std::byte*>(memory) + bytes; }

  OpInfo op = *find_op(BP_OP_FILL);
  Plan plan;
  Call call;
  float memory[64];
};

TEST_F(Unchecked, OperandsAreBoundAsTheyAreDescribed) {
  bp_tensor_desc immediate = view({3}), empty = view({2, 0}), transposed = view({3, 2});
  immediate.flags = BP_DESC_IMMEDIATE;
  immediate.strides[0] = 0;
  transposed.strides[0] = 1, transposed.strides[1] = 3;
  plan.workspace_bytes = 16;
  bind(4, {immediate, {}, empty, view({2})}, {{nullptr, 0, 42}, {at(1), 0, 0}, {nullptr, 0, 0}, {at(1), 4, 0}});
  EXPECT_EQ(*call.in(0).as<uint64_t>(), 42u);
  EXPECT_EQ(call.in(1).dtype, 0u);
  EXPECT_EQ(call.in(1).data, nullptr) << "absent, whatever its operand says";
  EXPECT_EQ(call.in(2).data, nullptr) << "no elements";
  EXPECT_EQ(call.in(2).shape[0], 2);
  EXPECT_EQ(call.in(3).data, address(20));
  EXPECT_EQ(call.workspace, address(32));
  EXPECT_EQ(call.workspace_bytes, 16u);
  EXPECT_TRUE(call.outputs.empty());
  plan.workspace_bytes = 0;
  bind(0, {transposed}, {{at(2), 8, 0}});
  EXPECT_TRUE(call.inputs.empty());
  EXPECT_EQ(call.out().data, address(40));
  EXPECT_EQ(call.out().strides[1], 3);
  EXPECT_EQ(call.workspace, nullptr);
}

TEST_F(Unchecked, ScalarsThatTheHostLacksAreZero) {
  op.scalars_max = 3;  // a later ABI version may define 3 scalars
  call.scalar_bits[2] = 7;
  call.scalar_at[2] = address(0);
  bind(0, {view({2})}, {{at(0), 0, 0}}, {{nullptr, 0, 5}, {at(1), 8, 0}});
  EXPECT_EQ(call.scalar<uint64_t>(0), 5u);
  EXPECT_EQ(call.scalar_at[1], address(24)) << "in device memory";
  EXPECT_EQ(call.scalar<uint64_t>(2), 0u);
}

}  // namespace
}  // namespace backplane::kit::test
