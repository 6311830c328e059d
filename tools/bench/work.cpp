// SPDX-License-Identifier: Apache-2.0
// Work by operator.
#include "bench/work.hpp"

namespace tool {
namespace {

double count(const Extents& shape) { return static_cast<double>(element_count(shape)); }

double flops_of(const OpCase& op) {
  const auto in = [&](size_t index) -> const Extents& { return op.inputs.at(index).shape; };
  const Extents& out = op.outputs.at(0).shape;
  switch (op.info.op) {
    case BP_OP_MATMUL:
      return 2 * count(out) * static_cast<double>(in(0).back());
    case BP_OP_LINEAR:
    case BP_OP_QUANTIZED_MATMUL:
      return 2 * count(out) * static_cast<double>(in(1).back());
    case BP_OP_CONV:  // each output element: channels of its group times the window
      return 2 * count(out) * count(in(1)) / static_cast<double>(in(1).front());
    case BP_OP_CONV_TRANSPOSE:
    case BP_OP_CONV_BWD_INPUT:  // the work of the forward, whose output is the first input
      return 2 * count(in(0)) * count(in(1)) / static_cast<double>(in(1).front());
    case BP_OP_CONV_BWD_WEIGHT:
      return 2 * count(in(1)) * count(out) / static_cast<double>(out.front());
    case BP_OP_ATTENTION: {  // q k^T and p v; what a causal mask hides is counted
      const double queries = count(in(0)) / static_cast<double>(in(0).back());
      const auto keys = static_cast<double>(in(1).at(in(1).size() - 2));
      return 2 * queries * keys * static_cast<double>(in(0).back() + in(2).back());
    }
    default:
      return 0;
  }
}

}  // namespace

Work work_of(const OpCase& op) {
  Work work;
  work.flops = flops_of(op);
  const auto add = [&](const Operand& operand, double times) {
    work.bytes += times * count(operand.shape) * bph_dtype_bytes(operand.dtype);
  };
  // Of the table of a gather, what the result has of it: no row has to be read twice, and most not at all.
  const bool selects = op.info.op == BP_OP_GATHER || op.info.op == BP_OP_EMBEDDING;
  for (const Operand& operand : op.inputs) {
    const Operand& result = op.outputs.front();
    add(selects && &operand == &op.inputs.front() && count(result.shape) < count(operand.shape) ? result : operand, 1);
  }
  const bool read_too = op.info.op == BP_OP_SCATTER || op.info.op == BP_OP_ADAMW;
  for (const Operand& operand : op.outputs) add(operand, read_too ? 2 : 1);
  return work;
}

}  // namespace tool
