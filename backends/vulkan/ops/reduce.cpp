// SPDX-License-Identifier: Apache-2.0
// Reductions, and the indices of extrema.
#include "ops/reduction.hpp"

namespace backplane::vulkan {

namespace {

class Reduce : public Operator {
 public:
  Reduce(std::string shader, uint32_t op, bool cpu) : shader_(std::move(shader)), op_(op), cpu_(cpu) {}

  std::vector<Kernel> kernels(const kit::PlanForm& plan, bool) const override {
    std::vector<Kernel> out{{shader_, {0, op_, plan.dtypes.second, 0}}, {shader_, {1, op_, plan.dtypes.second, 0}}};
    if (cpu_) out.push_back({shader_, by_four(op_, plan.dtypes.second, 0, 1)});
    return out;
  }

  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const bool one_axis = op_ == BP_OP_ARGMAX || op_ == BP_OP_ARGMIN;
    const uint32_t axes =
        one_axis ? 1u << call.attributes<bp_axis_attributes>().axis : call.attributes<bp_reduce_attributes>().axes;
    RowNest nest = RowNest::by_axes(call.in(0), axes);
    nest.add(&call.out());
    nest.add(&call.in(0));
    nest.merge();
    // A thread alone with a row, where rows are many.
    const VkPipeline four = nest.rows() >= kGroup ? program.pipelines[2] : VK_NULL_HANDLE;
    return launch_rows<2>(stream, {program.pipelines[0], program.pipelines[1], RowPasses::kReduce, cpu_, four, 0b10, 1},
                          nest, accesses_of(call), [](RowBlock<2>&) {});
  }

 private:
  const std::string shader_;
  const uint32_t op_;
  const bool cpu_;
};

}  // namespace

void add_reduce(Operators& operators, const PhysicalDevice& device) {
  for (const uint32_t op :
       {BP_OP_REDUCE_SUM, BP_OP_REDUCE_PROD, BP_OP_REDUCE_MAX, BP_OP_REDUCE_MIN, BP_OP_ARGMAX, BP_OP_ARGMIN}) {
    for_dtypes(kComputed & kit::find_op(op)->dtypes, [&](uint32_t dtype) {
      operators.add(op, dtype, entry_of<Reduce>(shader_name("reduce", dtype), op, device.rows_as_cpu));
    });
  }
}

}  // namespace backplane::vulkan
