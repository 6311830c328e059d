// SPDX-License-Identifier: Apache-2.0
#include "samples.hpp"

#include <cstring>

#include "exact.hpp"
#include "harness/slot_watch.hpp"

namespace backplane::conformance {

namespace {

constexpr int64_t kColumns = 24;

// Returns `count` random integers below `limit`, encoded as `dtype`.
Bytes small_numbers(Context& context, uint32_t dtype, uint64_t count, uint64_t limit) {
  const uint32_t width = bph_dtype_bytes(dtype);
  Bytes bytes(count * width);
  for (uint64_t i = 0; i < count; ++i) {
    const auto number = static_cast<int64_t>(context.below(limit));
    const uint64_t bits = dtype == BP_BOOL ? static_cast<uint64_t>(number % 2) : bph_scalar_from_i64(dtype, number);
    std::memcpy(bytes.data() + i * width, &bits, width);
  }
  return bytes;
}

}  // namespace

OpDesc sample_of_rows(const bph_op_info& op, uint32_t dtype, int64_t rows) {
  OpDesc made = sample(op, dtype);
  const auto resize = [&](bp_tensor_desc& view, int64_t first, int64_t second) {
    view = dense_view(view.dtype, {first, second});
  };
  if (op.shape_rule == BP_SHAPE_MATMUL) {
    resize(made.inputs()[0], rows, kColumns);
    resize(made.inputs()[1], kColumns, kColumns);
    resize(made.outputs()[0], rows, kColumns);
    return made;
  }
  const bool reduced = op.shape_rule == BP_SHAPE_REDUCE || op.shape_rule == BP_SHAPE_ARG;
  for (bp_tensor_desc& view : made.inputs()) resize(view, rows, kColumns);
  for (bp_tensor_desc& view : made.outputs()) resize(view, reduced ? 1 : rows, kColumns);
  return made;
}

Operands::Operands(Context& context, const bph_op_info& op, OpDesc& desc) : device_(context.device()) {
  const bool product = op.op == BP_OP_REDUCE_PROD;
  for (size_t i = 0; i < desc.inputs().size(); ++i) {
    const bp_tensor_desc& view = desc.inputs()[i];
    const bool index = (op.dtype_rule == BP_RULE_GATHER && i == 1) || (op.dtype_rule == BP_RULE_SCATTER && i == 0);
    const auto rows = static_cast<uint64_t>(std::max<int64_t>(view.shape[0], 1));
    inputs_.emplace_back(device_, std::max<uint64_t>(bytes_of(view), 1));
    Bytes bytes = small_numbers(context, view.dtype, bytes_of(view) / bph_dtype_bytes(view.dtype),
                                index     ? rows
                                : product ? 2
                                          : 5);
    // The indices select each output element once, because duplicate indices make the result
    // undefined.
    if (index && op.dtype_rule == BP_RULE_SCATTER)
      for (uint64_t i2 = 0; i2 < bytes.size() / 4; ++i2) {
        const auto row = static_cast<int32_t>(rows - 1 - i2 / kColumns % rows);
        std::memcpy(bytes.data() + i2 * 4, &row, 4);
      }
    upload(inputs_.back(), bytes);
    input_bytes_.push_back(std::move(bytes));
    input_operands_.push_back({inputs_.back().get(), 0, 0});
  }
  for (const bp_tensor_desc& view : desc.outputs()) {
    outputs_.emplace_back(device_, std::max<uint64_t>(bytes_of(view), 1));
    first_outputs_.push_back(small_numbers(context, view.dtype, bytes_of(view) / bph_dtype_bytes(view.dtype), 5));
    output_operands_.push_back({outputs_.back().get(), 0, 0});
  }
  reset_outputs();
  const uint32_t scalar_dtype =
      op.scalar_dtype == 0 && !desc.outputs().empty() ? desc.outputs()[0].dtype : op.scalar_dtype;
  for (uint32_t i = 0; i < op.scalars_max; ++i)
    scalar_operands_.push_back(
        {nullptr, 0, bph_scalar_from_i64(scalar_dtype, static_cast<int64_t>(1 + context.below(3)))});
}

Operands::Operands(Context& context, const Operands& same)
    : device_(context.device()),
      input_bytes_(same.input_bytes_),
      first_outputs_(same.first_outputs_),
      scalar_operands_(same.scalar_operands_) {
  const auto add = [&](std::vector<Buffer>& buffers, std::vector<bp_operand>& operands, const Buffer& like) {
    buffers.emplace_back(device_, like.bytes);
    operands.push_back({buffers.back().get(), 0, 0});
  };
  for (size_t i = 0; i < same.inputs_.size(); ++i) {
    add(inputs_, input_operands_, same.inputs_[i]);
    upload(inputs_[i], input_bytes_[i]);
  }
  for (const Buffer& output : same.outputs_) add(outputs_, output_operands_, output);
  reset_outputs();
}

void Operands::set_input(size_t index, Bytes bytes) {
  upload(inputs_[index], bytes);
  input_bytes_[index] = std::move(bytes);
}

void Operands::reset_outputs() {
  for (size_t i = 0; i < outputs_.size(); ++i) upload(outputs_[i], first_outputs_[i]);
}

bp_status Operands::try_enqueue(bp_stream* stream, bp_plan* plan, const bp_op_desc& desc, bp_buffer* workspace,
                                uint64_t workspace_offset, uint64_t workspace_bytes, bp_error* error) {
  bp_execution execution = {};
  execution.struct_size = sizeof(execution);
  execution.desc = &desc;
  execution.inputs = input_operands_.empty() ? nullptr : input_operands_.data();
  execution.outputs = output_operands_.data();
  execution.scalars = scalar_operands_.empty() ? nullptr : scalar_operands_.data();
  execution.workspace = workspace;
  execution.workspace_offset = workspace_offset;
  execution.workspace_bytes = workspace_bytes;
  const InSlot slot(Slot::plan_execute, stream);
  return device_->plan_execute(device_.get(), stream, plan, &execution, error);
}

void Operands::enqueue(Stream& stream, Runner& runner) {
  ErrorRecord error;
  expect_ok(try_enqueue(stream.get(), runner.plan().get(), runner.desc().get(), runner.workspace(), 0,
                        runner.plan().info.workspace_bytes, &error),
            error, "plan_execute");
}

std::vector<Bytes> Operands::results() const {
  std::vector<Bytes> all;
  for (const Buffer& output : outputs_) all.push_back(download<unsigned char>(output, output.bytes));
  return all;
}

std::vector<Bytes> Operands::expected(OpDesc& desc) const {
  std::vector<uint64_t> scalars;
  for (const bp_operand& scalar : scalar_operands_) scalars.push_back(scalar.immediate);
  return exact_results(desc, input_bytes_, first_outputs_, scalars);
}

}  // namespace backplane::conformance
