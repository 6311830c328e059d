// SPDX-License-Identifier: Apache-2.0
// The operator cross_entropy and its gradient. If the loss is reduced, each group adds the losses
// of its rows, and another kernel adds the sums of the groups.
#include "ops/operators.hpp"
#include "ops/tile.hpp"

namespace backplane::simt {

#include "device/loss_params.h"

namespace {

constexpr uint64_t kSlotBytes = 16;
constexpr uint32_t kWeightGroups = 64;  // maximum number of groups that add the weights of targets
using LossOperands = TileOperands<7, 5>;
using LossParams = TileParams<7, 5>;

class CrossEntropy : public Operator {
 public:
  explicit CrossEntropy(uint32_t dtype) : module_(module_name("loss", dtype)) {}

  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override {
    stage_immediates(checked, needs);
    needs.workspace_bytes = kTileWorkspaceBytes + kSlotBytes * (SIMT_LOSS_GROUPS + kWeightGroups);
    return {};
  }
  KernelNames kernels(const kit::PlanForm& plan) const override {
    const uint32_t reduction = plan.attributes.as<bp_cross_entropy_attributes>().reduction;
    const bool has_gradient = plan.output_count > 1 && plan.operands[plan.input_count + 1].dtype != 0;
    KernelNames out;
    out[kRows] = {module_, "cross_entropy"};
    if (reduction != BP_REDUCTION_NONE) out[kTotal] = {module_, "cross_entropy_total"};
    if (reduction == BP_REDUCTION_MEAN && has_gradient) out[kWeights] = {module_, "cross_entropy_weights"};
    return out;
  }
  KernelNames kernels_on(const Limits& limits, const kit::PlanForm& plan) const override {
    KernelNames out = kernels(plan);
    const bool smooths = plan.attributes.as<bp_cross_entropy_attributes>().label_smoothing != 0;
    if (limits.is_cpu || smooths) return out;
    out[kPacked] = {module_, "cross_entropy_teams"};
    out[kUnaligned] = {module_, "cross_entropy_teams_unaligned"};
    return out;
  }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    const auto& attributes = call.attributes<bp_cross_entropy_attributes>();
    const View &logits = call.in(0), &target = call.in(1), &loss = call.out();
    const View *weight = given(call.inputs, 2), *gradient = given(call.outputs, 1);
    const int64_t rows = logits.shape[0], classes = logits.shape[1];
    const bool reduced = attributes.reduction != BP_REDUCTION_NONE, mean = attributes.reduction == BP_REDUCTION_MEAN;
    if (reduced && rows > kMaxTileRows) {
      return kit::invalid_argument("cross_entropy: there are more than 2^29 rows; divide the rows");
    }
    const auto stride = [](const View* view, uint32_t d) { return view == nullptr ? 0 : view->strides[d]; };
    TileNest nest;
    nest.add(rows, false,
             {stride(gradient, 0), logits.strides[0], target.strides[0], 0, reduced ? 0 : loss.strides[0]});
    nest.add(classes, true, {stride(gradient, 1), logits.strides[1], 0, stride(weight, 0), 0});
    nest.arrange();
    LossOperands operands;
    operands.main = 0b11;
    operands.shared = 0b1000;
    uint32_t place = 0;
    for (const View* view : {gradient, &logits, &target, weight, &loss}) operands.set(place++, view);
    Place slots = call.workspace;
    slots.offset += kTileWorkspaceBytes;
    operands.set(5, slots, kSlotBytes);
    operands.set(6, call.workspace, kTilePartialBytes);

    const bool divides = mean && gradient != nullptr;
    const double smoothing = static_cast<double>(attributes.label_smoothing);
    const Limits& limits = launcher.limits();
    const uint32_t group = stream_group(limits);
    const uint32_t weight_groups = std::min(groups_for(static_cast<uint64_t>(rows), 4096), kWeightGroups);
    const auto fill = [&](LossParams& params, uint32_t read_slots) {
      params.option =
          (reduced ? SIMT_LOSS_REDUCES : 0) | (mean ? SIMT_LOSS_MEAN : 0) | (divides ? SIMT_LOSS_DIVIDES : 0);
      params.numbers[0] = static_cast<float>(smoothing / static_cast<double>(classes));
      params.numbers[1] = static_cast<float>(1 - smoothing);
      const int64_t extra[] = {attributes.ignore_index, classes,           stride(weight, 0),
                               logits.strides[1],       target.strides[0], int64_t{read_slots}};
      std::ranges::copy(extra, params.extra);
    };
    const auto run = [&](Kernel kernel, uint32_t groups, uint32_t size, uint32_t read_slots) {
      LossParams params{};
      fill(params, read_slots);
      params.blocks = static_cast<u32>(rows);
      params.present = operands.present;
      std::ranges::copy(operands.bytes, params.bytes);
      return launch(launcher, program.kernels[kernel], groups, size, std::span<const Place>(operands.places), params);
    };
    TileKernels kernels{program.kernels[kRows]};
    if (smoothing == 0) kernels.add_rows(limits, program, kPacked, kUnaligned);
    kit::Status status;
    if (divides) status = run(kWeights, weight_groups, group, 0);
    if (status.ok()) {
      status = launch_tiles(launcher, kernels, TilePasses::kReduceAndMap, nest, operands,
                            [&](LossParams& params) { fill(params, weight_groups); });
    }
    if (!status.ok() || !reduced) return status;
    const auto teams = teams_of(kernels, TilePasses::kReduceAndMap, nest, limits, operands);
    const uint32_t slot_count = rows == 0 ? 0 : teams ? teams->groups : TileGrid::of(nest, limits, true).groups;
    return run(kTotal, 1, group, slot_count);
  }

 private:
  enum Kernel : uint32_t { kRows, kWeights, kTotal, kPacked, kUnaligned };

  const std::string module_;
};

}  // namespace

void add_loss(Operators& operators) {
  for_dtypes(kComputed & BP_SET_FLOATS, [&](uint32_t dtype) {
    OperatorEntry entry = entry_of<CrossEntropy>(dtype);
    entry.mixed = rules::kMixedIndex | rules::kMixedParameters;
    operators.add(BP_OP_CROSS_ENTROPY, dtype, std::move(entry));
  });
}

}  // namespace backplane::simt
