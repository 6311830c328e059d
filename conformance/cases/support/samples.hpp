// SPDX-License-Identifier: Apache-2.0
// Descriptors and data for every primitive. The results do not depend on rounding or order, so
// executions can be compared bit by bit.
#pragma once

#include <memory>

#include "cases/support/data.hpp"
#include "cases/support/op_desc.hpp"

namespace backplane::conformance {

// Returns a descriptor with operands of `rows` by 24 elements. An operator with an axis uses the
// first axis.
OpDesc sample_of_rows(const bph_op_info& op, uint32_t dtype, int64_t rows);

// Buffers for the inputs and outputs of a descriptor, filled with small integers.
class Operands {
 public:
  Operands(Context& context, const bph_op_info& op, OpDesc& desc);
  // Copies the scalars of `same`, and copies the contents of its operands to new buffers.
  Operands(Context& context, const Operands& same);
  // Restores the initial contents of the outputs.
  void reset_outputs();
  void enqueue(Stream& stream, Runner& runner);
  // Enqueues an execution of `plan`, which another object owns, with the given descriptor and
  // workspace. Returns the plugin's status.
  bp_status try_enqueue(bp_stream* stream, bp_plan* plan, const bp_op_desc& desc, bp_buffer* workspace,
                        uint64_t workspace_offset, uint64_t workspace_bytes, bp_error* error);
  std::vector<Bytes> results() const;
  // Returns the oracle's results. Only operators with exact results for small integers are allowed.
  std::vector<Bytes> expected(OpDesc& desc) const;
  const std::vector<bp_operand>& scalars() const { return scalar_operands_; }
  void set_scalar(size_t index, uint64_t bits) { scalar_operands_[index].immediate = bits; }
  const std::vector<Bytes>& input_bytes() const { return input_bytes_; }
  // `bytes` must have the size of the input.
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
