// SPDX-License-Identifier: Apache-2.0
// The operators gather and scatter, which select elements by an index operand.
#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::vulkan {

namespace {

uint32_t index_bytes(const kit::PlanForm& plan) { return kit::dtype_bytes(plan.dtypes.second); }

class Gather : public Operator {
 public:
  explicit Gather(std::string shader) : shader_(std::move(shader)) {}
  Kernels kernels(const kit::PlanForm& plan, bool) const override {
    return {{{shader_, {{kIdOp, BACKPLANE_COPY_GATHER}, {kIdVariant, index_bytes(plan)}}}}};
  }
  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const View &x = call.in(0), &index = call.in(1);
    const uint32_t axis = call.attributes<bp_axis_attributes>().axis;
    LoopNest nest = LoopNest::of({&call.out(), &index, &x});
    const int64_t axis_stride = nest.operand[2].strides[axis];
    nest.operand[2].strides[axis] = 0;
    nest.merge();
    // If x is empty, every index is out of range.
    const int64_t extent = x.elements() == 0 ? 0 : x.shape[axis];
    return launch_elementwise(stream, program.pipelines[0], nest, call, [&](Params& params) {
      params.extra[0] = extent;
      params.extra[1] = x.is_immediate ? 0 : axis_stride;
    });
  }

 private:
  const std::string shader_;
};

class Scatter : public Operator {
 public:
  explicit Scatter(std::string shader) : shader_(std::move(shader)) {}
  // Returns UNSUPPORTED for mode ADD on f16 and bf16, because rounding each addition to 16 bits
  // would exceed the error bound of a sum.
  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds&) const override {
    const uint32_t dtype = checked.dtypes.first;
    const bool adds = checked.attributes.as<bp_scatter_attributes>().mode == BP_SCATTER_ADD;
    if (!adds || (dtype != BP_F16 && dtype != BP_BF16)) return {};
    return kit::unsupported("scatter: mode ADD on ", kit::dtype_name(dtype),
                            " is not implemented by this plugin; scatter in f32, and cast");
  }
  Kernels kernels(const kit::PlanForm& plan, bool) const override {
    const uint32_t mode = plan.attributes.as<bp_scatter_attributes>().mode;
    return {{{shader_, {{kIdOp, mode}, {kIdVariant, index_bytes(plan)}}}}};
  }
  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const View &io = call.out(), &index = call.in(0), &source = call.in(1);
    const uint32_t axis = call.attributes<bp_scatter_attributes>().axis;
    LoopNest nest = LoopNest::of({&index, &io, &source});
    std::swap(nest.operand[0], nest.operand[1]);
    if (nest.count() == 0 || io.elements() == 0) return {};
    const int64_t io_stride = nest.operand[0].strides[axis];
    const int64_t index_stride = index.is_immediate ? 0 : nest.operand[1].strides[axis];
    const int64_t source_stride = source.is_immediate ? 0 : nest.operand[2].strides[axis];
    const int64_t count = index.shape[axis];
    nest.drop(axis);
    nest.merge();
    for (int64_t first = 0; first < count; first += kMaxSteps) {
      LoopNest part = nest;
      part.operand[1].address += static_cast<uint64_t>(first * index_stride);
      part.operand[2].address += static_cast<uint64_t>(first * source_stride);
      kit::Status status = launch_elementwise(
          stream, program.pipelines[0], part, call,
          [&](Params& params) {
            params.extra[0] = io.shape[axis];
            params.extra[1] = io_stride;
            params.extra[2] = std::min(kMaxSteps, count - first);
            params.extra[3] = index_stride;
            params.extra[4] = source_stride;
          },
          kGroup, max_elements(std::min(kMaxSteps, count)));
      if (!status.ok()) return status;
    }
    return {};
  }

 private:
  const std::string shader_;
};

}  // namespace

void add_index(Operators& operators) {
  for_dtypes(BP_SET_ALL,
             [&](uint32_t dtype) { operators.add(BP_OP_GATHER, dtype, entry_of<Gather>(copy_shader(dtype))); });
  for_dtypes(kComputed, [&](uint32_t dtype) {
    operators.add(BP_OP_SCATTER, dtype, entry_of<Scatter>(shader_name("index_scatter", dtype)));
  });
}

}  // namespace backplane::vulkan
