// SPDX-License-Identifier: Apache-2.0
// The operator adamw. One execution reads and writes each element of the parameter and of the
// moments once.
#include <bit>

#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::vulkan {

namespace {

class Adamw : public Operator {
 public:
  explicit Adamw(std::string shader) : shader_(std::move(shader)) {}

  Kernels kernels(const kit::PlanForm&, bool dense) const override {
    return {{{shader_, {{kIdLayout, layout_of(dense)}}}}};
  }

  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const auto& attributes = call.attributes<bp_adamw_attributes>();
    const auto complement = [](float value) { return static_cast<float>(1 - static_cast<double>(value)); };
    const float numbers[] = {attributes.beta1,   complement(attributes.beta1),
                             attributes.beta2,   complement(attributes.beta2),
                             attributes.epsilon, attributes.weight_decay};
    LoopNest nest = LoopNest::of({&call.out(0), &call.out(1), &call.out(2), &call.in(0)});
    nest.merge();
    return launch_elementwise(stream, program.pipelines[0], nest, call, [&](Params& params) {
      for (uint32_t i = 0; i < std::size(numbers); ++i) params.extra[i] = std::bit_cast<uint32_t>(numbers[i]);
    });
  }

 private:
  const std::string shader_;
};

}  // namespace

void add_optimizer(Operators& operators) {
  for_dtypes(kFloats, [&](uint32_t dtype) {
    operators.add(BP_OP_ADAMW, dtype, entry_of<Adamw>(shader_name("optimizer_adamw", dtype)));
  });
}

}  // namespace backplane::vulkan
