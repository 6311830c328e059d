// SPDX-License-Identifier: Apache-2.0
// The operator gemm. The GEMM of ops/gemm.cpp computes any size, and adds c to its accumulators. For a
// recurring size of f32 or bf16, a oneDNN primitive computes the product in f32. One more pass scales the
// product and adds c.
#include <backplane/kit/loops.hpp>
#include <backplane/kit/plan.hpp>

#include "ops/gemm.hpp"
#include "ops/matmul_primitive.hpp"
#include "ops/operands.hpp"
#include "ops/operators.hpp"
#include "runtime/threads.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;

constexpr int64_t kSumGrain = int64_t{1} << 17;  // number of elements that justify waking a thread

ScaledSum sum_of(const Call& call, ScaledSumKernel kernel) {
  const auto beta = call.scalar<float>(1);
  return {call.scalar<float>(0), beta, beta == 0 ? nullptr : optional_operand(call.inputs, 2), kernel};
}

void run_gemm_of_any_size(const Call& call) {
  const ScaledSum sum = sum_of(call, scaled_sum_kernel(call.out().dtype));
  gemm(call.in(0), call.in(1), call.out(), {.sum = &sum}, *call.scratch);
}

// The state of a plan for one size. The plan's output is dense.
struct GemmOfSize {
  std::shared_ptr<const MatmulPrimitive> product;
  ScaledSumKernel kernel;
  // Bytes of workspace for the product. The value is 0 if the output is f32, because the product is stored in
  // the output.
  uint64_t product_bytes;
};

// Computes out = alpha * product + beta * c. `product` is dense f32, and `out` is dense.
void add_to_product(const ScaledSum& sum, std::byte* product, const View& out) {
  View product_view = out, c = sum.c != nullptr ? *sum.c : View{};
  product_view.data = product;
  product_view.dtype = BP_F32;
  if (sum.c == nullptr) c.dtype = out.dtype;
  const LoopNest<3> nest({&out, &product_view, &c});
  parallel(nest.elements(), kSumGrain, [&](int part, int parts) noexcept {
    const uint32_t d = nest.longest();
    const Range range = range_of(nest.extent(d), part, parts, d + 1 == nest.rank() ? 64 : 1);
    if (range.begin == range.end) return;
    nest.cut(d, range.begin, range.end).rows([&](const auto& at, const auto& strides, int64_t count) {
      store_scaled_sum(sum, reinterpret_cast<const float*>(at[1]), sum.c == nullptr ? nullptr : at[2], strides[2],
                       at[0], count);
    });
  });
}

void run_gemm(const Call& call) {
  const auto& state = call.prepared<GemmOfSize>();
  const ScaledSum sum = sum_of(call, state.kernel);
  std::byte* const product = state.product_bytes != 0 ? call.workspace : call.out().data;
  state.product->run(call.workspace + state.product_bytes, call.in(0).data, call.in(1).data, product);
  const bool done = state.product_bytes == 0 && sum.c == nullptr && sum.alpha == 1;
  if (!done) add_to_product(sum, product, call.out());
}

// Returns whether adjacent elements of a row are neither contiguous nor the same element. A pass over such a
// row may read a cache line for each element.
bool has_distant_elements(const bp_tensor_desc& view) {
  const int64_t stride = view.strides[view.rank - 1];
  return view.shape[view.rank - 1] > 1 && stride != 0 && stride != 1;
}

Status prepare_gemm(const CheckedDesc& checked, Prepared& prepared) {
  const bp_op_desc& desc = checked.desc;
  const bp_tensor_desc &a = desc.inputs[0], &b = desc.inputs[1], &out = desc.outputs[0];
  const bool has_primitive = a.dtype == b.dtype && (a.dtype == BP_F32 || a.dtype == BP_BF16);
  prepared.any_size = !has_primitive || prefers_any_size(desc);
  prepared.specializable = has_primitive && specializable(out);
  if (prepared.any_size) return {};
  bp_tensor_desc product = dense_like(out);
  product.dtype = BP_F32;
  bp_op_desc matmul = desc;
  matmul.outputs = &product;
  try {
    GemmOfSize state{make_matmul(matmul, prepared), scaled_sum_kernel(out.dtype), 0};
    prepared.any_size = state.product == nullptr;
    if (prepared.any_size) return {};
    if (!rules::is_dense(out)) prepared.stage_outputs |= 1u;
    const bool has_c = desc.input_count > 2 && desc.inputs[2].dtype != 0;
    if (has_c && has_distant_elements(desc.inputs[2])) prepared.stage_inputs |= 1u << 2;
    if (out.dtype != BP_F32) {
      uint64_t elements = 1;
      for (uint32_t d = 0; d < out.rank; ++d) elements *= static_cast<uint64_t>(out.shape[d]);
      state.product_bytes = (elements * sizeof(float) + 63) / 64 * 64;
    }
    prepared.workspace_bytes = state.product_bytes + state.product->workspace_bytes();
    prepared.state = std::make_shared<GemmOfSize>(std::move(state));
    prepared.run = run_gemm;
  } catch (const dnnl::error& failure) {
    return status_of(failure, "gemm");
  }
  return {};
}

}  // namespace

void add_matmul_gemm(Kernels& kernels) {
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    if (!gemm_supports(dtype) || scaled_sum_kernel(dtype) == nullptr) continue;
    kernels.add(
        BP_OP_GEMM, dtype,
        {.run = run_gemm_of_any_size, .prepare = prepare_gemm, .mixed = rules::kMixedParameters | rules::kMixedHalves});
  }
}

}  // namespace backplane::onednn
