// SPDX-License-Identifier: Apache-2.0
// Operator descriptors together with the arrays that they point to, and their execution on dense
// operands.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include <backplane/backplane.h>

#include "harness/plugin.hpp"

namespace backplane::conformance {

// The primitives of the operator table, in order of id.
const std::vector<bph_op_info>& primitives();
const bph_op_info& op_info(uint32_t op);
// Returns the dtypes in the bit set `set`, in order of id.
std::vector<uint32_t> dtypes_of(uint64_t set);
// Returns a mandatory dtype of the operator, preferably f32.
uint32_t usual_dtype(const bph_op_info& op);

using Shape = std::vector<int64_t>;
bp_tensor_desc dense_view(uint32_t dtype, const Shape& shape, uint8_t alignment_log2 = 0);
uint64_t bytes_of(const bp_tensor_desc& dense);

class OpDesc {
 public:
  explicit OpDesc(uint32_t op) { desc_.op = op; }
  OpDesc& input(const bp_tensor_desc& view) { return inputs_.push_back(view), *this; }
  OpDesc& output(const bp_tensor_desc& view) { return outputs_.push_back(view), *this; }
  OpDesc& flags(uint64_t flags) { return desc_.flags = flags, *this; }
  OpDesc& scalars(uint32_t count) { return desc_.scalar_count = count, *this; }
  template <typename T>
  OpDesc& attributes(T value) {
    value.struct_size = sizeof(T);
    const auto* bytes = reinterpret_cast<const unsigned char*>(&value);
    attributes_.assign(bytes, bytes + sizeof(T));
    return *this;
  }
  OpDesc& attribute_bytes(std::vector<unsigned char> bytes) { return attributes_ = std::move(bytes), *this; }

  // The returned descriptor points into this object, and is valid until the object changes.
  const bp_op_desc& get();
  std::vector<bp_tensor_desc>& inputs() { return inputs_; }
  std::vector<bp_tensor_desc>& outputs() { return outputs_; }
  std::vector<unsigned char>& attribute_bytes() { return attributes_; }
  uint32_t op() const { return desc_.op; }

 private:
  bp_op_desc desc_{};
  std::vector<bp_tensor_desc> inputs_, outputs_;
  std::vector<unsigned char> attributes_;
};

// Returns a legal descriptor of a primitive with dense views of a few elements. `dtype` is the
// dtype T of the operator table.
OpDesc sample(const bph_op_info& op, uint32_t dtype);
// Returns a descriptor of an operator such as neg or add, whose operands all have `dtype` and
// `count` elements.
OpDesc elementwise(uint32_t op, uint32_t dtype, int64_t count);

// Raises the alignment of every view to the alignment of the device's buffers.
void state_alignment(const Device& device, OpDesc& desc);

// Returns whether the plugin supports `desc`. Any status other than OK and UNSUPPORTED fails the case.
bool claims(Device& device, OpDesc desc);

// A plan with its own workspace.
class Runner {
 public:
  Runner(Device& device, OpDesc desc);

  struct At {
    bp_buffer* buffer;
    uint64_t offset = 0;
  };
  void enqueue(bp_stream* stream, std::initializer_list<At> inputs, std::initializer_list<At> outputs,
               std::initializer_list<uint64_t> scalars = {});
  // Returns the plugin's status.
  bp_status try_enqueue(bp_stream* stream, std::initializer_list<At> inputs, std::initializer_list<At> outputs,
                        std::initializer_list<uint64_t> scalars, bp_error* error);

  Plan& plan() { return plan_; }
  OpDesc& desc() { return desc_; }
  bp_buffer* workspace() const { return workspace_.get(); }

 private:
  OpDesc desc_;  // states the device's alignment, so operand addresses must have this alignment
  Plan plan_;
  Owner<bp_buffer, &bp_device_api::buffer_destroy> workspace_;
};

}  // namespace backplane::conformance
