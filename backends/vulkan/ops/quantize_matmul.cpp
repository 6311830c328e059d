// SPDX-License-Identifier: Apache-2.0
// The operator quantized_matmul, with weights of 4 or 8 bits. With float activations, the GEMM
// dequantizes weights when it reads them. With integer activations, the GEMM is exact, and its sums
// are scaled at the end.
#include "ops/gemm.hpp"
#include "ops/operators.hpp"

namespace backplane::vulkan {

namespace {

class QuantizedMatmul : public Gemm {
 public:
  using Gemm::Gemm;

 protected:
  enum Input : uint32_t { kActivations, kWeights, kScale, kZero, kActivationScale, kActivationZero, kBias };

  uint32_t b_source(const kit::PlanForm& plan) const override {
    return plan.attributes.as<bp_quantized_matmul_attributes>().weight_bits;
  }
  uint64_t* address_of_input(GemmParams& params, uint32_t input) const override {
    uint64_t* const addresses[] = {&params.a.address, &params.b.address, &params.scale,       &params.zero,
                                   &params.a_scale,   &params.a_zero,    &params.bias.address};
    return addresses[input];
  }
  static bool given(const Call& call, uint32_t i) { return call.inputs.size() > i && call.inputs[i].dtype != 0; }

  // Writes the parameters that float and integer activations share, except the segments of K.
  static void describe_operands(const Call& call, GemmParams& params) {
    const View &a = call.in(kActivations), &weights = call.in(kWeights);
    const Strides w(weights);
    describe_batch(call.out(), Strides(call.out()), Strides(a), params);
    params.depth = params.all_depth = static_cast<uint32_t>(a.shape[a.rank - 1]);
    params.b_column = w[0];
    if (call.attributes<bp_quantized_matmul_attributes>().weight_bits == 8) {
      params.b_depth = w[1];
    } else {
      params.b_byte = w[1];
    }
    per_column(call.in(kScale), params.columns, params.scale_column, params.scale_block);
    if (given(call, kZero)) per_column(call.in(kZero), params.columns, params.zero_column, params.zero_block);
    if (given(call, kBias)) {
      params.flags |= GemmParams::kBias;
      params.bias_column = Strides(call.in(kBias))[0];
    }
  }

 private:
  // Writes the strides of scales or zero points. There is one value in total, one value per column,
  // or one value per block of a column.
  static void per_column(const View& view, uint32_t columns, int64_t& column, int64_t& block) {
    const Strides strides(view);
    const bool single = view.elements() == 1 && !(view.rank > 0 && view.shape[0] == columns);
    if (single) return;
    if (view.rank > 0) column = strides[0];
    if (view.rank == 2) block = strides[1];
  }
};

class FloatActivations : public QuantizedMatmul {
 public:
  FloatActivations(uint32_t dtype, GemmAlgorithm algorithm, const PhysicalDevice& device)
      : QuantizedMatmul(dtype,
                        algorithm == GemmAlgorithm::kCooperative || algorithm == GemmAlgorithm::kWide ||
                                algorithm == GemmAlgorithm::kDot
                            ? GemmAlgorithm::kShared
                            : algorithm,
                        device, {.quantized = true}) {}

 private:
  void describe(const Call& call, GemmParams& params) const override {
    describe_operands(call, params);
    const int64_t depth = params.all_depth, requested = call.attributes<bp_quantized_matmul_attributes>().block;
    const int64_t block = requested == 0 ? depth : std::min<int64_t>(requested, depth);
    params.depth = static_cast<uint32_t>(block);
    params.segments = block == 0 ? 0 : static_cast<uint32_t>(ceil_div(depth, block));
    params.a_block = params.a_depth * block, params.b_block = params.b_depth * block;
    fold_batch_into_rows(params);
  }
};

class IntegerActivations : public QuantizedMatmul {
 public:
  IntegerActivations(uint32_t dtype, GemmAlgorithm algorithm, const PhysicalDevice& device)
      : QuantizedMatmul(dtype, algorithm, device, {.quantized = true}) {}

  // Returns UNSUPPORTED if the activations are integers and the weights have block scales. Each
  // block has its own scale, so the integer sums of different blocks cannot be added exactly.
  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override {
    if (checked.attributes.as<bp_quantized_matmul_attributes>().block != 0)
      return kit::unsupported(checked.op->name,
                              " of integer activations and block scales is not supported; let core decompose it");
    return Gemm::prepare(checked, needs);
  }

 private:
  uint32_t epilogue(const kit::PlanForm& plan) const override {  // sets ZERO_OF_A and ZERO_OF_B in shaders/gemm.glsl
    const auto planned = [&](uint32_t i) { return i < plan.input_count && plan.operands[i].dtype != 0; };
    return (planned(kActivationZero) ? 1u : 0u) | (planned(kZero) ? 2u : 0u);
  }
  void describe(const Call& call, GemmParams& params) const override {
    describe_operands(call, params);
    per_row(call.in(kActivationScale), params.a_scale_row);
    if (given(call, kActivationZero)) per_row(call.in(kActivationZero), params.a_zero_row);
    fold_batch_into_rows(params);
  }
  static void per_row(const View& view, int64_t& row) {
    if (view.rank > 0 && view.elements() > 1) row = Strides(view)[0];
  }
};

}  // namespace

void add_quantize_matmul(Operators& operators, const PhysicalDevice& device, GemmAlgorithm algorithm) {
  for_dtypes(kFloats, [&](uint32_t dtype) {
    operators.add(BP_OP_QUANTIZED_MATMUL, dtype, dtype, entry_of<FloatActivations>(dtype, algorithm, device));
  });
  for (const uint32_t rows : {BP_I8, BP_U8}) {
    const OperatorEntry entry = entry_of<IntegerActivations>(rows, algorithm, device);
    for_dtypes(kFloats, [&](uint32_t dtype) { operators.add(BP_OP_QUANTIZED_MATMUL, rows, dtype, entry); });
  }
}

}  // namespace backplane::vulkan
