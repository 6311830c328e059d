// SPDX-License-Identifier: Apache-2.0
// The operator cross_entropy and its gradient. If the loss is reduced, scratch memory holds
// the loss of each row as f32, and a second kernel sums these losses.
#include <utility>

#include "ops/operators.hpp"
#include "ops/reduction.hpp"

namespace backplane::vulkan {

namespace {

constexpr uint32_t kOperands = 6;
using LossParams = ReductionParams<kOperands>;

// Offset in bytes from the sum to the losses in scratch memory. Scratch memory holds the partial
// results, then the sum and the divisor, and then the losses.
constexpr uint64_t kLosses = 64;
constexpr auto kMaxLosses = static_cast<int64_t>((Stream::kScratchBytes - kPartialBytes - kLosses) / sizeof(float));

class CrossEntropy : public Operator {
 public:
  CrossEntropy(uint32_t dtype, const ReductionCaps& caps)
      : caps_(caps),
        shader_(caps.shader("loss_cross_entropy", dtype)),
        register_shader_(caps.shader("loss_cross_entropy_registers", dtype)) {}

  // Returns UNSUPPORTED if ignore_index exceeds 32 bits, because kernels compare targets in 32
  // bits.
  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds&) const override {
    const int64_t index = checked.attributes.as<bp_cross_entropy_attributes>().ignore_index;
    if (std::in_range<int32_t>(index)) return {};
    return kit::unsupported("cross_entropy: ignore_index ", index,
                            " does not fit into 32 bits, as this plugin requires; let core decompose it");
  }

  Kernels kernels(const kit::PlanForm& plan, bool) const override {
    const auto& attributes = plan.attributes.as<bp_cross_entropy_attributes>();
    const auto ignored = static_cast<uint32_t>(attributes.ignore_index);
    const uint32_t reduced = attributes.reduction == BP_REDUCTION_NONE ? 0 : 1;
    const auto with = [&](uint32_t mode) {
      return Constants{
          {kIdLayout, BACKPLANE_LAYOUT_DENSE}, {kIdOp, reduced}, {kIdIgnoreIndex, ignored}, {kIdMode, mode}};
    };
    Kernels out;
    out[kRows] = {shader_, with(BACKPLANE_CROSS_ENTROPY_ROWS)};
    out[kWeights] = {shader_, with(BACKPLANE_CROSS_ENTROPY_WEIGHTS)};
    out[kTotal] = {shader_, with(BACKPLANE_CROSS_ENTROPY_LOSSES)};
    if (caps_.use_vec4) out[kVec4] = {shader_, vec4_constants(with(BACKPLANE_CROSS_ENTROPY_ROWS))};
    put_register_kernels(out, kRegisters, register_shader_, register_rows_, with(BACKPLANE_CROSS_ENTROPY_ROWS));
    return out;
  }

  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const auto& attributes = call.attributes<bp_cross_entropy_attributes>();
    const View &logits = call.in(0), &target = call.in(1);
    const View *weight = given(call.inputs, 2), *gradient = given(call.outputs, 1);
    const int64_t rows = logits.shape[0], classes = logits.shape[1];
    const bool reduced = attributes.reduction != BP_REDUCTION_NONE, mean = attributes.reduction == BP_REDUCTION_MEAN;
    const uint64_t sum = stream.scratch() + kPartialBytes, divisor = mean ? sum + sizeof(float) : 0;
    const uint64_t losses = sum + kLosses;
    Accesses accesses = accesses_of(call);
    accesses.add({stream.scratch(), stream.scratch() + Stream::kScratchBytes, true});
    // Two floats, the quotient and the remainder of the division by 65,536, represent the number of
    // classes exactly. The number is capped at 2^31, because targets have 31 bits.
    const int64_t counted = std::min<int64_t>(classes, int64_t{1} << 31), high = counted / 65536, low = counted % 65536;
    const auto count_classes = [high, low](LossParams& params) {
      params.numbers[2] = static_cast<float>(high);
      params.numbers[3] = static_cast<float>(low);
    };
    const auto add_weight = [&](ReductionNest& nest) {
      ReductionNest::Operand& operand = nest.add_broadcast(weight);
      if (weight != nullptr) operand.strides[kReductionRank - 1] = weight->strides[0] * element_bytes(*weight);
    };
    const auto add_memory = [](ReductionNest& nest, uint64_t address) -> ReductionNest::Operand& {
      ReductionNest::Operand& operand = nest.add_broadcast(nullptr);
      operand.address = address;
      return operand;
    };

    if (mean) {
      ReductionNest targets;
      targets.add_dimension(rows, true);
      add_memory(targets, divisor);
      targets.add_broadcast(nullptr);
      targets.add_broadcast(&target).strides[0] = target.strides[0] * element_bytes(target);
      add_weight(targets);
      targets.add_broadcast(nullptr);
      targets.add_broadcast(nullptr);
      kit::Status status = launch_reduction<kOperands>(
          stream,
          {program.pipelines[kWeights], program.pipelines[kWeights], ReductionPasses::kReduce, caps_.tuned_as_cpu},
          targets, accesses, count_classes);
      if (!status.ok()) return status;
    }

    ReductionNest nest = ReductionNest::by_axes(logits, 2);
    nest.add(gradient);
    nest.add(&logits);
    nest.add_broadcast(&target).strides[0] = target.strides[0] * element_bytes(target);
    add_weight(nest);
    if (reduced) {
      nest.add_broadcast(nullptr);
    } else {
      nest.add_broadcast(&call.out()).strides[0] = call.out().strides[0] * element_bytes(call.out());
    }
    add_memory(nest, gradient != nullptr ? divisor : 0);
    const double smoothing = static_cast<double>(attributes.label_smoothing);
    const bool plain = weight == nullptr && smoothing == 0;
    const auto some = [&](ReductionNest part, int64_t first) {
      if (reduced) {
        part.operand[4].address = losses;
        part.operand[4].strides[0] = sizeof(float);
      }
      const ReductionKernel kernel{.pipeline = program.pipelines[kRows],
                                   .line_pipeline = program.pipelines[kRows],
                                   .passes = ReductionPasses::kReduceAndMap,
                                   .tuned_as_cpu = caps_.tuned_as_cpu,
                                   .vec4_pipeline = plain ? program.pipelines[kVec4] : VK_NULL_HANDLE,
                                   .vec4_operands = 0b11,
                                   .register_rows = register_rows_,
                                   .register_pipelines = &program.pipelines[kRegisters]};
      kit::Status status = launch_reduction<kOperands>(stream, kernel, part, accesses, [&](LossParams& params) {
        params.numbers[0] = static_cast<float>(smoothing / static_cast<double>(classes));
        params.numbers[1] = static_cast<float>(1 - smoothing);
        count_classes(params);
      });
      if (!status.ok() || !reduced) return status;
      ReductionNest totals;
      totals.add_dimension(part.rows(), true);
      totals.add_broadcast(&call.out());
      add_memory(totals, losses).strides[0] = sizeof(float);
      for (int i = 0; i < 2; ++i) totals.add_broadcast(nullptr);
      add_memory(totals, sum);
      add_memory(totals, divisor);
      return launch_reduction<kOperands>(
          stream, {program.pipelines[kTotal], program.pipelines[kTotal], ReductionPasses::kReduce, caps_.tuned_as_cpu},
          totals, accesses, [&](LossParams& params) {
            params.numbers[0] = first == 0 ? 1.0f : 0.0f;
            params.numbers[1] = first + part.rows() == rows ? 1.0f : 0.0f;
          });
    };
    return rows == 0 ? some(nest, 0) : nest.for_rows(reduced ? kMaxLosses : kMaxLength, some);
  }

 private:
  // kRows and kVec4 process rows. kWeights and kTotal sum weights and losses over rows. Pipeline
  // kRegisters + i is for register_rows_[i].
  enum Pipeline : uint32_t { kRows, kWeights, kTotal, kVec4, kRegisters };

  const ReductionCaps caps_;
  const std::string shader_, register_shader_;
  const std::vector<RegisterRows> register_rows_ = caps_.register_rows(1);
};

}  // namespace

void add_loss(Operators& operators, const PhysicalDevice& device) {
  for_dtypes(kFloats, [&](uint32_t dtype) {
    operators.add(BP_OP_CROSS_ENTROPY, dtype, entry_of<CrossEntropy>(dtype, ReductionCaps::of(device)));
  });
}

}  // namespace backplane::vulkan
