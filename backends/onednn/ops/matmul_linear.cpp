// SPDX-License-Identifier: Apache-2.0
// The operator linear. The GEMM of ops/gemm.cpp computes any size. For a recurring size, and for packed
// weights, a oneDNN primitive computes the product and adds the bias. Then a vector kernel applies the
// activation.
#include "ops/gemm.hpp"
#include "ops/operands.hpp"
#include "ops/operators.hpp"
#include "ops/packed_weights.hpp"
#include "ops/vector_loop.hpp"
#include "runtime/primitive.hpp"
#include "runtime/threads.hpp"
#include "simd/elementwise.hpp"

namespace backplane::onednn {
namespace {

using namespace kit;
using dnnl_api::Md;
using dnnl_api::Type;

// Maximum number of rows for which the dot products of ops/gemm.cpp are faster than oneDNN.
constexpr int64_t kRowsOfDots = 32;

struct Linear {
  Linear(const dnnl::matmul::primitive_desc& desc, const Md& bias, VectorPlan last, uint64_t sums, int team)
      : gemm(dnnl::matmul(desc),
             with_bias({{DNNL_ARG_SRC, desc.src_desc()},
                        {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                        {DNNL_ARG_DST, desc.dst_desc()}},
                       bias),
             desc.scratchpad_desc(), team),
        has_bias(!bias.is_zero()),
        activation(last),
        sums_bytes(sums) {}

  void run(const Call& call) const {
    std::byte* sums = sums_bytes != 0 ? call.workspace : call.out().data;
    std::byte* scratch = call.workspace + sums_bytes;
    if (has_bias) {
      gemm.run(scratch, {call.in(0).data, call.in(1).data, sums, call.in(2).data});
    } else {
      gemm.run(scratch, {call.in(0).data, call.in(1).data, sums});
    }
    if (activation.kernel != nullptr) run_contiguous(activation, sums, call.out());
  }

  Primitive gemm;
  bool has_bias;
  VectorPlan activation;
  // Bytes of workspace for f32 sums, which the activation converts to the output's dtype. The value is 0 if the
  // output itself contains the sums.
  uint64_t sums_bytes;
};

void run_linear(const Call& call) { call.prepared<Linear>().run(call); }

void run_linear_of_any_size(const Call& call) {
  const auto flat = [](const View& view) {  // merges all dimensions except the last into rows
    View out = view;
    const int64_t cols = view.shape[view.rank - 1];
    int64_t rows = 1;
    for (uint32_t d = 0; d + 1 < view.rank; ++d) rows *= view.shape[d];
    out.rank = 2;
    out.shape[0] = rows, out.shape[1] = cols;
    out.strides[0] = cols, out.strides[1] = 1;
    return out;
  };
  View w = call.in(1);
  std::swap(w.shape[0], w.shape[1]);
  w.strides[0] = 1, w.strides[1] = w.shape[0];
  const uint32_t activation = call.attributes<bp_linear_attributes>().activation;
  const Epilogue epilogue{.bias = optional_operand(call.inputs, 2),
                          .activation = activation == BP_ACTIVATION_NONE
                                            ? nullptr
                                            : activation_kernel(activation, BP_F32, call.out().dtype)};
  gemm(flat(call.in(0)), w, flat(call.out()), epilogue, *call.scratch);
}

// Returns the product that linear computes. If an activation follows, the product's output is f32.
Product product_of(const CheckedDesc& checked) {
  const bp_op_desc& desc = checked.desc;
  const bp_tensor_desc &x = desc.inputs[0], &w = desc.inputs[1];
  const Type type = type_of(x.dtype);
  const bool activated = checked.attributes.as<bp_linear_attributes>().activation != BP_ACTIVATION_NONE;
  const bool has_bias = desc.input_count > 2 && desc.inputs[2].dtype != 0;
  Product product{1, w.shape[1], w.shape[0], type, type, activated ? Type::f32 : type, has_bias ? type : Type::undef};
  for (uint32_t d = 0; d + 1 < x.rank; ++d) product.rows *= x.shape[d];
  return product;
}

Md plain_weights(const Product& product) {
  return {{product.depth, product.cols}, product.weights, dnnl_api::Dims{1, product.depth}};
}

Status pack_linear(const CheckedDesc& checked, uint32_t input, PreparedPack& prepared) {
  const Product product = product_of(checked);
  if (input != 1 || checked.desc.inputs[0].dtype == BP_F16 || product.rows == 0) return prefers_plain(checked, input);
  // With one row of f32, the GEMM of ops/gemm.cpp is faster than oneDNN (docs/measurements/2026-11-24-pack.md).
  const bool one_row = product.rows == 1 && product.x == Type::f32;
  if (one_row && !rules::is_packed(checked.desc.inputs[1])) return prefers_plain(checked, input);
  try {
    const auto made = describe_packed(product);
    if (!made) return prefers_plain(checked, input);
    return prepare_packing(checked, input, plain_weights(product), made.weights_desc(), product.x, prepared);
  } catch (const dnnl::error& failure) {
    return status_of(failure, "linear");
  }
}

Status prepare_linear(const CheckedDesc& checked, Prepared& prepared) {
  const bp_op_desc& desc = checked.desc;
  const bp_tensor_desc &x = desc.inputs[0], &w = desc.inputs[1], &y = desc.outputs[0];
  const uint32_t activation = checked.attributes.as<bp_linear_attributes>().activation;
  const Product product = product_of(checked);
  const auto [rows, depth, cols, type, weights_type, sums, bias_type] = product;
  const bool has_terms = rows != 0 && cols != 0 && depth != 0;
  const bool packed = rules::is_packed(w);
  // For f32, few rows and plain weights, the dot products of ops/gemm.cpp are faster than oneDNN.
  const bool dots = x.dtype == BP_F32 && rows <= kRowsOfDots && gemm_uses_dots(rows, depth);
  prepared.any_size = !packed && (x.dtype == BP_F16 || !has_terms || dots || (desc.flags & BP_OP_FLAG_SPECIALIZE) == 0);
  prepared.specializable = !packed && x.dtype != BP_F16 && rows > 1 && cols > 1;
  if (prepared.any_size) return {};
  const bool wide = sums != type;
  try {
    const TeamSize team(rows * cols * depth < kTeamWork ? 1 : team_size());
    const Md bias = product.bias_md();
    const auto made = packed ? describe_packed(product)
                             : dnnl_api::describe<dnnl::matmul>(
                                   engine(), strict_attributes(), Md({rows, depth}, type, dnnl_api::Dims{depth, 1}),
                                   plain_weights(product), bias, Md({rows, cols}, sums, dnnl_api::Dims{cols, 1}));
    if (!made) {
      if (packed) return prefers_plain(checked, 1);
      prepared.any_size = true;
      return {};
    }
    const VectorKernel kernel =
        activation == BP_ACTIVATION_NONE
            ? nullptr
            : activation_kernel(activation, wide ? uint32_t{BP_F32} : uint32_t{x.dtype}, y.dtype);
    const uint64_t sums_bytes = wide ? (static_cast<uint64_t>(rows * cols) * sizeof(float) + 63) / 64 * 64 : 0;
    auto state = std::make_shared<Linear>(made, bias, VectorPlan{kernel, kCostlyGrain}, sums_bytes, team_size());
    prepared.workspace_bytes = sums_bytes + state->gemm.workspace_bytes();
    prepared.state = std::move(state);
    prepared.run = run_linear;
  } catch (const dnnl::error& failure) {
    return status_of(failure, "linear");
  }
  return {};
}

}  // namespace

void add_matmul_linear(Kernels& kernels) {
  for (const uint32_t dtype : {BP_F32, BP_F16, BP_BF16}) {
    if (!gemm_supports(dtype)) continue;
    kernels.add(BP_OP_LINEAR, dtype,
                {.run = run_linear_of_any_size, .dense = true, .prepare = prepare_linear, .pack = pack_linear});
  }
}

}  // namespace backplane::onednn
