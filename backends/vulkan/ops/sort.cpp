// SPDX-License-Identifier: Apache-2.0
#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::vulkan {

namespace {

// Slices of at most kMaxCounted elements are sorted by counting, in one step. Longer slices are
// sorted by a bitonic network of about log2(n)^2 / 2 steps.
constexpr int64_t kMaxCounted = 512;

class Sort : public Operator {
 public:
  explicit Sort(std::string shader) : shader_(std::move(shader)) {}
  // If there is no output for indices, the workspace holds the indices. A plan without this output
  // serves one size, because the size of the workspace depends on the operands.
  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override {
    const bp_op_desc& desc = checked.desc;
    needs.any_size = desc.output_count > 1 && desc.outputs[1].dtype != 0;
    if (needs.any_size) return {};
    uint64_t bytes = sizeof(int32_t);
    for (uint32_t i = 0; i < desc.inputs[0].rank; ++i) {
      if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(desc.inputs[0].shape[i]), &bytes))
        return kit::unsupported("sort: the indices of this input exceed the memory; divide the input");
    }
    needs.workspace_bytes = bytes;
    return {};
  }
  Kernels kernels(const kit::PlanForm& plan, bool) const override {
    const uint32_t descending = plan.attributes.as<bp_sort_attributes>().descending;
    Kernels out;
    out[kCount] = {shader_, {{kIdOp, descending}, {kIdMode, BACKPLANE_SORT_COUNT}}};
    out[kBegin] = {shader_, {{kIdOp, descending}, {kIdMode, BACKPLANE_SORT_BEGIN}}};
    out[kStep] = {shader_, {{kIdOp, descending}, {kIdMode, BACKPLANE_SORT_STEP}}};
    return out;
  }
  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const uint32_t axis = call.attributes<bp_sort_attributes>().axis;
    const bool indexed = given(call.outputs, 1) != nullptr;
    const View scratch_indices = indexed ? View{} : dense_indices(call);
    LoopNest nest = LoopNest::of({&call.out(0), indexed ? &call.out(1) : &scratch_indices, &call.in(0)});
    if (nest.count() == 0) return {};
    Accesses accesses = accesses_of(call);
    if (!indexed) add_access(accesses, scratch_indices, true);
    const int64_t extent = call.in(0).shape[axis];
    int64_t axis_strides[3];
    for (uint32_t k = 0; k < 3; ++k) {
      axis_strides[k] = nest.operand[k].strides[axis];
      nest.operand[k].strides[axis] = 0;
    }
    if (call.in(0).is_immediate) axis_strides[2] = 0;
    nest.add_counter(axis);
    const auto run = [&](Pipeline pipeline, LoopNest elements, int64_t distance, bool mirrored) {
      elements.merge();
      return elements.for_slices(
          [&](const LoopNest& part, int64_t) {
            const auto groups = groups_for(static_cast<uint64_t>(part.count()));
            return stream.dispatch({program.pipelines[pipeline], {groups, 1, 1}, accesses},
                                   [&](Params& params, uint64_t address) {
                                     part.fill(params, address);
                                     params.extra[0] = extent;
                                     params.extra[1] = axis_strides[2];
                                     params.extra[2] = axis_strides[0];
                                     params.extra[3] = axis_strides[1];
                                     params.extra[4] = distance;
                                     params.extra[5] = mirrored ? 1 : 0;
                                   });
          },
          max_elements(pipeline == kCount ? extent : 1));
    };
    if (extent > int64_t{1} << 31) {
      return kit::invalid_argument("sort: axis ", axis, " has ", extent, " elements; indices are i32, so at most 2^31");
    }
    if (extent <= kMaxCounted) return run(kCount, nest, 0, false);
    kit::Status status = run(kBegin, nest, 0, false);
    for (int64_t block = 2; status.ok() && block < 2 * extent; block *= 2) {
      LoopNest pairs = nest;
      // The loops contain the pairs of whole blocks. Kernels skip pairs past the end.
      pairs.shape[axis] = (extent + block - 1) / block * (block / 2);
      status = run(kStep, pairs, block / 2, true);
      for (int64_t distance = block / 4; status.ok() && distance > 0; distance /= 2)
        status = run(kStep, pairs, distance, false);
    }
    return status;
  }

 private:
  enum Pipeline : uint32_t { kCount, kBegin, kStep };

  // Returns a dense view of the indices in the workspace. The bitonic network compares the indices
  // of equal values, so that the sort is stable.
  static View dense_indices(const Call& call) {
    View out = call.out(0);
    out.dtype = BP_I32;
    out.place = call.workspace;
    out.is_immediate = false;
    int64_t stride = 1;
    for (uint32_t i = out.rank; i-- > 0; stride *= out.shape[i]) out.strides[i] = stride;
    return out;
  }

  const std::string shader_;
};

}  // namespace

void add_sort(Operators& operators) {
  for_dtypes(kComputed & BP_SET_NUMERIC,
             [&](uint32_t dtype) { operators.add(BP_OP_SORT, dtype, entry_of<Sort>(shader_name("sort", dtype))); });
}

}  // namespace backplane::vulkan
