// SPDX-License-Identifier: Apache-2.0
// The operators layer_norm, rms_norm, group_norm and batch_norm.
#include "ops/norm_nest.hpp"
#include "ops/operators.hpp"

namespace backplane::vulkan {

namespace {

constexpr uint32_t kNormOperands = 10;

class Norm : public Operator {
 public:
  Norm(uint32_t dtype, const ReductionCaps& caps)
      : caps_(caps), shader_(caps.shader("norm", dtype)), register_shader_(caps.shader("norm_registers", dtype)) {}

  Kernels kernels(const kit::PlanForm& plan, bool) const override {
    const uint32_t op = plan.op->id;
    const uint32_t training = op == BP_OP_BATCH_NORM ? plan.attributes.as<bp_batch_norm_attributes>().training : 0;
    const auto with = [op](uint32_t layout, uint32_t variant) {
      return Constants{{kIdLayout, layout}, {kIdOp, op}, {kIdVariant, variant}};
    };
    Kernels out;
    out[kStrided] = {shader_, with(BACKPLANE_LAYOUT_STRIDED, training)};
    out[kLine] = {shader_, with(BACKPLANE_LAYOUT_DENSE, training)};
    if (caps_.use_vec4 && (op == BP_OP_LAYER_NORM || op == BP_OP_RMS_NORM)) {
      const auto has = [&](uint32_t i) { return i < plan.input_count && plan.operands[i].dtype != 0; };
      const uint32_t gamma = has(1) ? 1 : 0, beta = gamma != 0 && op == BP_OP_LAYER_NORM && has(2) ? 1 : 0;
      out[kVec4] = {shader_, vec4_constants(with(BACKPLANE_LAYOUT_DENSE, gamma + beta))};
    }
    put_register_kernels(out, kRegisters, register_shader_, register_rows_, with(layout_of(lines(op)), training));
    return out;
  }

  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const uint32_t op = call.op->id;
    const View& x = call.in(0);
    float epsilon = 0, momentum = 0;
    Geometry geometry;
    bool sees_all = true;  // whether the kernel must read the whole row before it normalises an element
    if (op == BP_OP_GROUP_NORM) {
      const auto& attributes = call.attributes<bp_group_norm_attributes>();
      epsilon = attributes.epsilon;
      geometry = Geometry::by_channels(x, attributes.groups);
    } else if (op == BP_OP_BATCH_NORM) {
      const auto& attributes = call.attributes<bp_batch_norm_attributes>();
      epsilon = attributes.epsilon;
      momentum = attributes.momentum;
      geometry = Geometry::by_batch(x);
      sees_all = attributes.training != 0 || given(call.outputs, 3) != nullptr;
    } else {
      const auto& attributes = call.attributes<bp_norm_attributes>();
      epsilon = attributes.epsilon;
      geometry = Geometry::by_axes(x, attributes.axes);
    }
    const bool rms = op == BP_OP_RMS_NORM, batch = op == BP_OP_BATCH_NORM;
    const std::size_t mean = batch ? 3 : 1, rstd = rms ? 1 : mean + 1;
    NormNest nest(geometry, &Dimension::statistic);
    nest.add(&call.out(), &Dimension::axis);
    nest.add(&x, &Dimension::axis);
    nest.add(given(call.inputs, 1), &Dimension::parameter);
    nest.add(rms ? nullptr : given(call.inputs, 2), &Dimension::parameter);
    nest.add(rms ? nullptr : given(call.outputs, mean), &Dimension::statistic);
    nest.add(given(call.outputs, rstd), &Dimension::statistic);
    for (const std::size_t i : {std::size_t{3}, std::size_t{4}})
      nest.add(batch ? given(call.inputs, i) : nullptr, &Dimension::parameter);
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}})
      nest.add(batch ? given(call.outputs, i) : nullptr, &Dimension::parameter);
    const ReductionNest& rows = nest.merged();
    const auto length = static_cast<float>(rows.length());
    // No vec4 kernel is compiled for beta without gamma.
    const bool beta_alone = !rms && given(call.inputs, 1) == nullptr && given(call.inputs, 2) != nullptr;
    const ReductionKernel kernel{.pipeline = program.pipelines[kStrided],
                                 .line_pipeline = program.pipelines[kLine],
                                 .passes = sees_all ? ReductionPasses::kReduceAndMap : ReductionPasses::kMap,
                                 .tuned_as_cpu = caps_.tuned_as_cpu,
                                 .vec4_pipeline = beta_alone ? VK_NULL_HANDLE : program.pipelines[kVec4],
                                 .vec4_operands = 0b1111,
                                 .register_rows = register_rows_,
                                 .register_pipelines = &program.pipelines[kRegisters],
                                 .registers_need_lines = lines(op)};
    return launch_reduction<kNormOperands>(stream, kernel, rows, accesses_of(call),
                                           [&](ReductionParams<kNormOperands>& params) {
                                             params.numbers[0] = epsilon;
                                             params.numbers[1] = momentum;
                                             params.numbers[2] = length;
                                           });
  }

 private:
  // kStrided is for rows with any number of dimensions, and kLine is for rows with one dimension.
  // Pipeline kRegisters + i is for register_rows_[i].
  enum Pipeline : uint32_t { kStrided, kLine, kVec4, kRegisters };

  // Returns whether the register-resident kernels of operator `op` are compiled for rows with one
  // dimension. Rows of group_norm and batch_norm may have several dimensions.
  static bool lines(uint32_t op) { return op == BP_OP_LAYER_NORM || op == BP_OP_RMS_NORM; }

  const ReductionCaps caps_;
  const std::string shader_, register_shader_;
  const std::vector<RegisterRows> register_rows_ = caps_.register_rows(1);
};

}  // namespace

void add_norm(Operators& operators, const PhysicalDevice& device) {
  for_dtypes(kFloats, [&](uint32_t dtype) {
    const OperatorEntry forward = entry_of<Norm>(dtype, ReductionCaps::of(device));
    for (const uint32_t op : {BP_OP_LAYER_NORM, BP_OP_RMS_NORM, BP_OP_GROUP_NORM, BP_OP_BATCH_NORM})
      operators.add(op, dtype, forward);
  });
}

}  // namespace backplane::vulkan
