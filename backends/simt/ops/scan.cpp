// SPDX-License-Identifier: Apache-2.0
// The operator cumsum.
#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::simt {

namespace {

constexpr int64_t kSharedFrom = 256;  // minimum number of elements of a slice that a group scans

class Cumsum : public Operator {
 public:
  explicit Cumsum(uint32_t dtype) : module_(module_name("scan", dtype)) {}
  KernelNames kernels(const kit::PlanForm&) const override {
    return {{{module_, "scan_thread"}, {module_, "scan_group"}}};
  }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    const auto& attributes = call.attributes<bp_cumsum_attributes>();
    const uint32_t axis = attributes.axis;
    Nest nest = Nest::over(call.out());
    nest.add(call.out());
    nest.add(call.in(0));
    if (nest.count() == 0) return {};
    const int64_t extent = call.out().shape[axis];
    int64_t strides[2] = {nest.operand[0].strides[axis], nest.operand[1].strides[axis]};
    for (uint32_t k = 0; attributes.reverse != 0 && k < 2; ++k) {
      nest.advance(k, (extent - 1) * strides[k]);
      strides[k] = -strides[k];
    }
    nest.drop(axis);
    nest.merge();
    const auto fill = [&](NestParams& params, int64_t) {
      params.extra[0] = extent;
      params.extra[1] = strides[0];
      params.extra[2] = strides[1];
      params.option = attributes.exclusive;
    };
    const Limits& limits = launcher.limits();
    if (extent < kSharedFrom || nest.count() >= int64_t{limits.compute_units} * limits.width * 4) {
      return launch_nest(launcher, program.kernels[0], nest, fill, 1);
    }
    return nest.for_slices([&](const Nest& slice, int64_t first) {
      NestParams params = slice.nest_params();
      fill(params, first);
      const auto places = slice.places();
      return launch(launcher, program.kernels[1], groups_for(params.count, 1), whole_group(limits), {places.data(), 2},
                    params);
    });
  }

 private:
  const std::string module_;
};

}  // namespace

void add_scan(Operators& operators) {
  for_dtypes(kComputed & BP_SET_NUMERIC,
             [&](uint32_t dtype) { operators.add(BP_OP_CUMSUM, dtype, entry_of<Cumsum>(dtype)); });
}

}  // namespace backplane::simt
