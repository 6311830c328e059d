// SPDX-License-Identifier: Apache-2.0
// topk of few elements: selected, not sorted out of all.
#include <bit>

#include "ops/kernels.hpp"

namespace backplane::vulkan {

namespace {

// Times that a lane is gone through, where all digits of keys of 64 bits and of places are looked at, and gathered.
constexpr int64_t kMostPasses = 13;
constexpr int64_t kShort = 2048;  // a larger workgroup would be idle at more barriers than it saves rounds
constexpr int64_t kMostExtent = int64_t{kGroup} * 4096;
static_assert(kMostPasses * kMostExtent / kGroup < 65535, "Mesa's CPU driver ends an invocation there");

class TopK : public Operator {
 public:
  TopK(uint32_t dtype, uint32_t width) : shader_(shader_name("topk", dtype)), width_(width) {}

  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override {
    needs.any_size = false;
    const uint32_t axis = checked.attributes.as<bp_topk_attributes>().axis;
    const int64_t count = checked.desc.outputs[0].shape[axis], extent = checked.desc.inputs[0].shape[axis];
    if (count <= BACKPLANE_TOPK && extent <= kMostExtent) return {};
    return kit::unsupported("topk: this plugin selects up to ", BACKPLANE_TOPK, " of up to ", kMostExtent,
                            " elements, not ", count, " of ", extent, "; it is decomposed");
  }

  std::vector<Kernel> kernels(const kit::PlanForm& plan, bool) const override {
    const uint32_t smallest = plan.attributes.as<bp_topk_attributes>().smallest;
    std::vector<Kernel> out{{shader_, {0, smallest, 0, 0, kGroup}}};
    if (width_ != kGroup) out.push_back({shader_, {0, smallest, 0, 0, width_}});
    return out;
  }

  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const uint32_t axis = call.attributes<bp_topk_attributes>().axis;
    const bool indexed = call.outputs.size() > 1 && call.out(1).dtype != 0;
    const View &values = call.out(0), &x = call.in(0);
    // Where no indices are wanted, values stand in for them, and nothing is written there.
    Nest nest = Nest::of({&values, indexed ? &call.out(1) : &values, &x});
    if (nest.count() == 0) return {};
    int64_t along[3];
    for (uint32_t k = 0; k < 3; ++k) along[k] = nest.operand[k].strides[axis];
    if (x.is_immediate) along[2] = 0;
    nest.drop(axis);
    nest.merge();
    const int64_t extent = x.shape[axis], count = values.shape[axis];
    const bool wide = width_ != kGroup && extent > kShort;
    const int64_t width = wide ? width_ : kGroup;
    const int64_t steps = kMostPasses * (extent / width + 1) + count * (count / width + 1);
    return launch_elementwise(
        stream, program.pipelines[wide ? 1 : 0], nest, call,
        [&](Params& params) {
          params.extra[0] = extent;
          params.extra[1] = count;
          params.extra[2] = along[2];
          params.extra[3] = along[0];
          params.extra[4] = along[1];
          params.extra[5] = indexed ? 1 : 0;
        },
        1, most_elements(steps, 1));
  }

 private:
  const std::string shader_;
  const uint32_t width_;
};

}  // namespace

void add_topk(Operators& operators, const PhysicalDevice& device) {
  const VkPhysicalDeviceLimits& limits = device.properties.limits;
  const uint32_t most = std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  const uint32_t width = device.rows_as_cpu ? kGroup : std::min(std::bit_floor(most), 1024u);
  for_dtypes(kComputed & BP_SET_NUMERIC,
             [&](uint32_t dtype) { operators.add(BP_OP_TOPK, dtype, entry_of<TopK>(dtype, width)); });
}

}  // namespace backplane::vulkan
