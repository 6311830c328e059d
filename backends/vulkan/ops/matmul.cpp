// SPDX-License-Identifier: Apache-2.0
// The operators matmul, which may be batched, and linear, which adds a bias and an activation.
#include "ops/gemm.hpp"
#include "ops/operators.hpp"

namespace backplane::vulkan {

namespace {

class Matmul : public Gemm {
 public:
  using Gemm::Gemm;

 private:
  void describe(const Call& call, GemmParams& params) const override {
    const View& out = call.out();
    const Strides to(out), a(call.in(0)), b(call.in(1));
    describe_batch(out, to, a, params);
    params.depth = static_cast<uint32_t>(call.in(0).shape[out.rank - 1]);
    params.b_depth = b[out.rank - 2], params.b_column = b[out.rank - 1];
    std::copy_n(b.bytes, params.matrix_rank, params.b.strides);
    fold_batch_into_rows(params);
  }
};

class Linear : public Gemm {
 public:
  using Gemm::Gemm;

 private:
  uint32_t epilogue(const kit::PlanForm& plan) const override {
    return plan.attributes.as<bp_linear_attributes>().activation;
  }
  void describe(const Call& call, GemmParams& params) const override {
    const Strides to(call.out()), x(call.in(0)), w(call.in(1));
    describe_batch(call.out(), to, x, params);
    params.depth = static_cast<uint32_t>(call.in(1).shape[1]);
    params.b_depth = w[1], params.b_column = w[0];
    if (const View* bias = given(call.inputs, 2); bias != nullptr) {
      params.flags |= GemmParams::kBias;
      params.bias_column = Strides(*bias)[0];
    }
    fold_batch_into_rows(params);
  }
};

}  // namespace

void add_matmul(Operators& operators, const PhysicalDevice& device, GemmAlgorithm algorithm) {
  for_dtypes(BP_SET_MATMUL & kComputed,
             [&](uint32_t dtype) { operators.add(BP_OP_MATMUL, dtype, entry_of<Matmul>(dtype, algorithm, device)); });
  for_dtypes(BP_SET_FLOATS & kComputed, [&](uint32_t dtype) {
    operators.add(BP_OP_LINEAR, dtype, dtype, entry_of<Linear>(dtype, algorithm, device));
  });
}

}  // namespace backplane::vulkan
