// SPDX-License-Identifier: Apache-2.0
// The operators softmax, log_softmax and softmax_bwd.
#include "ops/operators.hpp"
#include "ops/tile.hpp"

namespace backplane::simt {

namespace {

class Softmax : public Operator {
 public:
  explicit Softmax(uint32_t dtype) : module_(module_name("softmax", dtype)) {}

  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override {
    stage_immediates(checked, needs);
    needs.workspace_bytes = kTileWorkspaceBytes;
    return {};
  }
  KernelNames kernels(const kit::PlanForm& plan) const override {
    KernelNames out;
    out[kTiles] = {module_, plan.op->id == BP_OP_SOFTMAX_BWD ? "softmax_bwd" : "softmax"};
    return out;
  }
  KernelNames kernels_on(const Limits& limits, const kit::PlanForm& plan) const override {
    KernelNames out = kernels(plan);
    if (limits.is_cpu) return out;
    const bool backward = plan.op->id == BP_OP_SOFTMAX_BWD;
    out[kPacked] = {module_, backward ? "softmax_bwd_teams" : "softmax_teams"};
    out[kUnaligned] = {module_, backward ? "softmax_bwd_teams_unaligned" : "softmax_teams_unaligned"};
    if (!backward) out[kColumns] = {module_, "softmax_columns"};
    return out;
  }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    if (call.out().elements() == 0) return {};
    if (call.op->id == BP_OP_SOFTMAX_BWD) {
      const auto& attributes = call.attributes<bp_softmax_bwd_attributes>();
      return run<3>(launcher, program, call, {&call.out(), &call.in(0), &call.in(1)}, attributes.axis, attributes.log);
    }
    const uint32_t axis = call.attributes<bp_axis_attributes>().axis;
    return run<2>(launcher, program, call, {&call.out(), &call.in(0)}, axis, call.op->id == BP_OP_LOG_SOFTMAX ? 1 : 0);
  }

 private:
  template <int Operands>
  static kit::Status run(Launcher& launcher, const Program& program, const Call& call,
                         std::initializer_list<const View*> views, uint32_t axis, uint32_t logarithm) {
    TileNest nest;
    nest.add(views, 1u << axis);
    nest.arrange();
    TileOperands<Operands + 1, Operands> operands;
    operands.main = (1u << Operands) - 1;
    uint32_t place = 0;
    for (const View* view : views) operands.set(place++, view);
    operands.set(Operands, call.workspace, kTilePartialBytes);
    TileKernels kernels{program.kernels[kTiles]};
    kernels.add_rows(launcher.limits(), program, kPacked, kUnaligned);
    if (Operands == 2) kernels.add_columns(launcher.limits(), program, kColumns);
    return launch_tiles(launcher, kernels, TilePasses::kReduceAndMap, nest, operands,
                        [&](auto& params) { params.option = logarithm; });
  }

  enum Kernel : uint32_t { kTiles, kPacked, kUnaligned, kColumns };

  const std::string module_;
};

}  // namespace

void add_softmax(Operators& operators) {
  for_dtypes(kComputed & BP_SET_FLOATS, [&](uint32_t dtype) {
    OperatorEntry entry = entry_of<Softmax>(dtype);
    entry.mixed = rules::kMixedWide;  // does not affect softmax_bwd, whose operands have the same dtype
    for (const uint32_t op : {BP_OP_SOFTMAX, BP_OP_LOG_SOFTMAX, BP_OP_SOFTMAX_BWD}) operators.add(op, dtype, entry);
  });
}

}  // namespace backplane::simt
