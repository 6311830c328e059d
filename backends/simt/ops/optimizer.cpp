// SPDX-License-Identifier: Apache-2.0
// The operator adamw. One execution reads and writes each element of the parameter and of the
// moments once.
#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::simt {

namespace {

class Adamw : public Operator {
 public:
  explicit Adamw(uint32_t dtype) : module_(module_name("optimizer_adamw", dtype)) {}

  KernelNames kernels(const kit::PlanForm&) const override {
    return {{{module_, "adamw_nest"}, {module_, "adamw_rows"}}};
  }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    Nest nest = Nest::over(call.out());
    for (const View& view : call.outputs) nest.add(view);
    nest.add(call.in(0));
    nest.merge();
    const Limits& limits = launcher.limits();
    const bool rows = nest.has_rows(limits.width) && nest.operand[3].strides[nest.rank - 1] == 1;
    return nest.for_slices([&](const Nest& slice, int64_t) {
      const auto count = static_cast<uint64_t>(slice.count());
      if (rows) {
        const RowParams params = slice.row_params(row_chunk(limits, count));
        return run(launcher, program.kernels[kRows], row_groups(limits, params), call, slice, params);
      }
      const uint32_t elements = elements_per_group(limits, stream_group(limits), count);
      return run(launcher, program.kernels[kNest], groups_for(count, elements), call, slice, slice.nest_params());
    });
  }

 private:
  enum Kernel : uint32_t { kNest, kRows };

  template <class Loops>
  static kit::Status run(Launcher& launcher, uint32_t kernel, uint32_t groups, const Call& call, const Nest& nest,
                         const Loops& loops) {
    const auto& attributes = call.attributes<bp_adamw_attributes>();
    const auto complement = [](float value) { return static_cast<float>(1 - static_cast<double>(value)); };
    AdamwParams<Loops> params{};
    params.beta1 = attributes.beta1;
    params.complement1 = complement(attributes.beta1);
    params.beta2 = attributes.beta2;
    params.complement2 = complement(attributes.beta2);
    params.epsilon = attributes.epsilon;
    params.weight_decay = attributes.weight_decay;
    params.loops = loops;
    std::array<Place, 7> places;
    for (uint32_t k = 0; k < 4; ++k) places[k] = nest.operand[k].place;
    for (uint32_t i = 0; i < 3; ++i) {
      const Scalar& scalar = call.scalars[i];
      places[4 + i] = scalar.place;
      if (scalar.on_device) continue;
      params.scalars[i] = static_cast<uint32_t>(scalar.bits);
      params.immediate |= 1u << i;
    }
    return launch(launcher, kernel, groups, stream_group(launcher.limits()), places, params);
  }

  const std::string module_;
};

}  // namespace

void add_optimizer(Operators& operators) {
  for_dtypes(kComputed & BP_SET_FLOATS,
             [&](uint32_t dtype) { operators.add(BP_OP_ADAMW, dtype, entry_of<Adamw>(dtype)); });
}

}  // namespace backplane::simt
