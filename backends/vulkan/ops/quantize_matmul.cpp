// SPDX-License-Identifier: Apache-2.0
// quantized_matmul with weights of 4 or 8 bits. Of float rows weights become floats where a product reads them; integer rows are
// multiplied in integers, exactly, and scaled at the end.
#include "ops/gemm.hpp"
#include "ops/gemm_split_k.hpp"

namespace backplane::vulkan {

namespace {

class QuantizedMatmul : public Product {
 public:
  using Product::Product;

 protected:
  enum Input : uint32_t { kRows, kWeights, kScale, kZero, kRowScale, kRowZero, kBias };

  uint32_t packed(const kit::PlanForm& plan) const override {
    return plan.attributes.as<bp_quantized_matmul_attributes>().weight_bits;
  }
  uint64_t* address_of_input(ProductParams& params, uint32_t input) const override {
    uint64_t* const addresses[] = {&params.a.address, &params.b.address, &params.scale,       &params.zero,
                                   &params.a_scale,   &params.a_zero,    &params.bias.address};
    return addresses[input];
  }
  static bool given(const Call& call, uint32_t i) { return call.inputs.size() > i && call.inputs[i].dtype != 0; }

  // All but how k is divided in segments.
  static void describe_operands(const Call& call, ProductParams& params) {
    const View &a = call.in(kRows), &weights = call.in(kWeights);
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
      params.flags |= ProductParams::kBias;
      params.bias_column = Strides(call.in(kBias))[0];
    }
  }

 private:
  // One value for all, one a column, or one a block of a column.
  static void per_column(const View& view, uint32_t columns, int64_t& column, int64_t& block) {
    const Strides strides(view);
    const bool single = view.elements() == 1 && !(view.rank > 0 && view.shape[0] == columns);
    if (single) return;
    if (view.rank > 0) column = strides[0];
    if (view.rank == 2) block = strides[1];
  }
};

class FloatRows : public QuantizedMatmul {
 public:
  FloatRows(uint32_t dtype, Way way, const PhysicalDevice& device)
      : QuantizedMatmul(dtype, way == Way::kCooperative || way == Way::kDot ? Way::kShared : way, device,
                        {.quantized = true}) {}

 private:
  void describe(const Call& call, ProductParams& params) const override {
    describe_operands(call, params);
    const int64_t depth = params.all_depth, asked = call.attributes<bp_quantized_matmul_attributes>().block;
    const int64_t block = asked == 0 ? depth : std::min<int64_t>(asked, depth);
    params.depth = static_cast<uint32_t>(block);
    params.segments = block == 0 ? 0 : static_cast<uint32_t>(ceil_div(depth, block));
    params.a_block = params.a_depth * block, params.b_block = params.b_depth * block;
    join_rows(params);
  }
};

class IntegerRows : public QuantizedMatmul {
 public:
  IntegerRows(uint32_t dtype, Way way, const PhysicalDevice& device)
      : QuantizedMatmul(dtype, way, device, {.quantized = true}) {}

  // The sums of a block's integers would be floats, and the product none of integers.
  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override {
    if (checked.attributes.as<bp_quantized_matmul_attributes>().block != 0)
      return kit::unsupported(checked.op->name, " of integer rows with blocks is not here; let core decompose it");
    return Product::prepare(checked, needs);
  }

 private:
  uint32_t operation(const kit::PlanForm& plan) const override {  // shaders/gemm.glsl's ZERO_OF_A and ZERO_OF_B
    const auto planned = [&](uint32_t i) { return i < plan.input_count && plan.operands[i].dtype != 0; };
    return (planned(kRowZero) ? 1u : 0u) | (planned(kZero) ? 2u : 0u);
  }
  void describe(const Call& call, ProductParams& params) const override {
    describe_operands(call, params);
    per_row(call.in(kRowScale), params.a_scale_row);
    if (given(call, kRowZero)) per_row(call.in(kRowZero), params.a_zero_row);
    join_rows(params);
  }
  static void per_row(const View& view, int64_t& row) {
    if (view.rank > 0 && view.elements() > 1) row = Strides(view)[0];
  }
};

}  // namespace

void add_quantized_matmul(Operators& operators, const PhysicalDevice& device, Way way) {
  for_dtypes(kFloats, [&](uint32_t dtype) {
    operators.add(BP_OP_QUANTIZED_MATMUL, dtype, dtype, entry_of<FloatRows>(dtype, way, device));
  });
  for (const uint32_t rows : {BP_I8, BP_U8}) {
    const OperatorEntry entry = entry_of<IntegerRows>(rows, way, device);
    for_dtypes(kFloats, [&](uint32_t dtype) { operators.add(BP_OP_QUANTIZED_MATMUL, rows, dtype, entry); });
  }
}

}  // namespace backplane::vulkan
