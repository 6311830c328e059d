// SPDX-License-Identifier: Apache-2.0
// Operators whose output elements depend only on the input elements at the same index.
#pragma once

#include "ops/kernels.hpp"

namespace backplane::vulkan {

class Elementwise : public Operator {
 public:
  // `op` is the value of the shader's constant OP. `elements_per_group` is the number of elements
  // per workgroup of the vec4 kernels.
  Elementwise(std::string shader, uint32_t op, uint32_t elements_per_group)
      : shader_(std::move(shader)), op_(op), elements_per_group_(elements_per_group) {}

  Kernels kernels(const kit::PlanForm& plan, bool dense) const override;
  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override;

 protected:
  // Pipelines of a plan. If all operands of the plan are dense or immediates, kVec4 processes dense operands.
  // Otherwise, kVec4 processes rows whose extent is a multiple of four. kVec4BroadcastA and kVec4BroadcastB process
  // such rows if the first or the second input broadcasts along rows.
  enum Pipeline : uint32_t { kStrided, kVec4, kVec4BroadcastA, kVec4BroadcastB, kPipelines };

  // Returns the merged loops over the output's shape. Operand 0 is the output, and the inputs
  // follow.
  static LoopNest nest_of(const Call& call);

 private:
  const std::string shader_;
  const uint32_t op_;
  const uint32_t elements_per_group_;
};

}  // namespace backplane::vulkan
