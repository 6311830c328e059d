// SPDX-License-Identifier: Apache-2.0
// The operators layer_norm, rms_norm, group_norm and batch_norm.
#include "ops/norm.hpp"

#include "ops/operators.hpp"

namespace backplane::simt {

NormGeometry NormGeometry::by_axes(const View& x, uint32_t axes) {
  NormGeometry out;
  int parameters = 0;
  for (uint32_t i = 0; i < x.rank; ++i) {
    const bool inside = (axes >> i & 1u) != 0;
    const int axis = static_cast<int>(i);
    out.add({x.shape[i], axis, inside ? -1 : axis, inside ? parameters++ : -1});
  }
  return out;
}

NormGeometry NormGeometry::by_groups(const View& x, int64_t groups) {
  const int64_t channels = x.shape[1] / groups;
  NormGeometry out;
  out.add({x.shape[0], 0, 0, -1});
  out.add({groups, 1, 1, 0, channels});
  out.add({channels, 1, -1, 0});
  out.add_plane(x);
  return out;
}

NormGeometry NormGeometry::by_batch(const View& x) {
  NormGeometry out;
  out.add({x.shape[0], 0, -1, -1});
  out.add({x.shape[1], 1, 0, 0});
  out.add_plane(x);
  return out;
}

void NormGeometry::add_plane(const View& x) {
  for (uint32_t i = 2; i < x.rank; ++i) add({x.shape[i], static_cast<int>(i), -1, -1});
}

TileNest NormGeometry::nest(NormRole rows, std::initializer_list<Operand> operands) const {
  TileNest out;
  for (uint32_t i = 0; i < rank; ++i) {
    const NormDimension& dimension = dimensions[i];
    TileNest::Dimensions& to = dimension.*rows < 0 ? out.elements : out.rows;
    to.shape[to.rank] = dimension.extent;
    uint32_t k = 0;
    for (const Operand& operand : operands) {
      const int axis = dimension.*(operand.role);
      // mean and rstd have an axis of groups, so `factor` does not apply to them.
      const int64_t factor = operand.role == &NormDimension::statistic ? 1 : dimension.factor;
      to.strides[k++][to.rank] = operand.view == nullptr || axis < 0 ? 0 : operand.view->strides[axis] * factor;
    }
    ++to.rank;
  }
  out.arrange();
  return out;
}

View NormGeometry::statistic_at(const Place& place) const {
  View out;
  out.dtype = BP_F32;
  out.place = place;
  std::ranges::fill(out.shape, 1);
  for (uint32_t i = 0; i < rank; ++i) {
    const NormDimension& dimension = dimensions[i];
    if (dimension.statistic < 0) continue;
    out.shape[dimension.statistic] = dimension.extent;
    out.rank = std::max(out.rank, static_cast<uint32_t>(dimension.statistic) + 1);
  }
  int64_t stride = 1;
  for (uint32_t i = out.rank; i-- > 0; stride *= out.shape[i]) out.strides[i] = stride;
  return out;
}

kit::Status launch_norm(Launcher& launcher, const TileKernels& kernels, const TileNest& nest,
                        const NormOperands& operands, uint32_t option, float epsilon, float momentum,
                        std::array<int64_t, 4> running_strides) {
  const bool maps = (operands.present & 1u) != 0, reduces = (option & SIMT_NORM_REDUCES) != 0;
  const TilePasses passes = !reduces ? TilePasses::kMap : maps ? TilePasses::kReduceAndMap : TilePasses::kReduce;
  NormOperands accessed = operands;
  accessed.main = 0b11;
  accessed.shared = 0b1100;
  return launch_tiles(launcher, kernels, passes, nest, accessed, [&](TileParams<11, 6>& params) {
    params.option = option;
    params.numbers[0] = epsilon;
    params.numbers[1] = momentum;
    std::copy(running_strides.begin(), running_strides.end(), params.extra);
  });
}

namespace {

class Norm : public Operator {
 public:
  explicit Norm(uint32_t dtype) : module_(module_name("norm", dtype)) {}

  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override {
    stage_immediates(checked, needs);
    needs.workspace_bytes = kTileWorkspaceBytes;
    return {};
  }
  KernelNames kernels(const kit::PlanForm&) const override {
    KernelNames out;
    out[kTiles] = {module_, "norm_forward"};
    return out;
  }
  KernelNames kernels_on(const Limits& limits, const kit::PlanForm& plan) const override {
    KernelNames out = kernels(plan);
    if (limits.is_cpu || plan.op->id == BP_OP_BATCH_NORM) return out;
    out[kPacked] = {module_, "norm_teams"};
    out[kUnaligned] = {module_, "norm_teams_unaligned"};
    return out;
  }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    const uint32_t op = call.op->id;
    const View& x = call.in(0);
    const bool rms = op == BP_OP_RMS_NORM, batch = op == BP_OP_BATCH_NORM;
    uint32_t option = (rms ? 0 : SIMT_NORM_CENTRED) | SIMT_NORM_REDUCES;
    float epsilon = 0, momentum = 0;
    NormGeometry geometry;
    if (op == BP_OP_GROUP_NORM) {
      const auto& attributes = call.attributes<bp_group_norm_attributes>();
      epsilon = attributes.epsilon;
      geometry = NormGeometry::by_groups(x, attributes.groups);
    } else if (batch) {
      const auto& attributes = call.attributes<bp_batch_norm_attributes>();
      epsilon = attributes.epsilon;
      momentum = attributes.momentum;
      geometry = NormGeometry::by_batch(x);
      option |= SIMT_NORM_BATCH | (attributes.training != 0 ? SIMT_NORM_TRAINS : 0);
      if (attributes.training == 0 && given(call.outputs, 3) == nullptr) option &= ~uint32_t{SIMT_NORM_REDUCES};
    } else {
      const auto& attributes = call.attributes<bp_norm_attributes>();
      epsilon = attributes.epsilon;
      geometry = NormGeometry::by_axes(x, attributes.axes);
    }
    const View *gamma = given(call.inputs, 1), *beta = rms ? nullptr : given(call.inputs, 2);
    const View* mean = rms ? nullptr : given(call.outputs, batch ? 3 : 1);
    const View* rstd = given(call.outputs, rms ? 1 : batch ? 4 : 2);
    const TileNest nest = geometry.nest(&NormDimension::statistic, {{&call.out(), &NormDimension::axis},
                                                                    {&x, &NormDimension::axis},
                                                                    {gamma, &NormDimension::parameter},
                                                                    {beta, &NormDimension::parameter},
                                                                    {mean, &NormDimension::statistic},
                                                                    {rstd, &NormDimension::statistic}});
    NormOperands operands;
    uint32_t place = 0;
    for (const View* view : {&call.out(), &x, gamma, beta, mean, rstd}) operands.set(place++, view);
    operands.set(10, call.workspace, kTilePartialBytes);
    std::array<int64_t, 4> running_strides{};
    if (batch) {
      const View* const running[] = {given(call.inputs, 3), given(call.inputs, 4), given(call.outputs, 1),
                                     given(call.outputs, 2)};
      if (x.shape[1] > kMaxTileRows) {
        return kit::invalid_argument("batch_norm: x has more than 2^29 channels; divide the channels");
      }
      for (uint32_t i = 0; i < 4; ++i) {
        if (running[i] == nullptr) continue;
        operands.set(6 + i, running[i]);
        running_strides[i] = running[i]->strides[0];
        if (running[i]->dtype == BP_F32) option |= SIMT_NORM_WIDE_RUNNING;
      }
    }
    TileKernels kernels{program.kernels[kTiles]};
    if (!batch) kernels.add_rows(launcher.limits(), program, kPacked, kUnaligned);
    return launch_norm(launcher, kernels, nest, operands, option, epsilon, momentum, running_strides);
  }

 private:
  enum Kernel : uint32_t { kTiles, kPacked, kUnaligned };

  const std::string module_;
};

}  // namespace

void add_norm(Operators& operators) {
  for_dtypes(kComputed & BP_SET_FLOATS, [&](uint32_t dtype) {
    OperatorEntry entry = entry_of<Norm>(dtype);
    entry.mixed = rules::kMixedParameters;
    for (const uint32_t op : {BP_OP_LAYER_NORM, BP_OP_RMS_NORM, BP_OP_GROUP_NORM, BP_OP_BATCH_NORM})
      operators.add(op, dtype, entry);
  });
}

}  // namespace backplane::simt
