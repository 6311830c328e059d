// SPDX-License-Identifier: Apache-2.0
// Matrix products, batched, of any strides; and linear, which ends them with a bias and an activation.
#include "product.hpp"

namespace backplane::vulkan {

void join_rows(ProductParams& params) {
  while (params.matrix_rank > 0) {
    const uint32_t d = params.matrix_rank - 1;
    const int64_t out = params.to.strides[d], a = params.a.strides[d];
    const bool single = params.rows == 1, repeats = params.matrix_shape[d] == 1;
    if (!repeats) {
      if (params.b.strides[d] != 0) return;
      if (!single && (out != params.out_row * params.rows || a != params.a_row * params.rows)) return;
      if (int64_t{params.rows} * params.matrix_shape[d] >= int64_t{1} << 31) return;
      if (single) params.out_row = out, params.a_row = a;
      params.rows *= params.matrix_shape[d];
      params.matrices /= params.matrix_shape[d];
    }
    --params.matrix_rank;
  }
}

void describe_batch(const kit::View& out, const Strides& to, const Strides& a, ProductParams& params) {
  params.rows = out.rank > 1 ? static_cast<uint32_t>(out.shape[out.rank - 2]) : 1;
  params.columns = static_cast<uint32_t>(out.shape[out.rank - 1]);
  params.out_row = out.rank > 1 ? to[out.rank - 2] : 0;
  params.out_column = to[out.rank - 1];
  params.a_row = out.rank > 1 ? a[out.rank - 2] : 0;
  params.a_depth = a[out.rank - 1];
  for (uint32_t d = 0; d + 2 < out.rank; ++d) {
    params.matrix_shape[d] = static_cast<uint32_t>(out.shape[d]);
    params.matrices *= params.matrix_shape[d];
    params.to.strides[d] = to[d];
    params.a.strides[d] = a[d];
    ++params.matrix_rank;
  }
}

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
  uint32_t activation(const kit::Plan& plan) const override {
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
    kernels.add(BP_OP_MATMUL, dtype, {.state = std::make_shared<const Matmul>(dtype, way, device, 0)});
  });
  for_dtypes(BP_SET_FLOATS & kComputed, [&](uint32_t dtype) {
    kernels.add(BP_OP_LINEAR, dtype, dtype, {.state = std::make_shared<const Linear>(dtype, way, device, 0)});
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
  add_softmax(kernels, device);
  auto way = way_of(device);
  if (!way.ok()) return way.status();
  add_matmul(kernels, device, way.value());
  add_conv(kernels, device, way.value());
  add_quantized_matmul(kernels, device, way.value());
  return {};
}

}  // namespace backplane::vulkan
