// SPDX-License-Identifier: Apache-2.0
// quantized_matmul of float rows with weights of 4 or 8 bits, which become floats where a product reads them. Integer rows are left to
// core: its product in integers is exact, and has kernels of its own.
#include "product.hpp"

namespace backplane::vulkan {

namespace {

class QuantizedMatmul : public Product {
 public:
  QuantizedMatmul(uint32_t dtype, Way way, const PhysicalDevice& device)
      : Product(dtype, way == Way::kCooperative || way == Way::kDot ? Way::kShared : way, device, 0) {}

 private:
  enum Input : uint32_t { kRows, kWeights, kScale, kZero, kBias = 6 };

  const char* family(bool few) const override {
    return way_ == Way::kSubgroup && !few ? "product_quantized_subgroup" : "product_quantized";
  }
  bool reads_elements() const override { return false; }
  uint32_t first_constant(const kit::Plan& plan) const override {
    return plan.attributes.as<bp_quantized_matmul_attributes>().weight_bits;
  }
  uint64_t* address_of_input(ProductParams& params, uint32_t input) const override {
    switch (input) {
      case kRows:
        return &params.a.address;
      case kWeights:
        return &params.b.address;
      case kScale:
        return &params.scale;
      case kZero:
        return &params.zero;
      case kBias:
        return &params.bias.address;
      default:
        return nullptr;
    }
  }

  void describe(const kit::Call& call, ProductParams& params) const override {
    const auto& attributes = call.attributes<bp_quantized_matmul_attributes>();
    const kit::View &a = call.in(kRows), &weights = call.in(kWeights);
    const auto given = [&](uint32_t i) { return call.inputs.size() > i && call.inputs[i].dtype != 0; };
    const Strides w(weights);
    describe_batch(call.out(), Strides(call.out()), Strides(a), params);
    const int64_t depth = a.shape[a.rank - 1];
    const int64_t block = attributes.block == 0 ? depth : std::min<int64_t>(attributes.block, depth);
    params.all_depth = static_cast<uint32_t>(depth);
    params.depth = static_cast<uint32_t>(block);
    params.segments = block == 0 ? 0 : static_cast<uint32_t>((depth + block - 1) / block);
    params.a_block = params.a_depth * block;
    params.b_column = w[0];
    if (attributes.weight_bits == 8) {
      params.b_depth = w[1], params.b_block = w[1] * block;
    } else {
      params.b_byte = w[1];
    }
    per_column(call.in(kScale), params.columns, params.scale_column, params.scale_block);
    if (given(kZero)) per_column(call.in(kZero), params.columns, params.zero_column, params.zero_block);
    if (given(kBias)) {
      params.flags |= ProductParams::kBias;
      params.bias_column = Strides(call.in(kBias))[0];
    }
    join_rows(params);
  }

  // One value for all, one a column, or one a block of a column.
  static void per_column(const kit::View& view, uint32_t columns, int64_t& column, int64_t& block) {
    const Strides strides(view);
    const bool single = view.elements() == 1 && !(view.rank > 0 && view.shape[0] == columns);
    if (single) return;
    if (view.rank > 0) column = strides[0];
    if (view.rank == 2) block = strides[1];
  }
};

}  // namespace

void add_quantized_matmul(kit::Kernels& kernels, const PhysicalDevice& device, Way way) {
  for_dtypes(kFloats, [&](uint32_t dtype) {
    kernels.add(BP_OP_QUANTIZED_MATMUL, dtype, dtype,
                {.state = std::make_shared<const QuantizedMatmul>(dtype, way, device)});
  });
}

}  // namespace backplane::vulkan
