// SPDX-License-Identifier: Apache-2.0
#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::vulkan {

namespace {

class Philox : public Operator {
 public:
  Kernels kernels(const kit::PlanForm&, bool dense) const override {
    return {{{"random_philox", {{kIdLayout, layout_of(dense)}}}}};
  }
  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    LoopNest nest = LoopNest::of({&call.out()});
    nest.merge();
    const Accesses accesses = accesses_of(call);
    return nest.for_slices([&](const LoopNest& slice, int64_t first) {
      const Stream::Dispatch dispatch{
          program.pipelines[0], {groups_for(static_cast<uint64_t>(slice.count()) / 4 + 2), 1, 1}, accesses};
      return stream.dispatch(dispatch, [&](Params& params, uint64_t address) {
        slice.fill(params, address);
        fill_scalars(params, address, call);
        params.extra[0] = first;
      });
    });
  }
};

}  // namespace

void add_random(Operators& operators) { operators.add(BP_OP_PHILOX, BP_U32, entry_of<Philox>()); }

}  // namespace backplane::vulkan
