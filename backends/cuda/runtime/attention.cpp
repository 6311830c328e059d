// SPDX-License-Identifier: Apache-2.0
#include "runtime/attention.hpp"

#include "ops/attention.hpp"
#include "runtime/units.hpp"

namespace backplane::cuda {

using simt::AttentionParams;
using simt::u32;
using simt::View;
#include "kernels/attention_mma_params.h"

namespace {

constexpr int64_t kElements = 8;  // elements of the 16 bytes that a thread copies at once
constexpr int64_t kMaxDepth = 128;
// Bytes of local memory.
constexpr uint32_t kBytes64 = ATTENTION_MMA_BYTES(64), kBytes128 = ATTENTION_MMA_BYTES(128);
// The shared kernel for few rows divides the keys of a row among the threads of a group. A tile would have idle warps.
constexpr int64_t kFewRows = 8, kManyKeys = 256;
// Tiles include all heads that share keys if a head has at most this number of queries.
constexpr uint32_t kFewQueries = ATTENTION_MMA_ROWS / 2;
// Within these limits, no product of a score and the scale becomes subnormal or infinite.
constexpr float kMinScale = 0x1p-40F, kMaxScale = 0x1p40F;
// Bytes of keys and values that stay in the cache of the device while tiles of several units run.
constexpr double kCachedBytes = 24e6;

// Returns whether every row begins at a multiple of 16 bytes and is contiguous.
bool has_aligned_rows(const View& view) {
  const simt::Place& place = view.place;
  if (place.memory == nullptr || place.memory->address == nullptr || view.strides[3] != 1) return false;
  if ((reinterpret_cast<uintptr_t>(place.memory->address) + place.offset) % 16 != 0) return false;
  for (uint32_t d = 0; d < 3; ++d) {
    if (view.shape[d] > 1 && view.strides[d] % kElements != 0) return false;
  }
  return true;
}

bool is_suitable_depth(int64_t depth) { return depth > 0 && depth <= kMaxDepth && depth % kElements == 0; }

const View* mask_of(const simt::Call& call) {
  return call.inputs.size() > 3 && call.inputs[3].dtype != 0 ? &call.inputs[3] : nullptr;
}

// Returns whether the kernels for tensor cores can compute the call, and are probably faster.
bool suits(const simt::Call& call) {
  const View &q = call.in(0), &k = call.in(1), &v = call.in(2);
  const auto& attributes = call.attributes<bp_attention_attributes>();
  if (!is_suitable_depth(q.shape[3]) || !is_suitable_depth(v.shape[3])) return false;
  if (q.shape[0] == 0 || q.shape[1] == 0 || q.shape[2] == 0 || k.shape[2] == 0) return false;
  if (q.shape[2] * (q.shape[1] / k.shape[1]) <= kFewRows && k.shape[2] >= kManyKeys) return false;
  if (attributes.scale < kMinScale || attributes.scale > kMaxScale) return false;
  if (const View* mask = mask_of(call); mask != nullptr && mask->shape[3] > 1 && mask->strides[3] != 1) return false;
  return has_aligned_rows(q) && has_aligned_rows(k) && has_aligned_rows(v) && has_aligned_rows(call.out());
}

AttentionMmaParams params_of(const simt::Call& call) {
  AttentionMmaParams out{};
  out.operands = simt::attention_params(call);
  const AttentionParams& o = out.operands;
  out.unit_heads = o.queries <= kFewQueries ? o.repeats : 1;
  out.units = o.batches * o.groups * (o.repeats / out.unit_heads);
  out.unit_tiles = (out.unit_heads * o.queries + ATTENTION_MMA_ROWS - 1) / ATTENTION_MMA_ROWS;
  out.section = 1;
  if (o.causal != BP_CAUSAL_NONE) {
    const double unit_bytes = 2.0 * o.keys * (o.depth + o.value_columns);
    out.section = static_cast<u32>(std::clamp(kCachedBytes / unit_bytes, 1.0, static_cast<double>(out.units)));
  }
  return out;
}

class Attention : public simt::Operator {
 public:
  explicit Attention(uint32_t dtype)
      : shared_(simt::shared_attention(dtype)), module_(kit::text("attention_mma_", kit::dtype_name(dtype))) {}

  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override {
    return shared_->prepare(checked, needs);
  }
  simt::KernelNames kernels(const kit::PlanForm& plan) const override { return shared_->kernels(plan); }
  simt::KernelNames kernels_on(const simt::Limits& limits, const kit::PlanForm& plan) const override {
    simt::KernelNames out = shared_->kernels_on(limits, plan);
    if (!has_tensor_cores(limits)) return out;
    const char* const masked = plan.input_count > 3 && plan.operands[3].dtype != 0 ? "_masked" : "";
    out[kDepth64] = {module_, kit::text("attention_mma_64", masked), kBytes64};
    out[kDepth128] = {module_, kit::text("attention_mma_128", masked), kBytes128};
    return out;
  }
  kit::Status enqueue(simt::Launcher& launcher, const simt::Program& program, const simt::Call& call) const override {
    // The choice depends on the alignment of addresses, so deterministic plans use the shared kernels.
    if (program.deterministic || !has_tensor_cores(launcher.limits()) || !suits(call)) {
      return shared_->enqueue(launcher, program, call);
    }
    if (kit::Status status = simt::check_attention(call); !status.ok()) return status;
    AttentionMmaParams params = params_of(call);
    const bool is_wide = params.operands.depth > 64 || params.operands.value_columns > 64;
    const auto places = simt::attention_places(call);
    return launcher.launch({program.kernels[is_wide ? kDepth128 : kDepth64],
                            {params.units * params.unit_tiles, 1, 1},
                            ATTENTION_MMA_THREADS,
                            places,
                            &params,
                            sizeof(params),
                            is_wide ? kBytes128 : kBytes64});
  }

 private:
  enum Kernel : uint32_t { kDepth64 = simt::kSharedAttentionKernels, kDepth128 };

  static bool has_tensor_cores(const simt::Limits& limits) {
    return (limits.matrix_instructions & kTensorCores) != 0 && limits.launch_bytes >= std::max(kBytes64, kBytes128);
  }

  const std::shared_ptr<const simt::Operator> shared_;
  const std::string module_;
};

}  // namespace

void add_tensor_attention(simt::Operators& operators) {
  for (const uint32_t dtype : {BP_F16, BP_BF16}) {
    operators.add(BP_OP_ATTENTION, dtype, simt::entry_of<Attention>(dtype));
  }
}

}  // namespace backplane::cuda
