// SPDX-License-Identifier: Apache-2.0
// The operator norm_bwd, which computes the gradients of all norms.
#include "ops/norm_nest.hpp"
#include "ops/operators.hpp"

namespace backplane::vulkan {

namespace {

constexpr uint32_t kNormBwdOperands = 7;

Geometry geometry_of(const bp_norm_bwd_attributes& attributes, const View& x) {
  return attributes.norm == BP_NORM_GROUP   ? Geometry::by_channels(x, attributes.groups)
         : attributes.norm == BP_NORM_BATCH ? Geometry::by_batch(x)
                                            : Geometry::by_axes(x, attributes.axes);
}

// Returns a dense f32 view, at `location`, of one statistic (mean or rstd) per row.
View statistic_of(const Geometry& geometry, const kit::Place<Buffer*>& location) {
  View out;
  out.dtype = BP_F32;
  out.place = location;
  std::ranges::fill(out.shape, 1);
  for (uint32_t i = 0; i < geometry.rank; ++i) {
    const Dimension& dimension = geometry.dimensions[i];
    if (dimension.statistic < 0) continue;
    out.shape[dimension.statistic] = dimension.extent;
    out.rank = std::max(out.rank, static_cast<uint32_t>(dimension.statistic) + 1);
  }
  int64_t stride = 1;
  for (uint32_t i = out.rank; i-- > 0; stride *= out.shape[i]) out.strides[i] = stride;
  return out;
}

bool has_statistics(const bp_norm_bwd_attributes& attributes, bool mean, bool rstd) {
  return rstd && (mean || attributes.norm == BP_NORM_RMS);
}

class NormBackward : public Operator {
 public:
  NormBackward(uint32_t dtype, const ReductionCaps& caps)
      : caps_(caps),
        shader_(caps.shader("norm_bwd", dtype)),
        register_shader_(caps.shader("norm_bwd_registers", dtype)) {}

  // If the caller passes no statistics, the plan computes the statistics of all rows. The workspace
  // stores these statistics, because dgamma and dbeta depend on every row.
  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override {
    const bp_op_desc& desc = checked.desc;
    const auto& attributes = checked.attributes.as<bp_norm_bwd_attributes>();
    const auto present = [&](uint32_t i) { return i < desc.input_count && desc.inputs[i].dtype != 0; };
    needs.any_size = has_statistics(attributes, present(3), present(4));
    if (needs.any_size) return {};
    if (present(3) || present(4))
      return kit::unsupported(
          "norm_bwd: this plugin needs both mean and rstd of the forward pass, or neither; let core decompose it");
    View x;
    x.rank = desc.inputs[1].rank;
    std::copy_n(desc.inputs[1].shape, x.rank, x.shape);
    const int64_t rows = statistic_of(geometry_of(attributes, x), {}).elements();
    needs.workspace_bytes = 2 * sizeof(float) * static_cast<uint64_t>(rows);
    return {};
  }

  Kernels kernels(const kit::PlanForm& plan, bool) const override {
    const auto& attributes = plan.attributes.as<bp_norm_bwd_attributes>();
    const auto has = [&](uint32_t i) { return i < plan.input_count && plan.operands[i].dtype != 0; };
    const uint32_t norm = attributes.norm, own = has_statistics(attributes, has(3), has(4)) ? 0 : 1;
    const auto with = [norm](uint32_t layout, uint32_t variant, uint32_t mode) {
      return Constants{{kIdLayout, layout}, {kIdOp, norm}, {kIdVariant, variant}, {kIdMode, mode}};
    };
    constexpr uint32_t kStrided = BACKPLANE_LAYOUT_STRIDED, kDense = BACKPLANE_LAYOUT_DENSE;
    Kernels out;
    out[kGradient] = {shader_, with(kStrided, own, BACKPLANE_NORM_BWD_GRADIENT)};
    out[kGradientLine] = {shader_, with(kDense, own, BACKPLANE_NORM_BWD_GRADIENT)};
    out[kParameters] = {shader_, with(kStrided, own, BACKPLANE_NORM_BWD_PARAMETERS)};
    out[kParametersLine] = {shader_, with(kDense, own, BACKPLANE_NORM_BWD_PARAMETERS)};
    if (own != 0) {
      out[kStatistics] = {shader_, with(kStrided, own, BACKPLANE_NORM_BWD_STATISTICS)};
      out[kStatisticsLine] = {shader_, with(kDense, own, BACKPLANE_NORM_BWD_STATISTICS)};
    }
    const uint32_t vec4_variant = own | (has(2) ? 2 : 0);
    if (caps_.use_vec4) out[kVec4] = {shader_, vec4_constants(with(kDense, vec4_variant, BACKPLANE_NORM_BWD_GRADIENT))};
    put_register_kernels(out, kRegisters, register_shader_, register_rows_,
                         with(layout_of(lines(norm)), own, BACKPLANE_NORM_BWD_GRADIENT));
    return out;
  }

  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const auto& attributes = call.attributes<bp_norm_bwd_attributes>();
    const View& x = call.in(1);
    const Geometry geometry = geometry_of(attributes, x);
    const View *mean = given(call.inputs, 3), *rstd = given(call.inputs, 4);
    Accesses accesses = accesses_of(call);
    const bool own = !has_statistics(attributes, mean != nullptr, rstd != nullptr);
    View own_mean, own_rstd;
    if (own) {
      kit::Place<Buffer*> location = call.workspace;
      const uint64_t address = address_of(location);
      own_mean = statistic_of(geometry, location);
      const int64_t bytes = own_mean.elements() * int64_t{sizeof(float)};
      location.offset += static_cast<uint64_t>(bytes);
      own_rstd = statistic_of(geometry, location);
      if (attributes.norm != BP_NORM_RMS) mean = &own_mean;
      rstd = &own_rstd;
      accesses.add({address, address + static_cast<uint64_t>(2 * bytes), true});
    }
    const auto add_inputs = [&](NormNest& nest) {
      nest.add(&call.in(0), &Dimension::axis);
      nest.add(given(call.inputs, 2), &Dimension::parameter);
      nest.add(mean, &Dimension::statistic);
      nest.add(rstd, &Dimension::statistic);
    };
    NormNest gradient(geometry, &Dimension::statistic);
    gradient.add(&call.out(), &Dimension::axis);
    gradient.add(&x, &Dimension::axis);
    add_inputs(gradient);
    gradient.add(nullptr, &Dimension::axis);
    const ReductionNest& rows = gradient.merged();
    const auto length = static_cast<float>(rows.length());
    const auto fill_extra = [&](ReductionParams<kNormBwdOperands>& params) {
      params.numbers[0] = attributes.epsilon;
      params.numbers[2] = length;
    };
    const ReductionKernel kernel{.pipeline = program.pipelines[kGradient],
                                 .line_pipeline = program.pipelines[kGradientLine],
                                 .passes = ReductionPasses::kReduceAndMap,
                                 .tuned_as_cpu = caps_.tuned_as_cpu,
                                 .vec4_pipeline = program.pipelines[kVec4],
                                 .vec4_operands = 0b1111,
                                 .register_rows = register_rows_,
                                 .register_pipelines = &program.pipelines[kRegisters],
                                 .registers_need_lines = lines(attributes.norm)};
    kit::Status status;
    // A kernel that reads whole rows also computes missing statistics. If rows are split, a
    // separate dispatch computes the statistics.
    if (own && rows.rows() != 0 && ReductionLaunch::of(rows, kernel).distribution.row_splits != 1) {
      status = launch_reduction<kNormBwdOperands>(stream,
                                                  {.pipeline = program.pipelines[kStatistics],
                                                   .line_pipeline = program.pipelines[kStatisticsLine],
                                                   .passes = ReductionPasses::kReduce,
                                                   .tuned_as_cpu = caps_.tuned_as_cpu},
                                                  rows, accesses, fill_extra);
    }
    if (status.ok()) status = launch_reduction<kNormBwdOperands>(stream, kernel, rows, accesses, fill_extra);
    if (!status.ok() || (given(call.outputs, 1) == nullptr && given(call.outputs, 2) == nullptr)) return status;
    NormNest parameters(geometry, &Dimension::parameter);
    parameters.add(given(call.outputs, 1), &Dimension::parameter);
    parameters.add(&x, &Dimension::axis);
    add_inputs(parameters);
    parameters.add(given(call.outputs, 2), &Dimension::parameter);
    const ReductionKernel sums{.pipeline = program.pipelines[kParameters],
                               .line_pipeline = program.pipelines[kParametersLine],
                               .passes = ReductionPasses::kReduce,
                               .tuned_as_cpu = caps_.tuned_as_cpu};
    return launch_reduction<kNormBwdOperands>(stream, sums, parameters.merged(), accesses,
                                              [](ReductionParams<kNormBwdOperands>&) {});
  }

 private:
  // Pipelines with "Line" in their names are for rows with one dimension. Pipeline kRegisters + i
  // is for register_rows_[i].
  enum Pipeline : uint32_t {
    kGradient,
    kGradientLine,
    kParameters,
    kParametersLine,
    kStatistics,
    kStatisticsLine,
    kVec4,
    kRegisters
  };
  static bool lines(uint32_t norm) { return norm == BP_NORM_LAYER || norm == BP_NORM_RMS; }

  const ReductionCaps caps_;
  const std::string shader_, register_shader_;
  const std::vector<RegisterRows> register_rows_ = caps_.register_rows(2);
};

}  // namespace

void add_norm_bwd(Operators& operators, const PhysicalDevice& device) {
  for_dtypes(kFloats, [&](uint32_t dtype) {
    operators.add(BP_OP_NORM_BWD, dtype, entry_of<NormBackward>(dtype, ReductionCaps::of(device)));
  });
}

}  // namespace backplane::vulkan
