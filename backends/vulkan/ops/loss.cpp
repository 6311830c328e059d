// SPDX-License-Identifier: Apache-2.0
// cross_entropy with its gradient. A reduced loss is summed from those of the rows, which scratch memory keeps as f32.
#include <utility>

#include "ops/reduction.hpp"

namespace backplane::vulkan {

namespace {

constexpr uint32_t kOperands = 6;
using Block = RowBlock<kOperands>;

// Behind the partials: two numbers, then losses.
constexpr uint64_t kLosses = 64;
constexpr auto kMostLosses = static_cast<int64_t>((Stream::kScratchBytes - kPartialBytes - kLosses) / sizeof(float));

class CrossEntropy : public Operator {
 public:
  CrossEntropy(uint32_t dtype, const RowWays& ways)
      : ways_(ways),
        shader_(ways.shader("loss_cross_entropy", dtype)),
        held_shader_(ways.shader("loss_cross_entropy_registers", dtype)) {}

  // Kernels compare 32 bits.
  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds&) const override {
    const int64_t index = checked.attributes.as<bp_cross_entropy_attributes>().ignore_index;
    if (std::in_range<int32_t>(index)) return {};
    return kit::unsupported("cross_entropy: ignore_index ", index,
                            " is beyond the 32 bits of this plugin; it is decomposed");
  }

  std::vector<Kernel> kernels(const kit::PlanForm& plan, bool) const override {
    const auto& attributes = plan.attributes.as<bp_cross_entropy_attributes>();
    const auto ignored = static_cast<uint32_t>(attributes.ignore_index);
    const uint32_t reduced = attributes.reduction == BP_REDUCTION_NONE ? 0 : 1;
    std::vector<Kernel> out{
        {shader_, {1, reduced, ignored, 0}}, {shader_, {1, reduced, ignored, 1}}, {shader_, {1, reduced, ignored, 2}}};
    if (ways_.fours) out.push_back({shader_, by_four(reduced, ignored, 0)});
    add_held(out, held_shader_, held_, {1, reduced, ignored, 0});
    return out;
  }

  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const auto& attributes = call.attributes<bp_cross_entropy_attributes>();
    const View &logits = call.in(0), &target = call.in(1);
    const View* weight = call.inputs.size() > 2 && call.in(2).dtype != 0 ? &call.in(2) : nullptr;
    const View* gradient = call.outputs.size() > 1 && call.out(1).dtype != 0 ? &call.out(1) : nullptr;
    const int64_t rows = logits.shape[0], classes = logits.shape[1];
    const bool reduced = attributes.reduction != BP_REDUCTION_NONE, mean = attributes.reduction == BP_REDUCTION_MEAN;
    const uint64_t sum = stream.scratch() + kPartialBytes, divisor = mean ? sum + sizeof(float) : 0;
    const uint64_t losses = sum + kLosses;
    Accesses accesses = accesses_of(call);
    accesses.add({stream.scratch(), stream.scratch() + Stream::kScratchBytes, true});
    // Exact as two numbers; targets have 31 bits.
    const int64_t counted = std::min<int64_t>(classes, int64_t{1} << 31), high = counted / 65536, low = counted % 65536;
    const auto count_classes = [high, low](Block& block) {
      block.numbers[2] = static_cast<float>(high);
      block.numbers[3] = static_cast<float>(low);
    };
    const auto add_weight = [&](RowNest& nest) {
      RowNest::Operand& operand = nest.add_repeated(weight);
      if (weight != nullptr) operand.strides[kRowRank - 1] = weight->strides[0] * element_bytes(*weight);
    };
    const auto add_memory = [](RowNest& nest, uint64_t address) -> RowNest::Operand& {
      RowNest::Operand& operand = nest.add_repeated(nullptr);
      operand.address = address;
      return operand;
    };

    if (mean) {
      RowNest targets;
      targets.add_dimension(rows, true);
      add_memory(targets, divisor);
      targets.add_repeated(nullptr);
      targets.add_repeated(&target).strides[0] = target.strides[0] * element_bytes(target);
      add_weight(targets);
      targets.add_repeated(nullptr);
      targets.add_repeated(nullptr);
      kit::Status status =
          launch_rows<kOperands>(stream, {program.pipelines[1], program.pipelines[1], RowPasses::kReduce, ways_.cpu},
                                 targets, accesses, count_classes);
      if (!status.ok()) return status;
    }

    RowNest nest = RowNest::by_axes(logits, 2);
    nest.add(gradient);
    nest.add(&logits);
    nest.add_repeated(&target).strides[0] = target.strides[0] * element_bytes(target);
    add_weight(nest);
    if (reduced) {
      nest.add_repeated(nullptr);
    } else {
      nest.add_repeated(&call.out()).strides[0] = call.out().strides[0] * element_bytes(call.out());
    }
    add_memory(nest, gradient != nullptr ? divisor : 0);
    const double smoothing = static_cast<double>(attributes.label_smoothing);
    const bool plain = weight == nullptr && smoothing == 0;
    const auto some = [&](RowNest part, int64_t first) {
      if (reduced) {
        part.operand[4].address = losses;
        part.operand[4].strides[0] = sizeof(float);
      }
      const RowKernel kernel{.pipeline = program.pipelines[0],
                             .line_pipeline = program.pipelines[0],
                             .passes = RowPasses::kTwice,
                             .cpu = ways_.cpu,
                             .four_pipeline = ways_.fours && plain ? program.pipelines[3] : VK_NULL_HANDLE,
                             .fours = 0b11,
                             .held = held_,
                             .held_pipelines = &program.pipelines[3]};
      kit::Status status = launch_rows<kOperands>(stream, kernel, part, accesses, [&](Block& block) {
        block.numbers[0] = static_cast<float>(smoothing / static_cast<double>(classes));
        block.numbers[1] = static_cast<float>(1 - smoothing);
        count_classes(block);
      });
      if (!status.ok() || !reduced) return status;
      RowNest totals;
      totals.add_dimension(part.rows(), true);
      totals.add_repeated(&call.out());
      add_memory(totals, losses).strides[0] = sizeof(float);
      for (int i = 0; i < 2; ++i) totals.add_repeated(nullptr);
      add_memory(totals, sum);
      add_memory(totals, divisor);
      return launch_rows<kOperands>(stream, {program.pipelines[2], program.pipelines[2], RowPasses::kReduce, ways_.cpu},
                                    totals, accesses, [&](Block& block) {
                                      block.numbers[0] = first == 0 ? 1.0f : 0.0f;
                                      block.numbers[1] = first + part.rows() == rows ? 1.0f : 0.0f;
                                    });
    };
    return rows == 0 ? some(nest, 0) : nest.for_rows(reduced ? kMostLosses : kMostLength, some);
  }

 private:
  const RowWays ways_;
  const std::string shader_, held_shader_;
  const std::vector<HeldRow> held_ = ways_.held(1);
};

}  // namespace

void add_cross_entropy(Operators& operators, const PhysicalDevice& device) {
  for_dtypes(kFloats, [&](uint32_t dtype) {
    operators.add(BP_OP_CROSS_ENTROPY, dtype, entry_of<CrossEntropy>(dtype, RowWays::of(device)));
  });
}

}  // namespace backplane::vulkan
