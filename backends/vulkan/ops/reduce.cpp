// SPDX-License-Identifier: Apache-2.0
// The reduction operators, including argmax and argmin.
#include "ops/operators.hpp"
#include "ops/reduction.hpp"

namespace backplane::vulkan {

namespace {

class Reduce : public Operator {
 public:
  Reduce(std::string shader, uint32_t op, bool tuned_as_cpu)
      : shader_(std::move(shader)), op_(op), tuned_as_cpu_(tuned_as_cpu) {}

  Kernels kernels(const kit::PlanForm& plan, bool) const override {
    const Constants constants{{kIdOp, op_}, {kIdOutDtype, plan.dtypes.second}};
    Constants line = constants;
    line.set(kIdLayout, BACKPLANE_LAYOUT_DENSE);
    Kernels out;
    out[kStrided] = {shader_, constants};
    out[kLine] = {shader_, line};
    if (tuned_as_cpu_) out[kVec4] = {shader_, vec4_constants(constants, 1)};
    return out;
  }

  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const bool one_axis = op_ == BP_OP_ARGMAX || op_ == BP_OP_ARGMIN;
    const uint32_t axes =
        one_axis ? 1u << call.attributes<bp_axis_attributes>().axis : call.attributes<bp_reduce_attributes>().axes;
    ReductionNest nest = ReductionNest::by_axes(call.in(0), axes);
    nest.add(&call.out());
    nest.add(&call.in(0));
    nest.merge();
    // The vec4 kernel assigns one row to each thread, so it is used only if there are many rows.
    const VkPipeline vec4 = nest.rows() >= kGroup ? program.pipelines[kVec4] : VK_NULL_HANDLE;
    const ReductionKernel kernel{.pipeline = program.pipelines[kStrided],
                                 .line_pipeline = program.pipelines[kLine],
                                 .passes = ReductionPasses::kReduce,
                                 .tuned_as_cpu = tuned_as_cpu_,
                                 .vec4_pipeline = vec4,
                                 .vec4_operands = 0b10,
                                 .vec4_tile = 1};
    return launch_reduction<2>(stream, kernel, nest, accesses_of(call), [](ReductionParams<2>&) {});
  }

 private:
  // kStrided is for rows with any number of dimensions, kLine for rows with one dimension, and kVec4 for rows that
  // satisfy use_vec4_rows().
  enum Pipeline : uint32_t { kStrided, kLine, kVec4 };
  const std::string shader_;
  const uint32_t op_;
  const bool tuned_as_cpu_;
};

}  // namespace

void add_reduce(Operators& operators, const PhysicalDevice& device) {
  for (const uint32_t op :
       {BP_OP_REDUCE_SUM, BP_OP_REDUCE_PROD, BP_OP_REDUCE_MAX, BP_OP_REDUCE_MIN, BP_OP_ARGMAX, BP_OP_ARGMIN}) {
    for_dtypes(kComputed & kit::find_op(op)->dtypes, [&](uint32_t dtype) {
      operators.add(op, dtype, entry_of<Reduce>(shader_name("reduce", dtype), op, device.tuned_as_cpu));
    });
  }
}

}  // namespace backplane::vulkan
