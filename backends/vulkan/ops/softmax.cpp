// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and their backward, along any axis.
#include "ops/reduction.hpp"

namespace backplane::vulkan {

namespace {

class Softmax : public Operator {
 public:
  Softmax(uint32_t dtype, const RowWays& ways)
      : ways_(ways), shader_(ways.shader("softmax", dtype)), held_shader_(ways.shader("softmax_registers", dtype)) {}

  std::vector<Kernel> kernels(const kit::PlanForm& plan, bool) const override {
    const bool backward = plan.op->id == BP_OP_SOFTMAX_BWD;
    const uint32_t logarithm = backward ? plan.attributes.as<bp_softmax_bwd_attributes>().log : 0;
    std::vector<Kernel> out{{shader_, {1, plan.op->id, logarithm, 0}}};
    if (ways_.fours) out.push_back({shader_, by_four(plan.op->id, logarithm, 0)});
    add_held(out, held_shader_, held(backward), {1, plan.op->id, logarithm, 0});
    return out;
  }

  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const bool backward = call.op->id == BP_OP_SOFTMAX_BWD;
    const uint32_t axis =
        backward ? call.attributes<bp_softmax_bwd_attributes>().axis : call.attributes<bp_axis_attributes>().axis;
    if (call.out().elements() == 0) return {};
    RowNest nest = RowNest::by_axes(call.out(), 1u << axis);
    nest.add(&call.out());
    nest.add(&call.in(0));
    nest.add(backward ? &call.in(1) : nullptr);
    nest.merge();
    const RowKernel kernel{.pipeline = program.pipelines[0],
                           .line_pipeline = program.pipelines[0],
                           .passes = RowPasses::kTwice,
                           .cpu = ways_.cpu,
                           .four_pipeline = ways_.fours ? program.pipelines[1] : VK_NULL_HANDLE,
                           .fours = 0b111,
                           .held = held(backward),
                           .held_pipelines = &program.pipelines[1]};
    return launch_rows<3>(stream, kernel, nest, accesses_of(call), [](RowBlock<3>&) {});
  }

 private:
  std::span<const HeldRow> held(bool backward) const { return backward ? held_pairs_ : held_; }

  const RowWays ways_;
  const std::string shader_, held_shader_;
  const std::vector<HeldRow> held_ = ways_.held(1, true), held_pairs_ = ways_.held(2, true);
};

}  // namespace

void add_softmax(Operators& operators, const PhysicalDevice& device) {
  for_dtypes(kFloats, [&](uint32_t dtype) {
    const OperatorEntry softmax = entry_of<Softmax>(dtype, RowWays::of(device));
    for (const uint32_t op : {BP_OP_SOFTMAX, BP_OP_LOG_SOFTMAX, BP_OP_SOFTMAX_BWD}) operators.add(op, dtype, softmax);
  });
}

}  // namespace backplane::vulkan
