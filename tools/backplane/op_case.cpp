// SPDX-License-Identifier: Apache-2.0
// Derives complete calls of primitives from minimal requests. composite_case.cpp does the same for
// composites.
#include "op_case.hpp"

#include <algorithm>

#include "host.hpp"

namespace tool {
namespace {

uint32_t default_dtype(const bph_op_info& info) {
  for (const uint32_t dtype : {BP_F32, BP_I32, BP_U32, BP_U8, BP_BOOL}) {
    if ((info.dtypes & BP_DTYPE_BIT(dtype)) != 0) return dtype;
  }
  return dtypes_of(info.dtypes).at(0);
}

std::string dtype_names(uint64_t mask) {
  std::vector<std::string> names;
  for (const uint32_t dtype : dtypes_of(mask)) names.push_back(bph_dtype_name(dtype));
  return fmt::format("{}", fmt::join(names, ", "));
}

// Returns the dtypes of the inputs, where `dtype` is the T of the operator's dtype rule. output_dtypes() returns the
// dtypes of the outputs.
std::vector<uint32_t> input_dtypes(const bph_op_info& info, uint32_t dtype) {
  switch (info.dtype_rule) {
    case BP_RULE_GATHER:
      return {dtype, BP_I32};
    case BP_RULE_SCATTER:
      return {BP_I32, dtype};
    case BP_RULE_SELECT:
      return {BP_BOOL, dtype, dtype};
    case BP_RULE_MATMUL:
      return {dtype, dtype == BP_U8 ? static_cast<uint32_t>(BP_I8) : dtype};
    default:
      return std::vector<uint32_t>(info.inputs_min, dtype);
  }
}

Extents with_extent_one(Extents shape, uint32_t axes) {
  for (size_t i = 0; i < shape.size(); ++i) {
    if ((axes >> i & 1) != 0) shape[i] = 1;
  }
  return shape;
}

// Returns the shape [B.., K, M] for [B.., M, K]. A matmul of the two shapes has a square output.
Extents transposed(Extents shape) {
  if (shape.size() >= 2) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  return shape;
}

Extents shape_or(const std::vector<Extents>& shapes, size_t index, const Extents& otherwise) {
  return index < shapes.size() ? shapes[index] : otherwise;
}

void assign_shapes(OpCase& op, const OpRequest& request) {
  const Extents first = shape_or(request.shapes, 0, {4, 4});
  for (size_t i = 0; i < op.inputs.size(); ++i) op.inputs[i].shape = shape_or(request.shapes, i, first);
  Extents out = first;
  switch (op.info.shape_rule) {
    case BP_SHAPE_GATHER:
      out = op.inputs[1].shape;
      break;
    case BP_SHAPE_REDUCE:
      out = with_extent_one(first, static_cast<uint32_t>(op.attributes.get("axes")));
      break;
    case BP_SHAPE_ARG:
      out = with_extent_one(first, 1u << static_cast<uint32_t>(op.attributes.get("axis")));
      break;
    case BP_SHAPE_MATMUL:
      op.inputs[1].shape = shape_or(request.shapes, 1, transposed(first));
      if (first.size() >= 2 && op.inputs[1].shape.size() >= 2) out.back() = op.inputs[1].shape.back();
      break;
    default:
      break;
  }
  for (size_t i = 0; i < op.outputs.size(); ++i) op.outputs[i].shape = shape_or(request.out_shapes, i, out);

  if (op.info.dtype_rule != BP_RULE_GATHER && op.info.dtype_rule != BP_RULE_SCATTER) return;
  const bool gather = op.info.dtype_rule == BP_RULE_GATHER;
  const Extents& selected = gather ? op.inputs[0].shape : op.outputs[0].shape;
  const size_t axis = static_cast<size_t>(op.attributes.get("axis"));
  op.inputs[gather ? 1 : 0].index_limit = axis < selected.size() ? selected[axis] : 1;
}

void make_primitive(OpCase& op, const OpRequest& request) {
  for (const uint32_t dtype : input_dtypes(op.info, op.dtype)) op.inputs.push_back({dtype, {}, 0});
  for (uint32_t i = 0; i < op.info.outputs_max; ++i) {
    const bool indices = op.info.dtype_rule == BP_RULE_SORT && i == 1;
    op.outputs.push_back({indices ? static_cast<uint32_t>(BP_I32) : output_dtypes(op.info, op.dtype).front(), {}, 0});
  }
  if (request.out_dtype != 0) op.outputs[0].dtype = request.out_dtype;
  assign_shapes(op, request);
}

}  // namespace

std::vector<uint32_t> dtypes_of(uint64_t mask) {
  std::vector<uint32_t> dtypes;
  for (uint32_t dtype = 0; dtype < BP_DTYPE_LIMIT; ++dtype) {
    if ((mask & BP_DTYPE_BIT(dtype)) != 0) dtypes.push_back(dtype);
  }
  return dtypes;
}

std::vector<uint32_t> output_dtypes(const bph_op_info& info, uint32_t dtype) {
  const bool narrow_float = dtype == BP_F16 || dtype == BP_BF16;
  switch (info.dtype_rule) {
    case BP_RULE_CAST: {
      std::vector<uint32_t> all = dtypes_of(info.dtypes);
      const uint32_t first = dtype == BP_F32 ? BP_I32 : BP_F32;
      std::stable_partition(all.begin(), all.end(), [&](uint32_t other) { return other == first; });
      return all;
    }
    case BP_RULE_COMPARE:
      return {BP_BOOL};
    case BP_RULE_INDEX:
      return {BP_I32};
    case BP_RULE_SUM:
      if (narrow_float) return {dtype, BP_F32};
      if (dtype == BP_BOOL) return {BP_I32, BP_I64};
      if ((BP_SET_FLOATS & BP_DTYPE_BIT(dtype)) != 0 || dtype == BP_I64) return {dtype};
      if (dtype == BP_I32) return {dtype, BP_I64};
      return {dtype, BP_I32, BP_I64};
    case BP_RULE_MATMUL:
      if (narrow_float) return {dtype, BP_F32};
      if (dtype == BP_U8 || dtype == BP_I8) return {BP_I32};
      return {dtype};
    default:
      return {dtype};
  }
}

const char* group_of(const bph_op_info& info) {
  if (info.kind == BP_KIND_COMPOSITE) return "composite";
  switch (info.shape_rule) {
    case BP_SHAPE_GENERATE:
      return "generate";
    case BP_SHAPE_ELEMENTWISE:
      return info.inputs_min == 1 ? "unary" : info.inputs_min == 2 ? "binary" : "ternary";
    case BP_SHAPE_GATHER:
    case BP_SHAPE_SCATTER:
      return "gather, scatter";
    case BP_SHAPE_REDUCE:
    case BP_SHAPE_ARG:
      return "reduction";
    case BP_SHAPE_MATMUL:
      return "matmul";
    case BP_SHAPE_SORT:
      return "sort";
    default:
      return "other";
  }
}

OpCase make_case(const bph_op_info& info, const OpRequest& request) {
  OpCase op{info, AttributeBlock(info.attributes), request.dtype != 0 ? request.dtype : default_dtype(info), {}, {},
            {}};
  if ((info.dtypes & BP_DTYPE_BIT(op.dtype)) == 0) {
    fail_usage("{} takes no {}; it takes {}", info.name, bph_dtype_name(op.dtype), dtype_names(info.dtypes));
  }
  for (const std::string& text : request.attributes) op.attributes.assign(text);
  if (info.kind == BP_KIND_COMPOSITE) {
    make_composite(op, request);
  } else {
    make_primitive(op, request);
  }
  const size_t shapes = std::max<size_t>(op.inputs.size(), info.inputs_min == 0 ? 1 : 0);
  if (request.shapes.size() > shapes) {
    fail_usage("{} has {} operand(s) to shape, and {} --shape are given", info.name, shapes, request.shapes.size());
  }
  if (request.out_shapes.size() > op.outputs.size()) {
    fail_usage("{} has {} output(s), and {} --out-shape are given", info.name, op.outputs.size(),
               request.out_shapes.size());
  }
  const uint32_t scalar_dtype = info.scalar_dtype != 0 ? info.scalar_dtype : op.outputs.at(0).dtype;
  for (uint32_t i = 0; i < info.scalars_max; ++i) op.scalars.push_back(bph_scalar_from_i64(scalar_dtype, i + 1));
  return op;
}

Extents Operand::strides() const {
  Extents strides(shape.size());
  int64_t stride = step;
  for (size_t i = shape.size(); i-- > 0;) {
    const size_t d = order.empty() ? i : order[i];
    strides[d] = stride;
    stride *= std::max<int64_t>(shape[d], 1);
  }
  return strides;
}

uint64_t Operand::bytes() const { return static_cast<uint64_t>(element_count(shape) * step) * bph_dtype_bytes(dtype); }

CallViews::CallViews(const OpCase& op) : call(sized<bph_call>()) {
  const auto view = [](const Operand& operand) {
    bph_tensor tensor{};
    tensor.dtype = static_cast<uint16_t>(operand.dtype);
    tensor.rank = static_cast<uint8_t>(operand.shape.size());
    const Extents strides = operand.strides();
    std::copy(operand.shape.begin(), operand.shape.end(), tensor.shape);
    std::copy(strides.begin(), strides.end(), tensor.strides);
    return tensor;
  };
  for (const Operand& operand : op.inputs) inputs.push_back(view(operand));
  for (const Operand& operand : op.outputs) outputs.push_back(view(operand));
  call.op = op.info.op;
  call.attributes = op.attributes.data();
  call.inputs = inputs.data();
  call.outputs = outputs.data();
  call.scalars = op.scalars.data();
  call.input_count = static_cast<uint32_t>(inputs.size());
  call.output_count = static_cast<uint32_t>(outputs.size());
  call.scalar_count = static_cast<uint32_t>(op.scalars.size());
}

}  // namespace tool
