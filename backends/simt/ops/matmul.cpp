// SPDX-License-Identifier: Apache-2.0
// The operators matmul, which may be batched, and linear, which adds a bias and an activation.
#include "ops/block.hpp"
#include "ops/gemm_library.hpp"
#include "ops/operators.hpp"

namespace backplane::simt {

namespace {

// enqueue() transposes a product with at most this number of columns, if it has more rows than
// columns.
constexpr uint32_t kFewColumns = 4;

class Product : public Operator {
 public:
  explicit Product(uint32_t dtype)
      : module_(module_name("matmul", dtype)),
        blocks_(module_name("matmul_block", dtype)),
        weight_bits_(kit::in_set(BP_SET_FLOATS, dtype) ? 8 * kit::dtype_bytes(dtype) : 0) {}

  kit::Status prepare(const kit::CheckedDesc&, kit::PlanNeeds& needs) const override {
    needs.workspace_bytes = kGemmWorkspaceBytes;
    return {};
  }
  KernelNames kernels(const kit::PlanForm&) const override {
    return {
        {{module_, "matmul_tiles"}, {module_, "matmul_rows"}, {module_, "matmul_dots"}, {module_, "matmul_combine"}}};
  }
  kit::Status prepare_on(const Limits& limits, const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override {
    kit::Status status = prepare(checked, needs);
    if (has_blocks(limits) && weight_bits_ != 0) needs.workspace_bytes = kBlockWorkspaceBytes;
    return status;
  }
  KernelNames kernels_on(const Limits& limits, const kit::PlanForm& plan) const override {
    KernelNames out = kernels(plan);
    if (!has_few_rows(limits) || weight_bits_ == 0) return out;
    if (has_blocks(limits)) {
      out[kGemmLargeBlocks] = {blocks_, "matmul_block128"};
      out[kGemmSmallBlocks] = {blocks_, "matmul_block64"};
    }
    out[kGemmChunksOne] = {module_, "matmul_chunks_one"};
    out[kGemmChunks] = {module_, "matmul_chunks"};
    out[kGemmPacksOne] = {module_, "matmul_packs_one"};
    out[kGemmPacks] = {module_, "matmul_packs"};
    return out;
  }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    if (call.out().elements() == 0) return {};
    GemmParams params{};
    Gemm gemm{params, {}, weight_bits_};
    kit::Status status = gemm.set_rows(call.out(), call.in(0), call.op->name);
    if (!status.ok()) return status;
    gemm.set(kGemmB, call.in(1));
    describe(gemm, call);
    gemm.fold_batch_into_rows();
    auto done = multiply_with_library(launcher, program, gemm, types_of(call), call);
    if (!done.ok() || done.value()) return done.status();
    const bool same_dtype = call.in(0).dtype == call.in(1).dtype;
    if (same_dtype && params.columns <= kFewColumns && params.columns < params.rows && params.bias_bytes == 0) {
      gemm.transpose();
    }
    const GemmKernel kernel = gemm.fastest_kernel(launcher.limits());
    return gemm.enqueue(launcher, program, kernel, call, &params, sizeof(params), kGemmOperands);
  }
  uint64_t library_workspace(const bp_op_desc& desc) const override { return gemm_library_workspace(desc); }

 protected:
  virtual GemmTypes types_of(const Call& call) const = 0;
  // Sets the strides of b and the epilogue.
  virtual void describe(Gemm& gemm, const Call& call) const = 0;

 private:
  const std::string module_, blocks_;
  // Bits of an element of b if b is a float tensor, or 0 otherwise. Only products of floats have kernels for GPUs.
  const uint32_t weight_bits_;
};

class Matmul : public Product {
 public:
  using Product::Product;

 private:
  GemmTypes types_of(const Call& call) const override {
    return {call.out().dtype, call.in(0).dtype, call.in(1).dtype, 0, call.attributes<bp_matmul_attributes>().precision};
  }
  void describe(Gemm& gemm, const Call& call) const override {
    const View& b = call.in(1);
    if (b.is_immediate) return;
    std::copy_n(b.strides, b.rank - 2, gemm.params.batch_strides[2]);
    gemm.params.row_strides[2] = b.strides[b.rank - 2];
    gemm.params.column_strides[2] = b.strides[b.rank - 1];
  }
};

class Linear : public Product {
 public:
  using Product::Product;

 private:
  GemmTypes types_of(const Call& call) const override {
    const View* const bias = given(call.inputs, 2);
    return {call.out().dtype, call.in(0).dtype, call.in(1).dtype, bias == nullptr ? 0 : bias->dtype,
            call.attributes<bp_linear_attributes>().precision};
  }
  void describe(Gemm& gemm, const Call& call) const override {
    const View& weight = call.in(1);
    gemm.params.activation = call.attributes<bp_linear_attributes>().activation;
    if (const View* bias = given(call.inputs, 2); bias != nullptr) gemm.set_bias(*bias);
    if (weight.is_immediate) return;
    gemm.params.row_strides[2] = weight.strides[1];
    gemm.params.column_strides[2] = weight.strides[0];
  }
};

}  // namespace

void add_matmul(Operators& operators) {
  for_dtypes(BP_SET_MATMUL & kComputed,
             [&](uint32_t dtype) { operators.add(BP_OP_MATMUL, dtype, entry_of<Matmul>(dtype)); });
  for_dtypes(BP_SET_FLOATS & kComputed, [&](uint32_t dtype) {
    OperatorEntry entry = entry_of<Linear>(dtype);
    entry.mixed = rules::kMixedParameters;
    operators.add(BP_OP_LINEAR, dtype, dtype, entry);
  });
}

}  // namespace backplane::simt
