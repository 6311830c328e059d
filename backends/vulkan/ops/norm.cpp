// SPDX-License-Identifier: Apache-2.0
// layer_norm, rms_norm, group_norm, batch_norm.
#include "ops/norm_nest.hpp"

namespace backplane::vulkan {

namespace {

constexpr uint32_t kNormOperands = 10;

class Norm : public Operator {
 public:
  Norm(uint32_t dtype, const RowWays& ways)
      : ways_(ways), shader_(ways.shader("norm", dtype)), held_shader_(ways.shader("norm_registers", dtype)) {}

  std::vector<Kernel> kernels(const kit::PlanForm& plan, bool) const override {
    const uint32_t op = plan.op->id;
    const uint32_t training = op == BP_OP_BATCH_NORM ? plan.attributes.as<bp_batch_norm_attributes>().training : 0;
    std::vector<Kernel> out{{shader_, {0, op, training, 0}}, {shader_, {1, op, training, 0}}};
    if (ways_.fours && (op == BP_OP_LAYER_NORM || op == BP_OP_RMS_NORM)) {
      const auto has = [&](uint32_t i) { return i < plan.input_count && plan.operands[i].dtype != 0; };
      const uint32_t gamma = has(1) ? 1 : 0, beta = gamma != 0 && op == BP_OP_LAYER_NORM && has(2) ? 1 : 0;
      out.push_back({shader_, by_four(op, gamma + beta, 0)});
    }
    add_held(out, held_shader_, held_, {lines(op) ? 1u : 0u, op, training, 0});
    return out;
  }

  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const uint32_t op = call.op->id;
    const View& x = call.in(0);
    float epsilon = 0, momentum = 0;
    Geometry geometry;
    bool sees_all = true;  // of the row, before it normalises
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
    const RowNest& rows = nest.merged();
    const auto length = static_cast<float>(rows.length());
    // By four, what is given must be what the kernel was made for.
    const bool beta_alone = !rms && given(call.inputs, 1) == nullptr && given(call.inputs, 2) != nullptr;
    const RowKernel kernel{.pipeline = program.pipelines[0],
                           .line_pipeline = program.pipelines[1],
                           .passes = sees_all ? RowPasses::kTwice : RowPasses::kOnce,
                           .cpu = ways_.cpu,
                           .four_pipeline = ways_.fours && !beta_alone ? program.pipelines[2] : VK_NULL_HANDLE,
                           .fours = 0b1111,
                           .held = held_,
                           .held_pipelines = &program.pipelines[2],
                           .held_lines = lines(op)};
    return launch_rows<kNormOperands>(stream, kernel, rows, accesses_of(call), [&](RowBlock<kNormOperands>& block) {
      block.numbers[0] = epsilon;
      block.numbers[1] = momentum;
      block.numbers[2] = length;
    });
  }

 private:
  // Rows of the others have channels and what lies within them.
  static bool lines(uint32_t op) { return op == BP_OP_LAYER_NORM || op == BP_OP_RMS_NORM; }

  const RowWays ways_;
  const std::string shader_, held_shader_;
  const std::vector<HeldRow> held_ = ways_.held(1);
};

}  // namespace

void add_norm(Operators& operators, const PhysicalDevice& device) {
  for_dtypes(kFloats, [&](uint32_t dtype) {
    const OperatorEntry forward = entry_of<Norm>(dtype, RowWays::of(device));
    for (const uint32_t op : {BP_OP_LAYER_NORM, BP_OP_RMS_NORM, BP_OP_GROUP_NORM, BP_OP_BATCH_NORM})
      operators.add(op, dtype, forward);
  });
}

}  // namespace backplane::vulkan
