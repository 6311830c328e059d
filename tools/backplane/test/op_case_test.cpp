// SPDX-License-Identifier: Apache-2.0
// Tests that minimal requests become complete calls: attributes are set by name, and shapes and
// dtypes follow the rules of the operator table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "host.hpp"
#include "op_case.hpp"

namespace tool {
namespace {

using testing::HasSubstr;

bph_op_info operator_named(const char* name) {
  bph_op_info info = sized<bph_op_info>();
  EXPECT_EQ(bph_op_by_name(name, &info, nullptr), BP_OK) << name;
  return info;
}

std::string refusal(auto body) {
  try {
    body();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.exit_code(), kExitUsage);
    return failure.what();
  }
  return "accepted";
}

TEST(Attributes, EveryFieldOfEveryStemIsReached) {
  std::set<std::string_view> stems;
  const auto all = operators();
  for (const bph_op_info& info : all) stems.insert(info.attributes);
  EXPECT_GT(stems.size(), 20u);
  for (const std::string_view stem : stems) {
    AttributeBlock block(stem);
    for (const AttributeField& field : block.fields()) {
      for (size_t i = 0; i < field.count; ++i) {
        EXPECT_GE(block.get(field.name, i), field.lo) << stem << '.' << field.name;
        EXPECT_LE(block.get(field.name, i), field.hi) << stem << '.' << field.name;
        block.set(field.name, field.hi, i);
        EXPECT_FLOAT_EQ(static_cast<float>(block.get(field.name, i)), static_cast<float>(field.hi)) << field.name;
      }
    }
  }
}

TEST(Attributes, WrittenWhereTheStructHasThem) {
  AttributeBlock block("conv");
  block.assign("stride=2,3");
  block.assign("groups=4");
  bp_conv_attributes attributes;
  std::memcpy(&attributes, block.data(), sizeof(attributes));
  EXPECT_EQ(attributes.struct_size, sizeof(bp_conv_attributes));
  EXPECT_EQ(attributes.groups, 4u);
  EXPECT_EQ(attributes.stride[0], 2);
  EXPECT_EQ(attributes.stride[1], 3);
  EXPECT_EQ(attributes.stride[2], 0);
  EXPECT_EQ(AttributeBlock("no").data(), nullptr);
}

TEST(Attributes, RefusalsNameLegalValues) {
  AttributeBlock block("scatter");
  EXPECT_THAT(refusal([&] { block.assign("mod=1"); }), HasSubstr("BP_SCATTER_SET"));
  EXPECT_THAT(refusal([&] { block.assign("mode=4"); }), HasSubstr("0..3"));
  EXPECT_THAT(refusal([&] { block.assign("mode=1.5"); }), HasSubstr("whole"));
  EXPECT_THAT(refusal([&] { block.assign("mode=nan"); }), HasSubstr("nan"));
  EXPECT_THAT(refusal([&] { block.assign("mode"); }), HasSubstr("NAME=VALUE"));
  EXPECT_THAT(refusal([&] { block.assign("mode=1,2"); }), HasSubstr("1 value"));
  EXPECT_THAT(refusal([&] { AttributeBlock("no").assign("x=1"); }), HasSubstr("has none"));
}

TEST(OpCase, EveryOperatorHasACallForEveryDtype) {
  const auto all = operators();
  EXPECT_EQ(all.size(), 43u + 38u);
  for (const bph_op_info& info : all) {
    for (const uint32_t dtype : dtypes_of(info.dtypes)) {
      OpRequest request;
      request.dtype = dtype;
      const OpCase op = make_case(info, request);
      EXPECT_GE(op.inputs.size(), info.inputs_min) << info.name;
      EXPECT_LE(op.inputs.size(), info.inputs_max) << info.name;
      EXPECT_GE(op.outputs.size(), info.outputs_min) << info.name;
      EXPECT_LE(op.outputs.size(), info.outputs_max) << info.name;
      EXPECT_EQ(op.scalars.size(), info.scalars_max) << info.name;
      for (const Operand& operand : op.outputs) EXPECT_GT(element_count(operand.shape), 0) << info.name;
    }
  }
}

OpCase made(const char* name, std::vector<Extents> shapes, std::vector<std::string> attributes = {}) {
  OpRequest request;
  request.shapes = std::move(shapes);
  request.attributes = std::move(attributes);
  return make_case(operator_named(name), request);
}

TEST(OpCase, OutputsFollowFromInputs) {
  EXPECT_EQ(made("matmul", {{2, 64, 32}, {2, 32, 16}}).outputs[0].shape, (Extents{2, 64, 16}));
  EXPECT_EQ(made("matmul", {{64, 32}}).inputs[1].shape, (Extents{32, 64}));
  EXPECT_EQ(made("reduce_sum", {{2, 3, 4}}, {"axes=5"}).outputs[0].shape, (Extents{1, 3, 1}));
  EXPECT_EQ(made("argmax", {{2, 3}}, {"axis=1"}).outputs[0].shape, (Extents{2, 1}));
  EXPECT_EQ(made("gather", {{5, 3}, {2, 3}}).outputs[0].shape, (Extents{2, 3}));
  EXPECT_EQ(made("gather", {{5, 3}, {2, 3}}).inputs[1].index_limit, 5);
  EXPECT_EQ(made("fill", {{7}}).outputs[0].shape, (Extents{7}));
  EXPECT_EQ(made("conv", {{1, 3, 8, 8}, {4, 3, 3, 3}}, {"pad_begin=1,1", "pad_end=1,1"}).outputs[0].shape,
            (Extents{1, 4, 8, 8}));
}

TEST(OpCase, TooMuchIsRefused) {
  EXPECT_THAT(refusal([] { made("neg", {{1}, {2}}); }), HasSubstr("1 operand"));
  OpRequest request;
  request.dtype = BP_I32;
  EXPECT_THAT(refusal([&] { make_case(operator_named("sqrt"), request); }), HasSubstr("f32"));
}

}  // namespace
}  // namespace tool
