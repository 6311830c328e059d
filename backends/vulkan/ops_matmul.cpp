// SPDX-License-Identifier: Apache-2.0
// Matrix products, batched, of any strides; and linear, which ends them with a bias and an activation.
#include "product.hpp"
#include "product_division.hpp"

namespace backplane::vulkan {

namespace {

class Matmul : public Product {
 public:
  using Product::Product;

 private:
  void describe(const kit::Call& call, ProductParams& params) const override {
    const kit::View& out = call.out();
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
  uint32_t operation(const kit::Plan& plan) const override {
    return plan.attributes.as<bp_linear_attributes>().activation;
  }
  void describe(const kit::Call& call, ProductParams& params) const override {
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

void add_matmul(kit::Kernels& kernels, const PhysicalDevice& device, Way way) {
  for_dtypes(BP_SET_MATMUL & kComputed, [&](uint32_t dtype) {
    kernels.add(BP_OP_MATMUL, dtype,
                {.prepare = prepare_product, .state = std::make_shared<const Matmul>(dtype, way, device)});
  });
  for_dtypes(BP_SET_FLOATS & kComputed, [&](uint32_t dtype) {
    kernels.add(BP_OP_LINEAR, dtype, dtype,
                {.prepare = prepare_product, .state = std::make_shared<const Linear>(dtype, way, device)});
  });
}

kit::Status add_operators(kit::Kernels& kernels, const PhysicalDevice& device) {
  add_elementwise(kernels, device);
  add_index(kernels);
  add_lanes(kernels);
  add_reduce(kernels, device);
  add_adamw(kernels);
  add_pool(kernels);
  add_quantize(kernels, device);
  add_attention(kernels, device);
  add_rope(kernels);
  add_cross_entropy(kernels, device);
  add_norm(kernels, device);
  add_norm_bwd(kernels, device);
  add_softmax(kernels, device);
  add_topk(kernels, device);
  auto way = way_of(device);
  if (!way.ok()) return way.status();
  add_matmul(kernels, device, way.value());
  add_conv(kernels, device, way.value());
  add_quantized_matmul(kernels, device, way.value());
  return {};
}

}  // namespace backplane::vulkan
