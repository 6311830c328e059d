// SPDX-License-Identifier: Apache-2.0
// Every primitive on data whose result does not depend on rounding or order, so that two executions compare bit by bit.
#pragma once

#include <memory>

#include "cases/support/data.hpp"
#include "cases/support/op_desc.hpp"

namespace backplane::conformance {

// A descriptor of some thousand elements: `rows` by 24, along the first axis where there is one.
OpDesc sample_of_rows(const bph_op_info& op, uint32_t dtype, int64_t rows);

// Operands of a descriptor with small whole numbers in them, and what the operator made of them.
class Operands {
 public:
  Operands(Context& context, const bph_op_info& op, OpDesc& desc);
  // The same scalars, and other buffers with the same bytes.
  Operands(Context& context, const Operands& same);
  // Puts the outputs back to what they were at first.
  void reset_outputs();
  void enqueue(Stream& stream, Runner& runner);
  // By a plan that another owner holds, over `desc`, with the workspace given.
  bp_status try_enqueue(bp_stream* stream, bp_plan* plan, const bp_op_desc& desc, bp_buffer* workspace,
                        uint64_t workspace_offset, uint64_t workspace_bytes, bp_error* error);
  std::vector<Bytes> results() const;
  // What they should be, by the oracle; exact operators only.
  std::vector<Bytes> expected(OpDesc& desc) const;
  const std::vector<bp_operand>& scalars() const { return scalar_operands_; }
  void set_scalar(size_t index, uint64_t bits) { scalar_operands_[index].immediate = bits; }
  const std::vector<Bytes>& input_bytes() const { return input_bytes_; }
  // As many bytes as the input had.
  void set_input(size_t index, Bytes bytes);
  const std::vector<Bytes>& first_outputs() const { return first_outputs_; }
  std::vector<Buffer>& inputs() { return inputs_; }
  std::vector<Buffer>& outputs() { return outputs_; }

 private:
  Device& device_;
  std::vector<Buffer> inputs_, outputs_;
  std::vector<Bytes> input_bytes_, first_outputs_;
  std::vector<bp_operand> input_operands_, output_operands_, scalar_operands_;
};

}  // namespace backplane::conformance
