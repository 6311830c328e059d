// SPDX-License-Identifier: Apache-2.0
// Every primitive on data with results independent of rounding and order, so that executions
// compare bit by bit.
#pragma once

#include <memory>

#include "cases/support/data.hpp"
#include "cases/support/op_desc.hpp"

namespace backplane::conformance {

// A descriptor of about a thousand elements: `rows` by 24, along the first axis if there is one.
OpDesc sample_of_rows(const bph_op_info& op, uint32_t dtype, int64_t rows);

// The operands of a descriptor, with small integers, and the results.
class Operands {
 public:
  Operands(Context& context, const bph_op_info& op, OpDesc& desc);
  // The same scalars, and other buffers with the same bytes.
  Operands(Context& context, const Operands& same);
  // Restores the initial outputs.
  void reset_outputs();
  void enqueue(Stream& stream, Runner& runner);
  // Enqueues a plan of another owner with `desc` and the given workspace. Returns any status.
  bp_status try_enqueue(bp_stream* stream, bp_plan* plan, const bp_op_desc& desc, bp_buffer* workspace,
                        uint64_t workspace_offset, uint64_t workspace_bytes, bp_error* error);
  std::vector<Bytes> results() const;
  // The oracle's results; for exact operators only.
  std::vector<Bytes> expected(OpDesc& desc) const;
  const std::vector<bp_operand>& scalars() const { return scalar_operands_; }
  void set_scalar(size_t index, uint64_t bits) { scalar_operands_[index].immediate = bits; }
  const std::vector<Bytes>& input_bytes() const { return input_bytes_; }
  // Must have the size of the input.
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
