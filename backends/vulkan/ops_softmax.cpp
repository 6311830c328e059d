// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and their backward, along any axis.
#include "rows.hpp"

namespace backplane::vulkan {

namespace {

class Softmax : public Operator {
 public:
  Softmax(std::string shader, bool cpu, bool fours) : shader_(std::move(shader)), cpu_(cpu), fours_(fours) {}

  std::vector<Kernel> kernels(const kit::Plan& plan, bool) const override {
    const bool backward = plan.op->id == BP_OP_SOFTMAX_BWD;
    const uint32_t logarithm = backward ? plan.attributes.as<bp_softmax_bwd_attributes>().log : 0;
    std::vector<Kernel> out{{shader_, {1, plan.op->id, logarithm, 0}}};
    if (fours_) out.push_back({shader_, by_four(plan.op->id, logarithm, 0)});
    return out;
  }

  kit::Status enqueue(Stream& stream, const Plan& plan, const kit::Call& call) const override {
    const bool backward = call.op->id == BP_OP_SOFTMAX_BWD;
    const uint32_t axis =
        backward ? call.attributes<bp_softmax_bwd_attributes>().axis : call.attributes<bp_axis_attributes>().axis;
    if (call.out().data == nullptr) return {};
    RowNest nest = RowNest::by_axes(call.out(), 1u << axis);
    nest.add(&call.out());
    nest.add(&call.in(0));
    nest.add(backward ? &call.in(1) : nullptr);
    nest.merge();
    return launch_rows<3>(stream,
                          {plan.pipelines[0], plan.pipelines[0], RowPasses::kTwice, cpu_, plan.pipelines[1], 0b111},
                          nest, accesses_of(call), [](RowBlock<3>&) {});
  }

 private:
  const std::string shader_;
  const bool cpu_, fours_;
};

}  // namespace

void add_softmax(kit::Kernels& kernels, const PhysicalDevice& device) {
  for_dtypes(kFloats, [&](uint32_t dtype) {
    const kit::KernelSpec spec{.state = std::make_shared<const Softmax>(row_shader("softmax", dtype, device),
                                                                        device.is_cpu(), rows_go_by_four(device))};
    for (const uint32_t op : {BP_OP_SOFTMAX, BP_OP_LOG_SOFTMAX, BP_OP_SOFTMAX_BWD}) kernels.add(op, dtype, spec);
  });
}

}  // namespace backplane::vulkan
