// SPDX-License-Identifier: Apache-2.0
// Tests the layer `validation` with callers that break the rules for plans and executions.
#include "layer_fixture.hpp"

namespace backplane::core::test {

namespace {

namespace rule = layers::rule;

class ValidationPlanTest : public LayerTest {
 protected:
  void open(uint64_t capabilities = BP_CAP_TIMING) {
    LayerTest::open(capabilities);
    in = buffer();
    out = buffer();
    s = stream();
  }
  void plan_refused(const layers::Rule& broken, const Addition& work) {
    bp_plan* made = nullptr;
    bp_plan_info info = {};
    info.struct_size = sizeof(info);
    refused(broken, [&](bp_error* e) { return api->plan_create(device, &work.desc, &made, &info, e); });
  }
  void runs(bp_plan* p, const Addition& work) { EXPECT_OK(api->plan_execute(device, s, p, &work.execution, &error)); }
  void run_refused(const layers::Rule& broken, bp_plan* p, const Addition& work) {
    refused(broken, [&](bp_error* e) { return api->plan_execute(device, s, p, &work.execution, e); });
  }
  bp_buffer* in = nullptr;
  bp_buffer* out = nullptr;
  bp_stream* s = nullptr;
};

TEST_F(ValidationPlanTest, DescriptorsKeepTheOperatorsRules) {
  open();
  {
    Addition work(in, out);
    work.views[1].dtype = BP_I32;
    plan_refused(rule::kOpRules, work);
  }
  {
    Addition work(in, out);
    work.desc.input_count = 33;
    plan_refused(rule::kOpRules, work);
  }
  {
    Addition work(in, out);
    work.views[0].rank = 9;
    plan_refused(rule::kOpRules, work);
  }
  {
    Addition work(in, out);
    work.desc.op = BP_OP_REDUCE_SUM;  // the attributes are missing
    plan_refused(rule::kOpRules, work);
  }
  {
    Addition work(in, out);
    work.desc.flags = BP_OP_FLAGS_ALL + 1;
    plan_refused(rule::kUnknownValue, work);
  }
  {
    Addition work(in, out);
    work.views[0].flags = 4;
    plan_refused(rule::kUnknownValue, work);
  }
  {
    Addition work(in, out);
    work.desc.inputs = nullptr;
    plan_refused(rule::kNullPointer, work);
  }
  {
    Addition work(in, out);
    work.desc.struct_size = BP_OP_DESC_MIN_SIZE - 1;
    plan_refused(rule::kInputStruct, work);
  }
  plan(Addition(in, out));
}

TEST_F(ValidationPlanTest, ViewsAreZeroBeyondTheirRank) {
  open();
  Addition work(in, out);
  work.views[2].strides[1] = 4;
  plan_refused(rule::kViewTail, work);
}

TEST_F(ValidationPlanTest, ImmediatesAreInputsWithoutStrides) {
  open();
  Addition work(in, out);
  work.views[1].flags = BP_DESC_IMMEDIATE;
  plan_refused(rule::kViewImmediate, work);
  work.views[1].strides[0] = 0;
  bp_plan* p = plan(work);
  run_refused(rule::kOperandPresent, p, work);
  work.operands[1] = {nullptr, 0, uint64_t{1} << 32};
  run_refused(rule::kOperandPresent, p, work);
  work.operands[1].immediate = 7;
  runs(p, work);
  Addition bad(in, out);
  bad.views[2].flags = BP_DESC_IMMEDIATE;
  bad.views[2].strides[0] = 0;
  plan_refused(rule::kViewImmediate, bad);
}

TEST_F(ValidationPlanTest, AnAliasIsTrue) {
  open();
  Addition work(in, in);
  work.views[2].alias = 4;
  plan_refused(rule::kViewAlias, work);
  work.views[2].alias = 1;
  work.views[2].strides[0] = 2;
  plan_refused(rule::kViewAlias, work);
  work.views[2].strides[0] = 1;
  work.views[0].alias = 1;
  plan_refused(rule::kViewAlias, work);
  work.views[0].alias = 0;
  bp_plan* p = plan(work);
  runs(p, work);
  work.operands[2].offset = 512;
  run_refused(rule::kOperandAlias, p, work);
  work.operands[2] = {out, 0, 0};
  run_refused(rule::kOperandAlias, p, work);
}

TEST_F(ValidationPlanTest, AlignmentIsStatedWithinBounds) {
  open();
  Addition work(in, out);
  work.views[0].alignment_log2 = 9;
  plan_refused(rule::kViewAlignment, work);
}

TEST_F(ValidationPlanTest, AnExecutionIsThePlans) {
  open();
  Addition work(in, out);
  bp_plan* p = plan(work);
  runs(p, work);
  work.views[0].flags = 0x100;  // sets a hint
  work.desc.hints = 5;
  runs(p, work);
  for (bp_tensor_desc& view : work.views) view.shape[0] = 3;
  run_refused(rule::kPlanIdentity, p, work);
  puppet.plan_info.flags = BP_PLAN_ANY_SIZE;
  Addition any(in, out);
  bp_plan* sized = plan(any);
  for (bp_tensor_desc& view : any.views) view.shape[0] = 3;
  runs(sized, any);
  for (bp_tensor_desc& view : any.views) view.shape[0] = 1;
  run_refused(rule::kPlanIdentity, sized, any);
  for (bp_tensor_desc& view : any.views) view.shape[0] = BP_NEAR_LIMIT;
  run_refused(rule::kPlanIdentity, sized, any);
  for (bp_tensor_desc& view : any.views) view.shape[0] = 4;
  any.views[0].strides[0] = -1;
  any.operands[0].offset = 12;
  run_refused(rule::kPlanIdentity, sized, any);
  Addition other(in, out);
  other.desc.op = BP_OP_SUB;
  run_refused(rule::kPlanIdentity, sized, other);
  bp_execution tiny = {};
  tiny.struct_size = 8;
  refused(rule::kInputStruct, [&](bp_error* e) { return api->plan_execute(device, s, p, &tiny, e); });
  Addition reserved(in, out);
  reserved.execution.reserved = 1;
  run_refused(rule::kUnknownValue, p, reserved);
}

TEST_F(ValidationPlanTest, StagedOperandsAreDense) {
  open();
  puppet.plan_info.stage_inputs = 1;
  Addition work(in, out);
  work.views[0].strides[0] = 2;
  work.views[0].alignment_log2 = 2;
  bp_plan* p = plan(work);
  run_refused(rule::kStagedOperand, p, work);
  work.views[0].strides[0] = 1;
  run_refused(rule::kStagedOperand, p, work);
  work.views[0].alignment_log2 = 8;
  runs(p, work);
}

TEST_F(ValidationPlanTest, OperandsHaveBuffers) {
  open();
  Addition work(in, out);
  bp_plan* p = plan(work);
  work.operands[1].buffer = nullptr;
  run_refused(rule::kOperandPresent, p, work);
  work.operands[1].buffer = reinterpret_cast<bp_buffer*>(&work);
  run_refused(rule::kUnknownHandle, p, work);
  Addition empty(nullptr, nullptr);
  for (bp_tensor_desc& view : empty.views) view.shape[0] = 0;
  runs(plan(empty), empty);
  empty.execution.inputs = nullptr;
  run_refused(rule::kNullPointer, plans.back(), empty);
}

TEST_F(ValidationPlanTest, HostMemoryIsAnOperandByCapability) {
  open();
  Addition work(buffer(BP_MEMORY_HOST), out);
  run_refused(rule::kOperandMemory, plan(work), work);
  Addition shared(buffer(BP_MEMORY_SHARED), out);
  runs(plan(shared), shared);
}

TEST_F(ValidationPlanTest, HostMemoryIsTakenWithTheCapability) {
  open(BP_CAP_HOST_OPERANDS);
  Addition work(buffer(BP_MEMORY_HOST), out);
  runs(plan(work), work);
}

TEST_F(ValidationPlanTest, ViewsStayInside) {
  open();
  Addition work(in, out);
  for (bp_tensor_desc& view : work.views) view.alignment_log2 = 2;
  bp_plan* p = plan(work);
  work.operands[1].offset = 4096 - 16;
  runs(p, work);
  work.operands[1].offset = 4096 - 12;
  run_refused(rule::kOperandBounds, p, work);
  work.operands[1].offset = 8192;
  run_refused(rule::kOperandBounds, p, work);
  Addition backwards(in, out);
  for (bp_tensor_desc& view : backwards.views) view.alignment_log2 = 2;
  backwards.views[0].strides[0] = -1;
  backwards.operands[0].offset = 12;
  p = plan(backwards);
  runs(p, backwards);
  backwards.operands[0].offset = 8;
  run_refused(rule::kOperandBounds, p, backwards);
}

TEST_F(ValidationPlanTest, AddressesAreAlignedAsStated) {
  open();
  Addition work(in, out);
  bp_plan* p = plan(work);
  work.operands[1].offset = 128;
  run_refused(rule::kOperandAlignment, p, work);
  bp_buffer* loose = buffer(BP_MEMORY_DEVICE, 4096, 16);
  work.operands[1] = {loose, 0, 0};
  run_refused(rule::kOperandAlignment, p, work);
  Addition modest(in, out);
  modest.views[1].alignment_log2 = 4;
  modest.operands[1] = {loose, 16, 0};
  runs(plan(modest), modest);
}

TEST_F(ValidationPlanTest, OutputsOverlapNothing) {
  open();
  Addition work(in, in);
  for (bp_tensor_desc& view : work.views) view.alignment_log2 = 2;
  bp_plan* p = plan(work);
  work.operands[2].offset = 264;
  run_refused(rule::kOperandOverlap, p, work);
  work.operands[2].offset = 256;  // the bytes of the second input, but the descriptor declares no alias
  run_refused(rule::kOperandOverlap, p, work);
  work.operands[2].offset = 272;
  runs(p, work);
  // Interleaved views do not share a byte.
  Addition strided(in, in);
  for (bp_tensor_desc& view : strided.views) {
    view.alignment_log2 = 2;
    view.strides[0] = 2;
  }
  strided.operands[2].offset = 4;
  p = plan(strided);
  runs(p, strided);
  strided.operands[2].offset = 8;
  run_refused(rule::kOperandOverlap, p, strided);
}

TEST_F(ValidationPlanTest, TheWorkspaceIsAsThePlanNeeds) {
  open();
  puppet.plan_info.workspace_bytes = 512;
  Addition work(in, out);
  bp_plan* p = plan(work);
  run_refused(rule::kWorkspace, p, work);
  bp_buffer* room = buffer();
  work.execution.workspace = room;
  work.execution.workspace_bytes = 511;
  run_refused(rule::kWorkspace, p, work);
  work.execution.workspace_bytes = 512;
  runs(p, work);
  work.execution.workspace_offset = 64;
  run_refused(rule::kWorkspace, p, work);
  work.execution.workspace_offset = 4096 - 256;
  run_refused(rule::kWorkspace, p, work);
  work.execution.workspace = in;
  work.execution.workspace_offset = 0;
  run_refused(rule::kWorkspace, p, work);
  work.execution.workspace_offset = 512;
  runs(p, work);
}

TEST_F(ValidationPlanTest, WorkspaceIsAskedOfPlansThatSizeIt) {
  open();
  Addition work(in, out);
  bp_plan* plain = plan(work);
  uint64_t bytes = 0;
  refused(rule::kSizedWorkspace,
          [&](bp_error* e) { return api->plan_workspace(device, plain, &work.desc, &bytes, e); });
  puppet.plan_info.flags = BP_PLAN_ANY_SIZE | BP_PLAN_SIZED_WORKSPACE;
  puppet.workspace = 256;
  bp_plan* sized = plan(work);
  for (bp_tensor_desc& view : work.views) view.shape[0] = 40;
  EXPECT_OK(api->plan_workspace(device, sized, &work.desc, &bytes, &error));
  EXPECT_EQ(bytes, 256u);
  error = fresh_error();
  EXPECT_EQ(api->plan_execute(device, s, sized, &work.execution, &error), BP_INVALID_ARGUMENT);
  saw(rule::kWorkspace, error.message);
  work.execution.workspace = buffer();
  work.execution.workspace_bytes = 256;
  runs(sized, work);
  work.views[1].strides[0] = 2;
  refused(rule::kPlanIdentity, [&](bp_error* e) { return api->plan_workspace(device, sized, &work.desc, &bytes, e); });
}

TEST_F(ValidationPlanTest, ScalarsAreGivenAsPlanned) {
  open();
  Addition fill(in, out);
  fill.desc.op = BP_OP_FILL;
  fill.desc.input_count = 0;
  fill.desc.scalar_count = 1;
  bp_plan* p = plan(fill);
  run_refused(rule::kScalars, p, fill);
  bp_operand scalar = {in, 0, 0};
  fill.execution.scalars = &scalar;
  run_refused(rule::kScalars, p, fill);
  scalar = {nullptr, 0, 7};
  runs(p, fill);
  fill.desc.flags = BP_OP_FLAG_DEVICE_SCALARS;
  p = plan(fill);
  run_refused(rule::kScalars, p, fill);
  scalar = {in, 2, 0};
  run_refused(rule::kScalars, p, fill);
  scalar.offset = 4096;
  run_refused(rule::kScalars, p, fill);
  scalar.offset = 4;
  runs(p, fill);
}

}  // namespace

}  // namespace backplane::core::test
