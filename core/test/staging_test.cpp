// SPDX-License-Identifier: Apache-2.0
// Tests the arguments of executions and the state after failures: staging, immediates, stream
// caches, and recurring sizes.
#include <algorithm>

#include "dispatch/descriptor.hpp"
#include "memory_fixture.hpp"

namespace backplane::core::test {
namespace {

class StagingTest : public MemoryTest {
 protected:
  // One execution as the plugin received it.
  struct Seen {
    uint32_t op;
    uint64_t flags;
    std::vector<bp_tensor_desc> outputs;
    std::vector<bp_operand> inputs, scalars;
  };

  void open(FakeOptions options = {}, const bph_device_desc* desc = nullptr) {
    MemoryTest::open(options, desc);
    fake->on_execute = [this](const bp_execution& execution) {
      const bp_op_desc& told = *execution.desc;
      seen.push_back({told.op,
                      told.flags,
                      {told.outputs, told.outputs + told.output_count},
                      {execution.inputs, execution.inputs + told.input_count},
                      {execution.scalars, execution.scalars + told.scalar_count}});
    };
    one = stream();
  }

  bph_stats stats() {
    bph_stats all = {};
    all.struct_size = sizeof(all);
    EXPECT_EQ(bph_device_stats(device, &all, nullptr), BP_OK);
    return all;
  }
  bph_tensor tensor(uint32_t dtype, const std::vector<int64_t>& shape) {
    bph_tensor view = {};
    view.dtype = static_cast<uint16_t>(dtype);
    view.rank = static_cast<uint8_t>(shape.size());
    int64_t stride = 1;
    for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
      view.shape[d] = shape[d];
      view.strides[d] = stride;
    }
    view.buffer = create(4096, one);
    return view;
  }
  bp_status execute(uint32_t op, const std::vector<bph_tensor>& inputs, const std::vector<bph_tensor>& outputs,
                    bp_error* error, const void* attributes = nullptr, const std::vector<uint64_t>& scalars = {}) {
    bph_call call = {};
    call.struct_size = sizeof(call);
    call.op = op;
    call.attributes = attributes;
    call.inputs = inputs.data();
    call.outputs = outputs.data();
    call.scalars = scalars.data();
    call.input_count = static_cast<uint32_t>(inputs.size());
    call.output_count = static_cast<uint32_t>(outputs.size());
    call.scalar_count = static_cast<uint32_t>(scalars.size());
    return bph_execute(one, &call, error);
  }

  bph_stream* one = nullptr;
  std::vector<Seen> seen;
};

bph_tensor immediate_like(bph_tensor view, uint64_t value) {
  view.buffer = nullptr;
  view.flags = BPH_TENSOR_IMMEDIATE;
  view.immediate = value;
  return view;
}

TEST_F(StagingTest, ValuesComeWithoutBitsAboveTheirDtype) {
  open();
  const bph_tensor a = tensor(BP_F32, {4}), out = tensor(BP_F32, {4}), half = tensor(BP_F16, {4});
  const bph_tensor dirty = immediate_like(a, 0xFFFFFFFF3F000000u);
  // The first execution creates the plan, and the second uses the cached plan.
  for (int use = 0; use < 2; ++use) {
    ASSERT_OK(execute(BP_OP_ADD, {dirty, a}, {out}, &error));
    EXPECT_EQ(seen.back().inputs[0].immediate, 0x3F000000u);
    ASSERT_OK(execute(BP_OP_FILL, {}, {half}, &error, nullptr, {0xABCDEF0112345678u}));
    EXPECT_EQ(seen.back().scalars[0].immediate, 0x5678u);
  }
}

TEST_F(StagingTest, AnOutputNamesTheFirstIdenticalInputThatStays) {
  open();
  const bph_tensor a = tensor(BP_F32, {4}), other = tensor(BP_F32, {4});
  const auto alias_of = [&](uint32_t staged, const std::vector<bph_tensor>& inputs) {
    EXPECT_EQ(bph_device_trim(device, 1, nullptr, nullptr), BP_OK);
    fake->on_plan = [staged](const bp_op_desc& desc, bp_plan_info& info) {
      if (desc.op == BP_OP_SUB) info.stage_inputs = staged;
      return BP_OK;
    };
    EXPECT_OK(execute(BP_OP_SUB, inputs, {a}, &error));
    return seen.back().outputs[0].alias;
  };
  EXPECT_EQ(alias_of(0, {a, a}), 1);
  EXPECT_EQ(alias_of(1, {a, a}), 2);
  EXPECT_EQ(alias_of(2, {a, a}), 1);
  EXPECT_EQ(alias_of(3, {a, a}), 0);
  EXPECT_EQ(alias_of(1, {a, other}), 0);
}

TEST_F(StagingTest, AnAbsentOutputIsNotCopiedBack) {
  open();
  fake->on_plan = [](const bp_op_desc& desc, bp_plan_info& info) {
    if (desc.op == BP_OP_LAYER_NORM) info.stage_outputs = 7;
    return BP_OK;
  };
  const bp_norm_attributes over_rows = {sizeof(over_rows), 2, 1e-5f, 0};
  const bph_tensor x = tensor(BP_F32, {2, 3}), y = tensor(BP_F32, {2, 3}), rstd = tensor(BP_F32, {2, 1});
  ASSERT_OK(execute(BP_OP_LAYER_NORM, {x}, {y, bph_tensor{}, rstd}, &error, &over_rows));
  EXPECT_EQ(seen.size(), 3u) << "the operator and two copies back";
  EXPECT_EQ(stats().staged_operands, 2u);
}

TEST_F(StagingTest, WhatStagingNeedsIsThereBeforeAnythingIsEnqueued) {
  open();
  const bp_topk_attributes first_axis = {sizeof(first_axis), 0, 0, 0};
  const bph_tensor x = tensor(BP_F32, {8}), values = tensor(BP_F32, {2}), indices = tensor(BP_I32, {2});
  bool fails = true;
  fake->on_plan = [&](const bp_op_desc& desc, bp_plan_info& info) -> bp_status {
    if (desc.op == BP_OP_TOPK) info.stage_inputs = 1, info.stage_outputs = 3;
    return fails && desc.op == BP_OP_COPY && desc.inputs[0].dtype == BP_I32 ? BP_OUT_OF_MEMORY : BP_OK;
  };
  EXPECT_FAILS(execute(BP_OP_TOPK, {x}, {values, indices}, &error, &first_axis), BP_OUT_OF_MEMORY, "makes no plan");
  EXPECT_EQ(seen.size(), 0u);
  fails = false;
  ASSERT_OK(execute(BP_OP_TOPK, {x}, {values, indices}, &error, &first_axis));
  EXPECT_EQ(seen.size(), 4u);
}

TEST_F(StagingTest, AScalarInDeviceMemoryReachesEveryPlugin) {
  open();
  bool reads_scalars = true;
  fake->on_plan = [&](const bp_op_desc& desc, bp_plan_info&) -> bp_status {
    return (desc.flags & BP_OP_FLAG_DEVICE_SCALARS) != 0 && !reads_scalars ? BP_UNSUPPORTED : BP_OK;
  };
  const bph_tensor out = tensor(BP_F16, {2, 3});
  bph_tensor value = tensor(BP_F16, {});
  value.offset = 6;
  bph_call call = {};
  call.struct_size = sizeof(call);
  call.op = BP_OP_FILL;
  call.flags = BP_OP_FLAG_DEVICE_SCALARS;
  call.outputs = &out;
  call.output_count = 1;
  call.scalar_tensors = &value;
  call.scalar_count = 1;
  ASSERT_OK(bph_execute(one, &call, &error));
  EXPECT_EQ(seen.back().op, BP_OP_FILL);
  EXPECT_EQ(seen.back().flags, BP_OP_FLAG_DEVICE_SCALARS);
  const bph_buffer_info memory = info(value.buffer);
  EXPECT_EQ(seen.back().scalars[0].buffer, memory.plugin_buffer);
  EXPECT_EQ(seen.back().scalars[0].offset, memory.plugin_offset + 6);

  EXPECT_EQ(bph_device_trim(device, 1, nullptr, nullptr), BP_OK);
  reads_scalars = false;
  ASSERT_OK(bph_execute(one, &call, &error));
  EXPECT_EQ(seen.back().op, BP_OP_COPY);
  EXPECT_EQ(seen.back().flags, 0u);
  EXPECT_EQ(seen.back().inputs[0].buffer, memory.plugin_buffer);
  EXPECT_EQ(seen.back().inputs[0].offset, memory.plugin_offset + 6);
  // Core cannot decompose iota, so the call is refused.
  bph_tensor start = tensor(BP_F32, {});
  const bph_tensor both[] = {start, start};
  const bph_tensor numbers = tensor(BP_F32, {4});
  const bp_axis_attributes axis = {sizeof(axis), 0};
  call.op = BP_OP_IOTA;
  call.attributes = &axis;
  call.outputs = &numbers;
  call.scalar_tensors = both;
  call.scalar_count = 2;
  EXPECT_FAILS(bph_execute(one, &call, &error), BP_UNSUPPORTED, "makes no plan of this");
}

TEST_F(StagingTest, ACopyThatWantsStagingIsTheDefectOfThePlugin) {
  open();
  const bph_tensor a = tensor(BP_F32, {4}), out = tensor(BP_F32, {4});
  fake->on_plan = [](const bp_op_desc&, bp_plan_info& info) {
    info.stage_outputs = 1;
    return BP_OK;
  };
  EXPECT_FAILS(execute(BP_OP_COPY, {a}, {out}, &error), BP_INTERNAL, "staging of operands of copy");
  EXPECT_FAILS(execute(BP_OP_NEG, {a}, {out}, &error), BP_INTERNAL, "staging of operands of copy");
  EXPECT_EQ(seen.size(), 0u);
}

TEST_F(StagingTest, APartOfAnExecutionKeepsItsBuffers) {
  open();
  fake->hold();
  const bph_tensor a = tensor(BP_F32, {4});
  bph_tensor out = a;
  bph_buffer_desc desc = desc_of(4096, one);
  desc.flags = BPH_BUFFER_RAW;
  out.buffer = create(desc);
  fake->submit_part("plan_execute");
  EXPECT_FAILS(execute(BP_OP_NEG, {a}, {out}, &error), BP_EXECUTION_FAILED, "a part of plan_execute");
  bph_buffer_release(out.buffer);
  EXPECT_EQ(fake->calls("buffer_destroy"), 0u) << "the part still writes to it";
  EXPECT_FAILS(bph_stream_wait(one, BP_WAIT_FOREVER, &error), BP_EXECUTION_FAILED, "broken");
  EXPECT_EQ(fake->calls("buffer_destroy"), 1u);
}

TEST_F(StagingTest, WhatACallIgnoresDoesNotHideItsEntry) {
  bph_device_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.plan_cache_entries = 1;  // the device's cache holds one entry, so only the stream's cache can hold all entries
  open({}, &desc);
  const bph_tensor a = tensor(BP_F32, {4}), out = tensor(BP_F32, {4}), cell = tensor(BP_F32, {}),
                   other = tensor(BP_F32, {});
  const auto run = [&](int64_t garbage) {
    bph_tensor half = immediate_like(a, 0), from = cell, to = other;
    std::fill(std::begin(half.strides), std::end(half.strides), garbage);
    for (bph_tensor* view : {&from, &to}) {
      std::fill(std::begin(view->shape), std::end(view->shape), garbage);
      std::fill(std::begin(view->strides), std::end(view->strides), garbage);
    }
    ASSERT_OK(execute(BP_OP_ADD, {half, a}, {out}, &error));
    for (const uint32_t op : {BP_OP_NEG, BP_OP_ABS}) ASSERT_OK(execute(op, {from}, {to}, &error));
  };
  run(1);
  const uint64_t plans = fake->calls("plan_create");
  for (int64_t garbage = 2; garbage < 40; ++garbage) run(garbage * 0x123456789);
  EXPECT_EQ(fake->calls("plan_create"), plans);
}

TEST_F(StagingTest, ARecurringSizeWithoutABetterPlanKeepsItsOwn) {
  for (const bp_status status : {BP_INTERNAL, BP_OUT_OF_MEMORY, BP_DEVICE_LOST}) {
    open();
    fake->on_plan = [](const bp_op_desc&, bp_plan_info& info) {
      info.flags = BP_PLAN_ANY_SIZE | BP_PLAN_SPECIALIZABLE;
      return BP_OK;
    };
    // The second call of plan_create requests the specialized plan.
    fake->fail("plan_create", status, {.skip = 1, .times = UINT32_MAX, .message = "no specialized plan"});
    const bph_tensor a = tensor(BP_F32, {4}), out = tensor(BP_F32, {4});
    for (int use = 1; use <= 5; ++use) {
      if (status == BP_DEVICE_LOST && use == 3) {
        EXPECT_FAILS(execute(BP_OP_NEG, {a}, {out}, &error), BP_DEVICE_LOST, "no specialized plan");
      } else {
        ASSERT_OK(execute(BP_OP_NEG, {a}, {out}, &error));
      }
    }
    EXPECT_EQ(fake->calls("plan_create"), 2u) << "asked once";
    close();
    seen.clear();
  }
}

TEST_F(StagingTest, ABetterPlanReplacesItsOwnEntryOnly) {
  bph_device_desc desc = {};
  desc.struct_size = sizeof(desc);
  desc.plan_cache_entries = 1;
  open({}, &desc);
  fake->on_plan = [](const bp_op_desc& asked, bp_plan_info& info) {
    if (asked.op == BP_OP_NEG) info.flags = BP_PLAN_ANY_SIZE | BP_PLAN_SPECIALIZABLE;
    return BP_OK;
  };
  const bph_tensor a = tensor(BP_F32, {4}), out = tensor(BP_F32, {4});
  const auto specialize = [&](bph_stream* on) {
    std::swap(on, one);
    EXPECT_OK(execute(BP_OP_NEG, {a}, {out}, &error));
    std::swap(on, one);
    return (seen.back().flags & BP_OP_FLAG_SPECIALIZE) != 0;
  };
  bph_stream* two = stream();
  ASSERT_OK(execute(BP_OP_ABS, {a}, {out}, &error));
  EXPECT_FALSE(specialize(two));
  EXPECT_FALSE(specialize(one));
  EXPECT_FALSE(specialize(one)) << "the third use makes it";
  EXPECT_TRUE(specialize(one));
  const uint64_t plans = fake->calls("plan_create");
  EXPECT_FALSE(specialize(two)) << "this stream's own entry, once more";
  EXPECT_TRUE(specialize(two));
  ASSERT_OK(execute(BP_OP_ABS, {a}, {out}, &error));
  EXPECT_EQ(fake->calls("plan_create"), plans) << "the stream still knows what was not replaced";
}

TEST_F(StagingTest, AnInvalidArgumentOfPlanCreateIsARefusalAndTheDefectOfThePlugin) {
  open();
  fake->on_plan = [](const bp_op_desc& asked, bp_plan_info& info) {
    info.flags = BP_PLAN_ANY_SIZE;
    return asked.op == BP_OP_NEG || asked.op == BP_OP_SILU ? BP_INVALID_ARGUMENT : BP_OK;
  };
  const bph_tensor a = tensor(BP_F32, {4}), out = tensor(BP_F32, {4});
  EXPECT_FAILS(execute(BP_OP_NEG, {a}, {out}, &error), BP_UNSUPPORTED, "a defect of the plugin");
  EXPECT_EQ(stats().plugin_faults, 1u);
  ASSERT_TRUE(seen.empty());
  EXPECT_FAILS(execute(BP_OP_SILU, {a}, {out}, &error), BP_UNSUPPORTED, "needs neg");
  EXPECT_EQ(stats().plugin_faults, 3u) << "of the composite, and of a step of its decomposition";
}

TEST_F(StagingTest, SupportIsAskedOnce) {
  open();
  fake->on_plan = [](const bp_op_desc& asked, bp_plan_info& info) {
    info.flags = BP_PLAN_ANY_SIZE;
    info.workspace_bytes = 64;
    return asked.op == BP_OP_NEG ? BP_UNSUPPORTED : BP_OK;
  };
  const bph_tensor a = tensor(BP_F32, {4}), out = tensor(BP_F32, {4});
  const auto ask = [&](uint32_t op, bph_support& support, bp_error* error) {
    bph_call call = {};
    call.struct_size = sizeof(call);
    call.op = op;
    call.inputs = &a;
    call.outputs = &out;
    call.input_count = call.output_count = 1;
    support.struct_size = sizeof(support);
    return bph_device_supports(device, &call, &support, error);
  };
  bph_support support = {};
  for (int times = 0; times < 3; ++times) {
    ASSERT_OK(ask(BP_OP_EXP, support, &error));
    EXPECT_EQ(support.workspace_bytes, 64u);
    EXPECT_FAILS(ask(BP_OP_NEG, support, &error), BP_UNSUPPORTED, "");
  }
  EXPECT_EQ(fake->calls("plan_create"), 2u) << "answers are kept, refusals too";
  ASSERT_OK(execute(BP_OP_ABS, {a}, {out}, &error));
  ASSERT_OK(ask(BP_OP_ABS, support, &error));
  EXPECT_EQ(support.path, BPH_PATH_NATIVE);
  EXPECT_EQ(fake->calls("plan_create"), 3u) << "a plan is its own answer";
  ASSERT_OK(bph_device_trim(device, 1, nullptr, &error));
  ASSERT_OK(ask(BP_OP_EXP, support, &error));
  EXPECT_EQ(fake->calls("plan_create"), 4u) << "forgotten with the plans";
}

TEST_F(StagingTest, OnlyAQuestionMayHaveUnknownFacts) {
  open();
  fake->on_plan = [](const bp_op_desc&, bp_plan_info& info) {
    info.flags = BP_PLAN_FACTS_UNKNOWN;
    info.workspace_bytes = BP_WORKSPACE_UNKNOWN;
    return BP_OK;
  };
  const bph_tensor a = tensor(BP_F32, {4}), out = tensor(BP_F32, {4});
  bph_call call = {};
  call.struct_size = sizeof(call);
  call.op = BP_OP_ABS;
  call.inputs = &a;
  call.outputs = &out;
  call.input_count = call.output_count = 1;
  bph_support support = {};
  support.struct_size = sizeof(support);
  ASSERT_OK(bph_device_supports(device, &call, &support, &error));
  EXPECT_EQ(support.plan_flags, BP_PLAN_FACTS_UNKNOWN);
  EXPECT_EQ(support.workspace_bytes, BP_WORKSPACE_UNKNOWN);
  EXPECT_FAILS(execute(BP_OP_ABS, {a}, {out}, &error), BP_INTERNAL, "facts are unknown");
}

}  // namespace
}  // namespace backplane::core::test
