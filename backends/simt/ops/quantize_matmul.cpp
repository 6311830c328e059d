// SPDX-License-Identifier: Apache-2.0
// The operator quantized_matmul, with weights of 4 or 8 bits.
#include "ops/gemm.hpp"
#include "ops/operators.hpp"

namespace backplane::simt {

namespace {

// The inputs of the operator.
enum QuantizedInput : uint32_t { kRowsIn, kWeightsIn, kScaleIn, kZeroIn, kRowScaleIn, kRowZeroIn, kBiasIn, kMinimumIn };
// The operands `own`, as in device/quantize_matmul.h.
enum QuantizedOwn : uint32_t { kOwnScale, kOwnZero, kOwnMinimum, kOwnRowScale = kOwnMinimum, kOwnRowZero };

class QuantizedMatmul : public Operator {
 public:
  explicit QuantizedMatmul(uint32_t dtype) : dtype_(dtype), module_(module_name("quantize_matmul", dtype)) {}

  // Returns UNSUPPORTED if `a` is an integer tensor and the weights have block scales. Each block
  // has its own scale, so the integer sums of different blocks cannot be added exactly.
  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override {
    if (is_integer() && checked.attributes.as<bp_quantized_matmul_attributes>().block != 0) {
      return kit::unsupported(checked.op->name,
                              " of integer activations and block scales is not supported; let core decompose it");
    }
    needs.workspace_bytes = kGemmWorkspaceBytes;
    return {};
  }
  KernelNames kernels(const kit::PlanForm& plan) const override {
    const bool four = plan.attributes.as<bp_quantized_matmul_attributes>().weight_bits == 4;
    const std::string name = four ? "quantized4" : "quantized8";
    KernelNames out;
    out[kGemmTiles] = {module_, name + "_tiles"};
    if (!is_integer()) out[kGemmDots] = {module_, name + "_dots"};
    out[kGemmCombine] = {module_, name + "_combine"};
    return out;
  }
  KernelNames kernels_on(const Limits& limits, const kit::PlanForm& plan) const override {
    KernelNames out = kernels(plan);
    if (!has_few_rows(limits)) return out;
    const std::string name = out[kGemmTiles].function;
    const std::string prefix = name.substr(0, name.find('_'));
    out[kGemmChunksOne] = {module_, prefix + "_chunks_one"};
    if (!is_integer()) out[kGemmChunks] = {module_, prefix + "_chunks"};
    return out;
  }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    if (call.out().elements() == 0) return {};
    QuantizedParams params{};
    Gemm gemm{params.gemm, {}, call.attributes<bp_quantized_matmul_attributes>().weight_bits};
    kit::Status status = gemm.set_rows(call.out(), call.in(kRowsIn), call.op->name);
    if (!status.ok()) return status;
    describe(params, gemm, call);
    // Each row has one scale. The fold keeps the order of rows, and therefore the order of scales.
    gemm.fold_batch_into_rows();
    return gemm.enqueue(launcher, program, kernel(gemm, params, launcher.limits()), call, &params, sizeof(params),
                        SIMT_GEMM_OPERANDS);
  }

 private:
  bool is_integer() const { return dtype_ == BP_I8 || dtype_ == BP_U8; }
  static uint32_t type_of(const View* view) {
    return view == nullptr || view->dtype == BP_F32 ? 0 : view->dtype == BP_F16 ? 1 : 2;
  }

  void describe(QuantizedParams& params, Gemm& gemm, const Call& call) const {
    const auto& attributes = call.attributes<bp_quantized_matmul_attributes>();
    const View& weights = call.in(kWeightsIn);
    const View* const bias = given(call.inputs, kBiasIn);
    gemm.set(kGemmB, weights);
    if (!weights.is_immediate) {
      gemm.params.column_strides[2] = weights.strides[0];
      gemm.params.row_strides[2] = weights.strides[1];
    }
    if (bias != nullptr) gemm.set_bias(*bias);
    params.bits = attributes.weight_bits;
    params.block = attributes.block == 0 ? std::max(params.gemm.depth, 1u) : attributes.block;
    const DivisorParams blocks = divisor_params(params.block);
    params.block_multiplier = blocks.multiplier;
    params.block_shift = blocks.shift;
    const uint32_t inputs[] = {kScaleIn, kZeroIn, is_integer() ? kRowScaleIn : kMinimumIn, kRowZeroIn};
    const View* own[std::size(inputs)];
    for (uint32_t i = 0; i < std::size(inputs); ++i) {
      own[i] = given(call.inputs, inputs[i]);
      if (own[i] == nullptr) continue;
      params.given |= 1u << i;
      gemm.set(kGemmOperands + i, *own[i]);
      // A parameter has one value, or one per column or row, or one per column and block.
      if (own[i]->is_immediate || own[i]->elements() == 1) continue;
      if (inputs[i] == kRowScaleIn || inputs[i] == kRowZeroIn) {
        params.row_strides[i - kOwnRowScale] = own[i]->strides[0];
      } else {
        params.column_strides[i] = own[i]->strides[0];
        params.block_strides[i] = own[i]->rank == 2 ? own[i]->strides[1] : 0;
      }
    }
    const View* const floats[] = {&call.out(), bias, own[kOwnScale], own[kOwnMinimum]};
    for (uint32_t i = 0; i < std::size(floats); ++i) params.types[i] = type_of(floats[i]);
  }

  // Returns the kernel to launch. The kernel `dots` requires operands that are contiguous along k, and steps that do
  // not cross a block boundary.
  GemmKernel kernel(const Gemm& gemm, const QuantizedParams& params, const Limits& limits) const {
    const GemmParams& p = params.gemm;
    // With more than one row, the kernel `chunks` of integers would need more registers than GPUs have.
    if (gemm.fits_chunks(limits) && (p.rows == 1 || !is_integer())) return p.rows == 1 ? kGemmChunksOne : kGemmChunks;
    const uint32_t step = params.bits == 4 ? 2 * limits.width : limits.width;
    const bool contiguous = p.column_strides[1] == 1 && p.row_strides[2] == 1 && (p.immediate & 6u) == 0;
    const bool steps = params.block >= p.depth || params.block % step == 0;
    return !is_integer() && p.rows <= 8 && contiguous && steps && p.depth >= 4 * step ? kGemmDots : kGemmTiles;
  }

  const uint32_t dtype_;
  const std::string module_;
};

}  // namespace

void add_quantize_matmul(Operators& operators) {
  for_dtypes(BP_SET_FLOATS & kComputed, [&](uint32_t dtype) {
    OperatorEntry entry = entry_of<QuantizedMatmul>(dtype);
    entry.mixed = rules::kMixedParameters | rules::kMixedScale | rules::kMixedMinimum;
    operators.add(BP_OP_QUANTIZED_MATMUL, dtype, dtype, entry);
  });
  for (const uint32_t rows : {BP_I8, BP_U8}) {
    OperatorEntry entry = entry_of<QuantizedMatmul>(rows);
    entry.mixed = rules::kMixedParameters | rules::kMixedScale;
    for_dtypes(BP_SET_FLOATS & kComputed,
               [&](uint32_t dtype) { operators.add(BP_OP_QUANTIZED_MATMUL, rows, dtype, entry); });
  }
}

}  // namespace backplane::simt
