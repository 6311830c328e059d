// SPDX-License-Identifier: Apache-2.0
// The operator topk for small k, which selects elements instead of sorting all elements.
#include <bit>

#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::vulkan {

namespace {

// Maximum number of passes over a slice. There is one pass per digit of 64-bit keys, one pass per
// digit of positions, and one pass to gather the selected elements.
constexpr int64_t kMaxPasses = 13;
constexpr int64_t kMaxNarrow = 2048;  // maximum length of slices for which a narrow workgroup is faster
constexpr int64_t kMaxExtent = int64_t{kGroup} * 4096;
static_assert(kMaxPasses * kMaxExtent / kGroup < 65535, "Mesa's CPU driver ends an invocation there");

class TopK : public Operator {
 public:
  TopK(uint32_t dtype, uint32_t group_size) : shader_(shader_name("topk", dtype)), group_size_(group_size) {}

  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override {
    needs.any_size = false;
    const uint32_t axis = checked.attributes.as<bp_topk_attributes>().axis;
    const int64_t count = checked.desc.outputs[0].shape[axis], extent = checked.desc.inputs[0].shape[axis];
    if (count <= BACKPLANE_TOPK_MAX && extent <= kMaxExtent) return {};
    return kit::unsupported("topk: this plugin selects up to ", BACKPLANE_TOPK_MAX, " of up to ", kMaxExtent,
                            " elements, not ", count, " of ", extent, "; let core decompose it");
  }

  Kernels kernels(const kit::PlanForm& plan, bool) const override {
    const uint32_t smallest = plan.attributes.as<bp_topk_attributes>().smallest;
    Kernels out;
    out[kNarrow] = {shader_, {{kIdOp, smallest}, {kIdGroupSize, kGroup}}};
    if (group_size_ != kGroup) out[kWide] = {shader_, {{kIdOp, smallest}, {kIdGroupSize, group_size_}}};
    return out;
  }

  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const uint32_t axis = call.attributes<bp_topk_attributes>().axis;
    const bool indexed = given(call.outputs, 1) != nullptr;
    const View &values = call.out(0), &x = call.in(0);
    // If there is no output for indices, `values` replaces that output in the nest, and the kernel
    // does not write indices.
    LoopNest nest = LoopNest::of({&values, indexed ? &call.out(1) : &values, &x});
    if (nest.count() == 0) return {};
    int64_t axis_strides[3];
    for (uint32_t k = 0; k < 3; ++k) axis_strides[k] = nest.operand[k].strides[axis];
    if (x.is_immediate) axis_strides[2] = 0;
    nest.drop(axis);
    nest.merge();
    const int64_t extent = x.shape[axis], count = values.shape[axis];
    const bool wide = group_size_ != kGroup && extent > kMaxNarrow;
    const int64_t group_size = wide ? group_size_ : kGroup;
    const int64_t steps = kMaxPasses * (extent / group_size + 1) + count * (count / group_size + 1);
    return launch_elementwise(
        stream, program.pipelines[wide ? kWide : kNarrow], nest, call,
        [&](Params& params) {
          params.extra[0] = extent;
          params.extra[1] = count;
          params.extra[2] = axis_strides[2];
          params.extra[3] = axis_strides[0];
          params.extra[4] = axis_strides[1];
          params.extra[5] = indexed ? 1 : 0;
        },
        1, max_elements(steps, 1));
  }

 private:
  enum Pipeline : uint32_t { kNarrow, kWide };  // for workgroups of kGroup or of group_size_ threads
  const std::string shader_;
  const uint32_t group_size_;
};

}  // namespace

void add_topk(Operators& operators, const PhysicalDevice& device) {
  const VkPhysicalDeviceLimits& limits = device.properties.limits;
  const uint32_t max_group_size = std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  const uint32_t group_size = device.tuned_as_cpu ? kGroup : std::min(std::bit_floor(max_group_size), 1024u);
  for_dtypes(kComputed & BP_SET_NUMERIC,
             [&](uint32_t dtype) { operators.add(BP_OP_TOPK, dtype, entry_of<TopK>(dtype, group_size)); });
}

}  // namespace backplane::vulkan
