// SPDX-License-Identifier: Apache-2.0
// The operator norm_bwd, which computes the gradients of all norms.
#include "ops/norm.hpp"
#include "ops/operators.hpp"

namespace backplane::simt {

namespace {

NormGeometry norm_geometry(const bp_norm_bwd_attributes& attributes, const View& x) {
  return attributes.norm == BP_NORM_GROUP   ? NormGeometry::by_groups(x, attributes.groups)
         : attributes.norm == BP_NORM_BATCH ? NormGeometry::by_batch(x)
                                            : NormGeometry::by_axes(x, attributes.axes);
}

class NormBackward : public Operator {
 public:
  explicit NormBackward(uint32_t dtype)
      : module_(module_name("norm_bwd", dtype)), statistics_module_(module_name("norm", dtype)) {}

  // The workspace contains partial results. If the operand mean or rstd is absent, the workspace also
  // contains the computed means and rstds of all rows, so the plan serves one size.
  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override {
    stage_immediates(checked, needs);
    const bp_op_desc& desc = checked.desc;
    const auto& attributes = checked.attributes.as<bp_norm_bwd_attributes>();
    const auto present = [&](uint32_t i) { return i < desc.input_count && desc.inputs[i].dtype != 0; };
    needs.workspace_bytes = kTileWorkspaceBytes;
    needs.any_size = present(4) && (present(3) || attributes.norm == BP_NORM_RMS);
    if (needs.any_size) return {};
    View x;
    x.rank = desc.inputs[1].rank;
    std::copy_n(desc.inputs[1].shape, x.rank, x.shape);
    const int64_t rows = norm_geometry(attributes, x).statistic_at({}).elements();
    needs.workspace_bytes += 2 * sizeof(float) * static_cast<uint64_t>(rows);
    return {};
  }
  KernelNames kernels(const kit::PlanForm& plan) const override {
    const auto has = [&](uint32_t i, uint32_t count) { return i < count && plan.operands[i].dtype != 0; };
    const uint32_t inputs = plan.input_count, all = inputs + plan.output_count;
    KernelNames out;
    out[kGradient] = {module_, "norm_bwd"};
    if (has(inputs + 1, all) || has(inputs + 2, all)) out[kParameters] = {module_, "norm_bwd_parameters"};
    const bool rms = plan.attributes.as<bp_norm_bwd_attributes>().norm == BP_NORM_RMS;
    if (!has(4, inputs) || (!rms && !has(3, inputs))) out[kStatistics] = {statistics_module_, "norm_forward"};
    return out;
  }
  KernelNames kernels_on(const Limits& limits, const kit::PlanForm& plan) const override {
    KernelNames out = kernels(plan);
    if (limits.is_cpu) return out;
    out[kGradientPacked] = {module_, "norm_bwd_teams"};
    out[kGradientUnaligned] = {module_, "norm_bwd_teams_unaligned"};
    if (!out[kParameters].module.empty()) out[kParametersColumns] = {module_, "norm_bwd_columns"};
    if (out[kStatistics].module.empty()) return out;
    out[kStatisticsPacked] = {statistics_module_, "norm_teams"};
    out[kStatisticsUnaligned] = {statistics_module_, "norm_teams_unaligned"};
    return out;
  }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    const auto& attributes = call.attributes<bp_norm_bwd_attributes>();
    const bool rms = attributes.norm == BP_NORM_RMS;
    const View &dy = call.in(0), &x = call.in(1);
    const NormGeometry geometry = norm_geometry(attributes, x);
    const View *gamma = given(call.inputs, 2), *mean = given(call.inputs, 3), *rstd = given(call.inputs, 4);
    View own_mean, own_rstd;
    if (rstd == nullptr || (mean == nullptr && !rms)) {
      Place place = call.workspace;
      place.offset += kTileWorkspaceBytes;
      own_rstd = geometry.statistic_at(place);
      place.offset += sizeof(float) * static_cast<uint64_t>(own_rstd.elements());
      own_mean = geometry.statistic_at(place);
      const TileNest nest = geometry.nest(&NormDimension::statistic, {{nullptr, &NormDimension::axis},
                                                                      {&x, &NormDimension::axis},
                                                                      {nullptr, &NormDimension::parameter},
                                                                      {nullptr, &NormDimension::parameter},
                                                                      {&own_mean, &NormDimension::statistic},
                                                                      {&own_rstd, &NormDimension::statistic}});
      NormOperands operands;
      operands.set(1, &x);
      operands.set(4, &own_mean);
      operands.set(5, &own_rstd);
      operands.set(10, call.workspace, kTilePartialBytes);
      const uint32_t option = (rms ? 0 : SIMT_NORM_CENTRED) | SIMT_NORM_REDUCES;
      TileKernels kernels{program.kernels[kStatistics]};
      kernels.add_rows(launcher.limits(), program, kStatisticsPacked, kStatisticsUnaligned);
      kit::Status status = launch_norm(launcher, kernels, nest, operands, option, attributes.epsilon, 0, {});
      if (!status.ok()) return status;
      if (mean == nullptr && !rms) mean = &own_mean;
      if (rstd == nullptr) rstd = &own_rstd;
    }
    const auto run = [&](const TileKernels& kernels, TilePasses passes, NormRole rows, const View* first,
                         NormRole first_role, const View* fourth) {
      const TileNest nest = geometry.nest(rows, {{first, first_role},
                                                 {&x, &NormDimension::axis},
                                                 {&dy, &NormDimension::axis},
                                                 {fourth, &NormDimension::parameter},
                                                 {mean, &NormDimension::statistic},
                                                 {rstd, &NormDimension::statistic}});
      TileOperands<7, 6> operands;
      operands.main = passes == TilePasses::kReduce ? 0b110 : 0b111;
      operands.shared = passes == TilePasses::kReduce ? 0b110000 : 0b1000;
      uint32_t place = 0;
      for (const View* view : {first, &x, &dy, fourth, mean, rstd}) operands.set(place++, view);
      operands.set(6, call.workspace, kTilePartialBytes);
      return launch_tiles(launcher, kernels, passes, nest, operands,
                          [&](TileParams<7, 6>& params) { params.option = rms ? 0 : 1; });
    };
    TileKernels gradient{program.kernels[kGradient]}, parameters{program.kernels[kParameters]};
    gradient.add_rows(launcher.limits(), program, kGradientPacked, kGradientUnaligned);
    parameters.add_columns(launcher.limits(), program, kParametersColumns);
    kit::Status status =
        run(gradient, TilePasses::kReduceAndMap, &NormDimension::statistic, &call.out(), &NormDimension::axis, gamma);
    const View *dgamma = given(call.outputs, 1), *dbeta = given(call.outputs, 2);
    if (!status.ok() || (dgamma == nullptr && dbeta == nullptr)) return status;
    return run(parameters, TilePasses::kReduce, &NormDimension::parameter, dgamma, &NormDimension::parameter, dbeta);
  }

 private:
  enum Kernel : uint32_t {
    kGradient,
    kParameters,
    kStatistics,
    kGradientPacked,
    kGradientUnaligned,
    kParametersColumns,
    kStatisticsPacked,
    kStatisticsUnaligned
  };

  const std::string module_, statistics_module_;
};

}  // namespace

void add_norm_bwd(Operators& operators) {
  for_dtypes(kComputed & BP_SET_FLOATS, [&](uint32_t dtype) {
    OperatorEntry entry = entry_of<NormBackward>(dtype);
    entry.mixed = rules::kMixedParameters;
    operators.add(BP_OP_NORM_BWD, dtype, std::move(entry));
  });
}

}  // namespace backplane::simt
