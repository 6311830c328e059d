// SPDX-License-Identifier: Apache-2.0
// The operators softmax, log_softmax and softmax_bwd, along any axis.
#include "ops/operators.hpp"
#include "ops/reduction.hpp"

namespace backplane::vulkan {

namespace {

class Softmax : public Operator {
 public:
  Softmax(uint32_t dtype, const ReductionCaps& caps)
      : caps_(caps),
        shader_(caps.shader("softmax", dtype)),
        register_shader_(caps.shader("softmax_registers", dtype)) {}

  Kernels kernels(const kit::PlanForm& plan, bool) const override {
    const bool backward = plan.op->id == BP_OP_SOFTMAX_BWD;
    const uint32_t logarithm = backward ? plan.attributes.as<bp_softmax_bwd_attributes>().log : 0;
    const Constants constants{{kIdLayout, BACKPLANE_LAYOUT_DENSE}, {kIdOp, plan.op->id}, {kIdVariant, logarithm}};
    Kernels out;
    out[kLine] = {shader_, constants};
    if (caps_.use_vec4) out[kVec4] = {shader_, vec4_constants(constants)};
    put_register_kernels(out, kRegisters, register_shader_, register_rows(backward), constants);
    return out;
  }

  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const bool backward = call.op->id == BP_OP_SOFTMAX_BWD;
    const uint32_t axis =
        backward ? call.attributes<bp_softmax_bwd_attributes>().axis : call.attributes<bp_axis_attributes>().axis;
    if (call.out().elements() == 0) return {};
    ReductionNest nest = ReductionNest::by_axes(call.out(), 1u << axis);
    nest.add(&call.out());
    nest.add(&call.in(0));
    nest.add(backward ? &call.in(1) : nullptr);
    nest.merge();
    const ReductionKernel kernel{.pipeline = program.pipelines[kLine],
                                 .line_pipeline = program.pipelines[kLine],
                                 .passes = ReductionPasses::kReduceAndMap,
                                 .tuned_as_cpu = caps_.tuned_as_cpu,
                                 .vec4_pipeline = program.pipelines[kVec4],
                                 .vec4_operands = 0b111,
                                 .register_rows = register_rows(backward),
                                 .register_pipelines = &program.pipelines[kRegisters]};
    return launch_reduction<3>(stream, kernel, nest, accesses_of(call), [](ReductionParams<3>&) {});
  }

 private:
  // Pipeline kRegisters + i is for register_rows(backward)[i].
  enum Pipeline : uint32_t { kLine, kVec4, kRegisters };

  std::span<const RegisterRows> register_rows(bool backward) const { return backward ? backward_rows_ : forward_rows_; }

  const ReductionCaps caps_;
  const std::string shader_, register_shader_;
  const std::vector<RegisterRows> forward_rows_ = caps_.register_rows(1, true),
                                  backward_rows_ = caps_.register_rows(2, true);
};

}  // namespace

void add_softmax(Operators& operators, const PhysicalDevice& device) {
  for_dtypes(kFloats, [&](uint32_t dtype) {
    const OperatorEntry softmax = entry_of<Softmax>(dtype, ReductionCaps::of(device));
    for (const uint32_t op : {BP_OP_SOFTMAX, BP_OP_LOG_SOFTMAX, BP_OP_SOFTMAX_BWD}) operators.add(op, dtype, softmax);
  });
}

}  // namespace backplane::vulkan
