// SPDX-License-Identifier: Apache-2.0
#include "op_desc.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "harness/slot_watch.hpp"

namespace backplane::conformance {

const std::vector<bph_op_info>& primitives() {
  static const std::vector<bph_op_info> rows = [] {
    std::vector<bph_op_info> found;
    bph_op_info row = {};
    row.struct_size = sizeof(row);
    for (uint32_t index = 0; bph_op_by_index(index, &row, nullptr) == BP_OK; ++index)
      if (row.kind == BP_KIND_PRIMITIVE) found.push_back(row);
    return found;
  }();
  return rows;
}

const bph_op_info& op_info(uint32_t op) {
  for (const bph_op_info& row : primitives())
    if (row.op == op) return row;
  throw std::logic_error("no primitive has this id");
}

std::vector<uint32_t> dtypes_of(uint64_t set) {
  std::vector<uint32_t> found;
  for (uint32_t dtype = 0; dtype < BP_DTYPE_LIMIT; ++dtype)
    if ((set >> dtype & 1) != 0) found.push_back(dtype);
  return found;
}

uint32_t usual_dtype(const bph_op_info& op) {
  for (const uint32_t dtype : {BP_F32, BP_I32, BP_U32, BP_U8})
    if ((op.dtypes >> dtype & 1) != 0) return dtype;
  return dtypes_of(op.dtypes).front();
}

bp_tensor_desc dense_view(uint32_t dtype, const Shape& shape, uint8_t alignment_log2) {
  bp_tensor_desc view = {};
  view.dtype = static_cast<uint16_t>(dtype);
  view.rank = static_cast<uint8_t>(shape.size());
  uint8_t natural = 0;
  while ((1u << natural) < bph_dtype_bytes(dtype)) ++natural;
  view.alignment_log2 = alignment_log2 > natural ? alignment_log2 : natural;
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    view.shape[axis] = shape[axis];
    view.strides[axis] = stride;
    stride *= shape[axis];
  }
  return view;
}

uint64_t bytes_of(const bp_tensor_desc& dense) {
  uint64_t count = bph_dtype_bytes(dense.dtype);
  for (uint32_t axis = 0; axis < dense.rank; ++axis) count *= static_cast<uint64_t>(dense.shape[axis]);
  return count;
}

const bp_op_desc& OpDesc::get() {
  desc_.struct_size = sizeof(desc_);
  desc_.attributes = attributes_.empty() ? nullptr : attributes_.data();
  desc_.inputs = inputs_.empty() ? nullptr : inputs_.data();
  desc_.outputs = outputs_.empty() ? nullptr : outputs_.data();
  desc_.input_count = static_cast<uint32_t>(inputs_.size());
  desc_.output_count = static_cast<uint32_t>(outputs_.size());
  return desc_;
}

namespace {

// Returns the dtype of input `index` according to the operator's dtype rule.
uint32_t input_dtype(const bph_op_info& op, uint32_t index, uint32_t dtype) {
  switch (op.dtype_rule) {
    case BP_RULE_GATHER:
      return index == 1 ? uint32_t{BP_I32} : dtype;
    case BP_RULE_SCATTER:
      return index == 0 ? uint32_t{BP_I32} : dtype;
    case BP_RULE_SELECT:
      return index == 0 ? uint32_t{BP_BOOL} : dtype;
    case BP_RULE_MATMUL:
      return dtype == BP_U8 ? uint32_t{BP_I8} : dtype;
    default:
      return dtype;
  }
}

uint32_t output_dtype(const bph_op_info& op, uint32_t index, uint32_t dtype) {
  switch (op.dtype_rule) {
    case BP_RULE_COMPARE:
      return BP_BOOL;
    case BP_RULE_INDEX:
      return BP_I32;
    case BP_RULE_SORT:
      return index == 1 ? uint32_t{BP_I32} : dtype;
    case BP_RULE_SUM:
      return dtype == BP_BOOL ? uint32_t{BP_I32} : dtype;
    case BP_RULE_MATMUL:
      return dtype == BP_U8 || dtype == BP_I8 ? uint32_t{BP_I32} : dtype;
    default:
      return dtype;
  }
}

}  // namespace

OpDesc sample(const bph_op_info& op, uint32_t dtype) {
  OpDesc made(op.op);
  const bool matmul = op.shape_rule == BP_SHAPE_MATMUL;
  for (uint32_t i = 0; i < op.inputs_min; ++i) {
    const uint32_t own = matmul && i == 0 ? dtype : input_dtype(op, i, dtype);
    made.input(dense_view(own, matmul && i == 1 ? Shape{3, 4} : Shape{2, 3}));
  }
  const bool reduced = op.shape_rule == BP_SHAPE_REDUCE || op.shape_rule == BP_SHAPE_ARG;
  // The second output of sort contains the indices.
  const uint32_t outputs = op.dtype_rule == BP_RULE_SORT ? 2 : op.outputs_min;
  for (uint32_t i = 0; i < outputs; ++i)
    made.output(dense_view(output_dtype(op, i, dtype), reduced ? Shape{1, 3} : matmul ? Shape{2, 4} : Shape{2, 3}));
  if (op.attribute_bytes != 0) {
    // Zero is legal in every attribute field of the primitives.
    std::vector<unsigned char> bytes(op.attribute_bytes);
    std::memcpy(bytes.data(), &op.attribute_bytes, sizeof(uint32_t));
    if (op.shape_rule == BP_SHAPE_REDUCE) {
      const bp_reduce_attributes axes = {sizeof(bp_reduce_attributes), 1};
      std::memcpy(bytes.data(), &axes, sizeof(axes));
    }
    made.attribute_bytes(std::move(bytes));
  }
  made.scalars(op.scalars_max);
  return made;
}

OpDesc elementwise(uint32_t op, uint32_t dtype, int64_t count) {
  OpDesc made(op);
  for (uint32_t i = 0; i < op_info(op).inputs_min; ++i) made.input(dense_view(dtype, {count}));
  made.output(dense_view(dtype, {count}));
  made.scalars(op_info(op).scalars_max);
  return made;
}

void state_alignment(const Device& device, OpDesc& desc) {
  uint8_t log2 = 0;
  while (log2 < BP_MAX_ALIGNMENT_LOG2 && (uint64_t{2} << log2) <= device.info().alignment) ++log2;
  const auto raise = [log2](bp_tensor_desc& view) { view.alignment_log2 = std::max(view.alignment_log2, log2); };
  std::for_each(desc.inputs().begin(), desc.inputs().end(), raise);
  std::for_each(desc.outputs().begin(), desc.outputs().end(), raise);
}

namespace {
OpDesc aligned(const Device& device, OpDesc desc) {
  state_alignment(device, desc);
  return desc;
}
}  // namespace

bool claims(Device& device, OpDesc desc) {
  ErrorRecord error;
  bp_plan_info info = {};
  info.struct_size = sizeof(info);
  const bp_status status = device->plan_create(device.get(), &desc.get(), nullptr, &info, &error);
  expect_status(status, error, "plan_create", {BP_OK, BP_UNSUPPORTED});
  return status == BP_OK;
}

Runner::Runner(Device& device, OpDesc desc)
    : desc_(aligned(device, std::move(desc))), plan_(device, desc_.get()), workspace_(device, nullptr) {
  if (plan_.info.workspace_bytes != 0)
    workspace_ =
        Owner<bp_buffer, &bp_device_api::buffer_destroy>(device, Buffer(device, plan_.info.workspace_bytes).release());
}

bp_status Runner::try_enqueue(bp_stream* stream, std::initializer_list<At> inputs, std::initializer_list<At> outputs,
                              std::initializer_list<uint64_t> scalars, bp_error* error) {
  std::vector<bp_operand> in, out, values;
  for (const At& at : inputs) in.push_back({at.buffer, at.offset, 0});
  for (const At& at : outputs) out.push_back({at.buffer, at.offset, 0});
  for (const uint64_t scalar : scalars) values.push_back({nullptr, 0, scalar});
  bp_execution execution = {};
  execution.struct_size = sizeof(execution);
  execution.desc = &desc_.get();
  execution.inputs = in.data();
  execution.outputs = out.data();
  execution.scalars = values.empty() ? nullptr : values.data();
  execution.workspace = workspace_.get();
  execution.workspace_bytes = plan_.info.workspace_bytes;
  Device& device = plan_.device();
  const InSlot slot(Slot::plan_execute, stream);
  return device->plan_execute(device.get(), stream, plan_.get(), &execution, error);
}

void Runner::enqueue(bp_stream* stream, std::initializer_list<At> inputs, std::initializer_list<At> outputs,
                     std::initializer_list<uint64_t> scalars) {
  ErrorRecord error;
  const bp_status status = try_enqueue(stream, inputs, outputs, scalars, &error);
  expect_ok(status, error, "plan_execute");
}

}  // namespace backplane::conformance
