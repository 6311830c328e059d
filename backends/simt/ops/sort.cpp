// SPDX-License-Identifier: Apache-2.0
#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::simt {

namespace {

// Sorts slices of up to kMaxCounted elements by counting, and longer slices with a bitonic network
// of about log2(n)^2 / 2 steps.
class Sort : public Operator {
 public:
  explicit Sort(uint32_t dtype) : module_(module_name("sort", dtype)) {}
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
  KernelNames kernels(const kit::PlanForm&) const override {
    KernelNames out;
    out[kCount] = {module_, "sort_count"};
    out[kBegin] = {module_, "sort_begin"};
    out[kStep] = {module_, "sort_step"};
    return out;
  }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    const auto& attributes = call.attributes<bp_sort_attributes>();
    const uint32_t axis = attributes.axis;
    const View* indices = given(call.outputs, 1);
    const View scratch = indices == nullptr ? dense_indices(call) : View{};
    Nest nest = Nest::over(call.in(0));
    const int64_t value_stride = std::exchange(nest.add(call.out(0)).strides[axis], 0),
                  index_stride = std::exchange(nest.add(indices == nullptr ? scratch : *indices).strides[axis], 0),
                  x_stride = std::exchange(nest.add(call.in(0)).strides[axis], 0);
    if (nest.count() == 0) return {};
    Nest::Operand& counter = nest.add_absent();
    counter.bytes = 1;  // makes the counter's byte offset the index of its first element along the axis
    counter.strides[axis] = 1;
    const int64_t extent = call.in(0).shape[axis];
    if (extent > int64_t{1} << 30) {
      return kit::invalid_argument("sort: axis ", axis, " has ", extent,
                                   " elements, and this plugin sorts at most 2^30; divide the axis");
    }
    const auto run = [&](Kernel kernel, Nest elements, int64_t distance, bool mirrored) {
      elements.merge();
      return launch_nest(
          launcher, program.kernels[kernel], elements,
          [&](NestParams& params, int64_t) {
            params.extra[0] = extent;
            params.extra[1] = x_stride;
            params.extra[2] = value_stride;
            params.extra[3] = index_stride;
            params.extra[4] = distance;
            params.extra[5] = mirrored ? 1 : 0;
            params.option = attributes.descending;
          },
          kernel == kCount ? 1 : 1024);
    };
    if (extent <= kMaxCounted) return run(kCount, nest, 0, false);
    kit::Status status = run(kBegin, nest, 0, false);
    for (int64_t block = 2; status.ok() && block < 2 * extent; block *= 2) {
      Nest pairs = nest;
      // The loops contain the pairs of whole blocks. Kernels skip pairs past the end.
      pairs.shape[axis] = (extent + block - 1) / block * (block / 2);
      status = run(kStep, pairs, block / 2, true);
      for (int64_t distance = block / 4; status.ok() && distance > 0; distance /= 2)
        status = run(kStep, pairs, distance, false);
    }
    return status;
  }

 private:
  enum Kernel : uint32_t { kCount, kBegin, kStep };

  // Returns a dense view of the indices in the workspace. The network compares the indices of equal
  // values, so that the sort is stable.
  static View dense_indices(const Call& call) {
    View out = call.out(0);
    out.dtype = BP_I32;
    out.place = call.workspace;
    out.is_immediate = false;
    int64_t stride = 1;
    for (uint32_t i = out.rank; i-- > 0; stride *= out.shape[i]) out.strides[i] = stride;
    return out;
  }

  const std::string module_;
};

}  // namespace

void add_sort(Operators& operators) {
  for_dtypes(kComputed & BP_SET_NUMERIC,
             [&](uint32_t dtype) { operators.add(BP_OP_SORT, dtype, entry_of<Sort>(dtype)); });
}

}  // namespace backplane::simt
