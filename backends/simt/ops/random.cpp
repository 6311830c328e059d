// SPDX-License-Identifier: Apache-2.0
#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::simt {

namespace {

class Philox : public Operator {
 public:
  KernelNames kernels(const kit::PlanForm&) const override { return {{{"random_philox_u32", "philox"}}}; }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    Nest nest = Nest::over(call.out());
    nest.add(call.out());
    for (const Scalar& scalar : call.scalars) nest.add(scalar, BP_I64);
    nest.merge();
    return launch_nest(launcher, program.kernels[0], nest,
                       [](NestParams& params, int64_t first) { params.extra[0] = first; });
  }
};

}  // namespace

void add_random(Operators& operators) { operators.add(BP_OP_PHILOX, BP_U32, entry_of<Philox>()); }

}  // namespace backplane::simt
