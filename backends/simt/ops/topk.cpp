// SPDX-License-Identifier: Apache-2.0
// The operator topk for small k, which selects elements instead of sorting all elements.
#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::simt {

namespace {

constexpr int64_t kMaxSelected = 256;
// Maximum length of slices for which a group has one sub-group.
constexpr int64_t narrow(const Limits& limits) { return limits.is_cpu ? 4096 : 1024; }

// Returns whether counting is faster than selecting. Counting compares all pairs. Selecting costs a
// search per selected element, plus the combination of the threads' results.
constexpr bool counts(int64_t count, int64_t extent) {
  return extent <= kMaxCounted && extent * extent < count * (extent + 384);
}

// Returns whether the kernel topk_filter, which computes one bound for all selected elements, is faster than a search
// per selected element. The bound costs about as much as 20,000 / (extent + 3,200) searches.
constexpr bool filters(int64_t count, int64_t extent) { return extent > 1024 && count * (extent + 3200) >= 20000; }

class TopK : public Operator {
 public:
  explicit TopK(uint32_t dtype) : module_(module_name("topk", dtype)) {}

  // Returns UNSUPPORTED for k above kMaxSelected in slices longer than kMaxCounted, because each
  // selected element costs a search.
  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override {
    needs.any_size = false;
    const uint32_t axis = checked.attributes.as<bp_topk_attributes>().axis;
    const int64_t count = checked.desc.outputs[0].shape[axis], extent = checked.desc.inputs[0].shape[axis];
    if (extent <= kMaxCounted || (count <= kMaxSelected && extent <= Nest::kMaxCount)) return {};
    return kit::unsupported("topk: this plugin selects up to ", kMaxSelected, " of up to 2^30 elements, not ", count,
                            " of ", extent, "; the operator is decomposed");
  }
  KernelNames kernels(const kit::PlanForm&) const override {
    return {{{module_, "topk_select"}, {module_, "topk_count"}}};
  }
  KernelNames kernels_on(const Limits& limits, const kit::PlanForm& plan) const override {
    KernelNames out = kernels(plan);
    if (!limits.is_cpu) out[kFilter] = {module_, "topk_filter"};
    return out;
  }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    const auto& attributes = call.attributes<bp_topk_attributes>();
    const View &values = call.out(0), &x = call.in(0);
    const View* indices = given(call.outputs, 1);
    if (values.elements() == 0) return {};
    const uint32_t axis = attributes.axis;
    const int64_t extent = x.shape[axis], count = values.shape[axis];
    Nest nest = Nest::over(x);
    const int64_t value_stride = std::exchange(nest.add(values).strides[axis], 0),
                  index_stride = indices == nullptr ? 0 : std::exchange(nest.add(*indices).strides[axis], 0);
    if (indices == nullptr) nest.add_absent();
    const int64_t x_stride = std::exchange(nest.add(x).strides[axis], 0);
    const auto fill = [&](NestParams& params, int64_t) {
      params.option = attributes.smallest;
      params.extra[0] = extent;
      params.extra[1] = count;
      params.extra[2] = x_stride;
      params.extra[3] = value_stride;
      params.extra[4] = index_stride;
      params.extra[5] = indices == nullptr ? 0 : kit::dtype_bytes(indices->dtype);
    };
    if (counts(count, extent)) {
      Nest::Operand& counter = nest.add_absent();
      counter.bytes = 1;  // makes the counter's byte offset the index of its first element along the axis
      counter.strides[axis] = 1;
      nest.merge();
      return launch_nest(launcher, program.kernels[kCount], nest, fill, 1);
    }
    nest.drop(axis);
    nest.merge();
    const Limits& limits = launcher.limits();
    const uint32_t group = extent <= narrow(limits) ? limits.width : whole_group(limits);
    const Kernel kernel = !limits.is_cpu && filters(count, extent) ? kFilter : kSelect;
    return nest.for_slices([&](const Nest& slices, int64_t first) {
      NestParams params = slices.nest_params();
      fill(params, first);
      const auto places = slices.places();
      return launch(launcher, program.kernels[kernel], groups_for(params.count, 1), group,
                    {places.data(), slices.operands}, params);
    });
  }

 private:
  enum Kernel : uint32_t { kSelect, kCount, kFilter };
  const std::string module_;
};

}  // namespace

void add_topk(Operators& operators) {
  for_dtypes(kComputed & BP_SET_NUMERIC, [&](uint32_t dtype) {
    OperatorEntry entry = entry_of<TopK>(dtype);
    entry.mixed = rules::kMixedIndex;
    operators.add(BP_OP_TOPK, dtype, std::move(entry));
  });
}

}  // namespace backplane::simt
