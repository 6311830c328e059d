// SPDX-License-Identifier: Apache-2.0
// Tests that core accepts one legal descriptor per operator, and refuses descriptors that each
// break one rule.
#include "dispatch/validate.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/strided_view.hpp"

namespace backplane::core::test {
namespace {

// An operator descriptor that owns its parts.
struct Desc {
  std::vector<bp_tensor_desc> inputs, outputs;
  alignas(8) unsigned char attributes[kMaxAttributeBytes] = {};
  bp_op_desc op = {};

  static bp_tensor_desc view(uint32_t dtype, std::vector<int64_t> shape) {
    bp_tensor_desc desc = {};
    desc.dtype = static_cast<uint16_t>(dtype);
    desc.rank = static_cast<uint8_t>(shape.size());
    desc.alignment_log2 = 8;
    std::copy(shape.begin(), shape.end(), desc.shape);
    make_dense(desc);
    return desc;
  }
  void check(const OpRow& row) {
    op.struct_size = sizeof(op);
    op.op = row.id;
    op.inputs = inputs.data();
    op.outputs = outputs.data();
    op.input_count = static_cast<uint32_t>(inputs.size());
    op.output_count = static_cast<uint32_t>(outputs.size());
    op.attributes = row.attributes->bytes == 0 ? nullptr : attributes;
    validate(row, op);
  }
};

// Makes a legal descriptor of a primitive from the primitive's rules.
Desc legal(const OpRow& row) {
  Desc desc;
  uint32_t t = BP_F32;
  if ((row.dtypes & BP_DTYPE_BIT(t)) == 0) t = BP_U32;
  desc.op.scalar_count = row.scalars_max;
  const std::vector<int64_t> shape{4, 6};
  std::vector<int64_t> out = shape;
  if (row.shape_rule == BP_SHAPE_ARG) out = {1, 6};
  for (uint32_t i = 0; i < row.inputs_min; ++i) desc.inputs.push_back(Desc::view(t, shape));
  for (uint32_t i = 0; i < row.outputs_min; ++i) desc.outputs.push_back(Desc::view(t, out));
  if (row.shape_rule == BP_SHAPE_MATMUL) {
    desc.inputs = {Desc::view(t, {4, 5}), Desc::view(t, {5, 6})};
  }
  switch (row.dtype_rule) {
    case BP_RULE_GATHER:
      desc.inputs[1] = Desc::view(BP_I32, shape);
      break;
    case BP_RULE_SCATTER:
      desc.inputs[0] = Desc::view(BP_I32, shape);
      break;
    case BP_RULE_COMPARE:
      desc.outputs[0] = Desc::view(BP_BOOL, shape);
      break;
    case BP_RULE_SELECT:
      desc.inputs[0] = Desc::view(BP_BOOL, shape);
      break;
    case BP_RULE_INDEX:
      desc.outputs[0] = Desc::view(BP_I32, out);
      break;
    case BP_RULE_SORT:
      desc.outputs.resize(2, Desc::view(BP_I32, shape));
      break;
    default:
      break;
  }
  return desc;
}

const OpRow& row_of(uint32_t op) { return require_op(op); }

std::string refusal(Desc& desc, const OpRow& row, bp_status status = BP_INVALID_ARGUMENT) {
  try {
    desc.check(row);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), status) << error.what();
    EXPECT_EQ(std::string(error.what()).rfind(row.name, 0), 0u) << "names the operator: " << error.what();
    return error.what();
  }
  ADD_FAILURE() << row.name << " was accepted";
  return {};
}

class Primitive : public testing::TestWithParam<const OpRow*> {};

TEST_P(Primitive, LegalDescriptorIsAccepted) {
  Desc desc = legal(*GetParam());
  EXPECT_NO_THROW(desc.check(*GetParam()));
}

TEST_P(Primitive, BrokenRulesAreRefused) {
  const OpRow& row = *GetParam();
  struct Fault {
    const char* word;
    bp_status status;
    std::function<void(Desc&)> break_it;
  };
  const std::vector<Fault> faults = {
      {"outputs", BP_INVALID_ARGUMENT, [](Desc& d) { d.outputs.clear(); }},
      {"inputs", BP_UNSUPPORTED,
       [](Desc& d) {
         d.inputs.push_back(Desc::view(BP_F32, {4, 6}));
       }},
      {"scalars", BP_UNSUPPORTED, [](Desc& d) { ++d.op.scalar_count; }},
      {"rank", BP_INVALID_ARGUMENT, [](Desc& d) { d.outputs[0].rank = 9; }},
      {"dtype", BP_UNSUPPORTED, [](Desc& d) { d.outputs[0].dtype = 30; }},
      {"dtype 65535", BP_UNSUPPORTED, [](Desc& d) { d.outputs[0].dtype = 65535; }},
      {"negative", BP_INVALID_ARGUMENT, [](Desc& d) { d.outputs[0].shape[1] = -1; }},
      {"63 bits", BP_UNSUPPORTED, [](Desc& d) { d.outputs[0].strides[1] = INT64_MAX / 2; }},
      {"one address", BP_INVALID_ARGUMENT, [](Desc& d) { d.outputs[0].shape[1] = 6, d.outputs[0].strides[1] = 0; }},
      {"immediate", BP_UNSUPPORTED, [](Desc& d) { d.outputs[0].flags = BP_DESC_IMMEDIATE; }},
      {"only inputs may be", BP_UNSUPPORTED, [](Desc& d) { d.outputs[0].flags = BP_DESC_PACKED; }},
      {"flags", BP_UNSUPPORTED, [](Desc& d) { d.outputs[0].flags = 4; }},
      {"of 0 inputs", BP_INVALID_ARGUMENT,
       [](Desc& d) { d.outputs[0].alias = static_cast<uint16_t>(d.inputs.size() + 1); }},
  };
  for (const auto& [word, status, break_it] : faults) {
    Desc desc = legal(row);
    break_it(desc);
    const bool names_inputs = std::string_view(word) == "of 0 inputs";
    const std::string found = names_inputs ? "of " + std::to_string(row.inputs_min) + " inputs" : word;
    EXPECT_NE(refusal(desc, row, status).find(found), std::string::npos) << row.name << ": " << word;
  }
  if (row.scalars_min != 0) {
    Desc desc = legal(row);
    --desc.op.scalar_count;
    EXPECT_NE(refusal(desc, row).find("scalars"), std::string::npos);
  }
  if (dtype_bytes(legal(row).outputs[0].dtype) > 1) {
    Desc desc = legal(row);
    desc.outputs[0].alignment_log2 = 0;
    EXPECT_NE(refusal(desc, row, BP_UNSUPPORTED).find("aligned to 1 bytes"), std::string::npos);
  }
  Desc hinted = legal(row);
  hinted.op.hints = UINT32_MAX;
  for (bp_tensor_desc& view : hinted.inputs) view.flags |= BP_DESC_HINTS;
  for (bp_tensor_desc& view : hinted.outputs) view.flags |= BP_DESC_HINTS;
  EXPECT_NO_THROW(hinted.check(row)) << "hints are ignored";
  if (row.inputs_min > 0) {
    Desc shape = legal(row);
    shape.inputs[0].shape[1] = 3;
    refusal(shape, row);
    Desc rank = legal(row);
    rank.inputs[0].rank = 1;
    refusal(rank, row);
    Desc dtype = legal(row);
    dtype.inputs[0].dtype = 0;
    refusal(dtype, row);
  }
  if (row.shape_rule != BP_SHAPE_ELEMENTWISE && row.inputs_min > 0) {
    Desc alias = legal(row);
    alias.outputs[0].alias = 1;
    EXPECT_NE(refusal(alias, row).find("in place"), std::string::npos);
  }
  Desc flags = legal(row);
  flags.op.flags = BP_OP_FLAGS_ALL + 1;
  refusal(flags, row, BP_UNSUPPORTED);
}

std::vector<const OpRow*> primitives() {
  std::vector<const OpRow*> rows;
  for (const OpRow& row : op_rows()) {
    if (row.kind == BP_KIND_PRIMITIVE) rows.push_back(&row);
  }
  return rows;
}
INSTANTIATE_TEST_SUITE_P(All, Primitive, testing::ValuesIn(primitives()),
                         [](const auto& test) { return std::string(test.param->name); });

TEST(Validate, MatmulSaysTheShapes) {
  Desc desc = legal(row_of(BP_OP_MATMUL));
  desc.inputs[1] = Desc::view(BP_F32, {7, 6});
  EXPECT_NE(refusal(desc, row_of(BP_OP_MATMUL)).find("[4,5] times [7,6] to [4,6]"), std::string::npos);
}

TEST(Validate, SumWidens) {
  const OpRow& row = row_of(BP_OP_REDUCE_SUM);
  const auto accepts = [&](uint32_t from, uint32_t to) {
    Desc desc;
    desc.inputs = {Desc::view(from, {4, 6})};
    desc.outputs = {Desc::view(to, {4, 6})};
    try {
      desc.check(row);
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  EXPECT_TRUE(accepts(BP_F16, BP_F32));
  EXPECT_FALSE(accepts(BP_F32, BP_F64));
  EXPECT_TRUE(accepts(BP_I8, BP_I32));
  EXPECT_TRUE(accepts(BP_U8, BP_I64));
  EXPECT_TRUE(accepts(BP_BOOL, BP_I32));
  EXPECT_FALSE(accepts(BP_BOOL, BP_BOOL));
  EXPECT_FALSE(accepts(BP_I32, BP_F32));
}

TEST(Validate, AxesBeyondTheRankAreRefused) {
  for (const uint32_t op : {BP_OP_IOTA, BP_OP_GATHER, BP_OP_SCATTER, BP_OP_ARGMAX, BP_OP_CUMSUM, BP_OP_SORT}) {
    Desc desc = legal(row_of(op));
    const uint32_t axis = 2;
    std::memcpy(desc.attributes + 4, &axis, sizeof(axis));
    EXPECT_NE(refusal(desc, row_of(op)).find("axis is 2"), std::string::npos);
  }
  Desc desc = legal(row_of(BP_OP_REDUCE_SUM));
  const uint32_t axes = 4;
  std::memcpy(desc.attributes + 4, &axes, sizeof(axes));
  EXPECT_NE(refusal(desc, row_of(BP_OP_REDUCE_SUM)).find("0b100"), std::string::npos);
}

TEST(Validate, AttributesAreReadBySizeAndRange) {
  unsigned char out[kMaxAttributeBytes];
  const auto status = [&](const OpRow& row, const void* attributes) {
    try {
      read_attributes(row, attributes, out);
      return BP_OK;
    } catch (const Error& error) {
      return error.status();
    }
  };
  struct Grown {
    bp_compare_attributes known;
    uint64_t later;
  } compare = {{sizeof(Grown), BP_COMPARE_GE}, 0};
  EXPECT_EQ(status(row_of(BP_OP_COMPARE), &compare), BP_OK);
  EXPECT_EQ(reinterpret_cast<bp_compare_attributes*>(out)->struct_size, sizeof(bp_compare_attributes));
  compare.later = 1;
  EXPECT_EQ(status(row_of(BP_OP_COMPARE), &compare), BP_UNSUPPORTED);
  compare = {{4, BP_COMPARE_GE}, 0};
  EXPECT_EQ(status(row_of(BP_OP_COMPARE), &compare), BP_INVALID_ARGUMENT);
  compare = {{8, 6}, 0};
  EXPECT_EQ(status(row_of(BP_OP_COMPARE), &compare), BP_UNSUPPORTED);
  EXPECT_EQ(status(row_of(BP_OP_COMPARE), nullptr), BP_INVALID_ARGUMENT);
  EXPECT_EQ(status(row_of(BP_OP_ADD), nullptr), BP_OK);
  const bp_scatter_attributes scatter = {sizeof(scatter), 0, BP_SCATTER_ADD, 1};
  EXPECT_EQ(status(row_of(BP_OP_SCATTER), &scatter), BP_UNSUPPORTED) << "a reserved field is zero";
  const bp_norm_attributes norm = {sizeof(norm), 1, std::numeric_limits<float>::quiet_NaN(), 0};
  EXPECT_EQ(status(row_of(BP_OP_LAYER_NORM), &norm), BP_UNSUPPORTED);
}

}  // namespace
}  // namespace backplane::core::test
