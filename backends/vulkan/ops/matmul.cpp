// SPDX-License-Identifier: Apache-2.0
// Matrix products, batched, of any strides; and linear, which ends them with a bias and an activation.
#include "ops/gemm.hpp"
#include "ops/gemm_split_k.hpp"

namespace backplane::vulkan {

namespace {

class Matmul : public Product {
 public:
  using Product::Product;

 private:
  void describe(const Call& call, ProductParams& params) const override {
    const View& out = call.out();
    const Strides to(out), a(call.in(0)), b(call.in(1));
    describe_batch(out, to, a, params);
    params.depth = static_cast<uint32_t>(call.in(0).shape[out.rank - 1]);
    params.b_depth = b[out.rank - 2], params.b_column = b[out.rank - 1];
    std::copy_n(b.bytes, params.matrix_rank, params.b.strides);
    join_rows(params);
  }
};

class Linear : public Product {
 public:
  using Product::Product;

 private:
  uint32_t operation(const kit::PlanForm& plan) const override {
    return plan.attributes.as<bp_linear_attributes>().activation;
  }
  void describe(const Call& call, ProductParams& params) const override {
    const Strides to(call.out()), x(call.in(0)), w(call.in(1));
    describe_batch(call.out(), to, x, params);
    params.depth = static_cast<uint32_t>(call.in(1).shape[1]);
    params.b_depth = w[1], params.b_column = w[0];
    if (call.inputs.size() > 2 && call.in(2).dtype != 0) {
      params.flags |= ProductParams::kBias;
      params.bias_column = Strides(call.in(2))[0];
    }
    join_rows(params);
  }
};

}  // namespace

void add_matmul(Operators& operators, const PhysicalDevice& device, Way way) {
  for_dtypes(BP_SET_MATMUL & kComputed,
             [&](uint32_t dtype) { operators.add(BP_OP_MATMUL, dtype, entry_of<Matmul>(dtype, way, device)); });
  for_dtypes(BP_SET_FLOATS & kComputed,
             [&](uint32_t dtype) { operators.add(BP_OP_LINEAR, dtype, dtype, entry_of<Linear>(dtype, way, device)); });
}

kit::Status add_operators(Operators& operators, const PhysicalDevice& device) {
  add_elementwise(operators, device);
  add_index(operators);
  add_lanes(operators);
  add_reduce(operators, device);
  add_adamw(operators);
  add_pool(operators);
  add_quantize(operators, device);
  add_attention(operators, device);
  add_rope(operators);
  add_cross_entropy(operators, device);
  add_norm(operators, device);
  add_norm_bwd(operators, device);
  add_softmax(operators, device);
  add_topk(operators, device);
  auto way = way_of(device);
  if (!way.ok()) return way.status();
  add_matmul(operators, device, way.value());
  add_conv(operators, device, way.value());
  add_quantized_matmul(operators, device, way.value());
  return {};
}

}  // namespace backplane::vulkan
