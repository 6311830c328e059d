// SPDX-License-Identifier: Apache-2.0
// Computes the work of each operator.
#include "bench/work.hpp"

namespace tool {
namespace {

double count(const Extents& shape) { return static_cast<double>(element_count(shape)); }

// Returns the extent of a dimension, where `behind` counts from the last dimension. Returns 0 if
// there is no such dimension, because a case may be invalid.
double last(const Extents& shape, size_t behind = 0) {
  return behind < shape.size() ? static_cast<double>(shape[shape.size() - 1 - behind]) : 0;
}
double per(double whole, double parts) { return parts > 0 ? whole / parts : 0; }
double count_each_first(const Extents& shape) {
  return shape.empty() ? 0 : per(count(shape), static_cast<double>(shape.front()));
}

double flops_of(const OpCase& op) {
  const auto in = [&](size_t index) -> const Extents& { return op.inputs.at(index).shape; };
  const Extents& out = op.outputs.at(0).shape;
  switch (op.info.op) {
    case BP_OP_MATMUL:
    case BP_OP_LINEAR:
    case BP_OP_GEMM:
    case BP_OP_QUANTIZED_MATMUL:  // the depth comes from input 0, because a byte may contain two weights
      return 2 * count(out) * last(in(0));
    // Each output element is a sum over the channels of its group and the elements of the window.
    case BP_OP_CONV:
      return 2 * count(out) * count_each_first(in(1));
    // Each operator does as much work as the forward convolution whose output has the shape of input 0.
    case BP_OP_CONV_TRANSPOSE:
    case BP_OP_CONV_BWD_INPUT:
      return 2 * count(in(0)) * count_each_first(in(1));
    case BP_OP_CONV_BWD_WEIGHT:
      return 2 * count(in(1)) * count_each_first(out);
    case BP_OP_ATTENTION: {  // counts q k^T and p v, including masked elements
      const double queries = per(count(in(0)), last(in(0)));
      return 2 * queries * last(in(1), 1) * (last(in(0)) + last(in(2)));
    }
    // Counts five products. The depth or width of three (scores, gradients of q and of k) is the extent of q. For two
    // (gradients of v and of the probabilities), it is the extent of v.
    case BP_OP_ATTENTION_BWD: {
      const double queries = per(count(in(1)), last(in(1)));
      return 2 * queries * last(in(2), 1) * (3 * last(in(1)) + 2 * last(in(3)));
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
  // Assumes that a gather reads each row of its table at most once. A gather then reads at most as
  // many bytes as its result contains.
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
