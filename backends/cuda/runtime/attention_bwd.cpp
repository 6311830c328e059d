// SPDX-License-Identifier: Apache-2.0
#include "runtime/attention_bwd.hpp"

#include "ops/attention.hpp"
#include "ops/kernels.hpp"
#include "runtime/units.hpp"

namespace backplane::cuda {

using simt::AttentionStrides;
using simt::u32;
using simt::u64;
using simt::View;
#include "kernels/attention_bwd_params.h"

namespace {

constexpr int64_t kMaxBwdDepth = 128, kBwdWordElements = 8;
constexpr int64_t kMaxBwdRows = int64_t{1} << 28;
constexpr uint32_t kBwdBytes[2] = {ATTENTION_BWD_BYTES(64), ATTENTION_BWD_BYTES(128)};
constexpr uint32_t kBwdGroupBytes[2] = {ATTENTION_BWD_GROUP_BYTES(64), ATTENTION_BWD_GROUP_BYTES(128)};
constexpr uint32_t kBwdSumRows = ATTENTION_BWD_THREADS / 32;  // rows per group of attention_bwd_sums

bool can_run_bwd(const simt::Limits& limits) {
  return (limits.matrix_instructions & kTensorCores) != 0 && limits.launch_bytes >= kBwdBytes[1];
}

// Returns whether the device may run the kernels for warpgroups, which no GPU has certified.
bool has_bwd_groups(const simt::Limits& limits) {
  constexpr uint32_t kNeeded = kWarpgroups | kTrial;
  return (limits.matrix_instructions & kNeeded) == kNeeded && limits.launch_bytes >= kBwdGroupBytes[1];
}

// Returns whether the rows of an operand are contiguous and begin at multiples of 16 bytes.
bool has_bwd_words(const View& view) {
  if (view.rank != 4 || view.strides[3] != 1 || view.place.memory == nullptr) return false;
  if ((reinterpret_cast<uintptr_t>(view.place.memory->address) + view.place.offset) % 16 != 0) return false;
  for (uint32_t d = 0; d < 3; ++d) {
    if (view.shape[d] > 1 && view.strides[d] % kBwdWordElements != 0) return false;
  }
  return true;
}

class AttentionBackward : public simt::Operator {
 public:
  explicit AttentionBackward(uint32_t dtype)
      : module_(kit::text("attention_bwd_", kit::dtype_name(dtype))),
        group_module_(kit::text("attention_bwd_warpgroup_", kit::dtype_name(dtype))) {}

  kit::Status prepare_on(const simt::Limits& limits, const kit::CheckedDesc& checked,
                         kit::PlanNeeds& needs) const override {
    const bp_op_desc& desc = checked.desc;
    const bp_tensor_desc &q = desc.inputs[1], &v = desc.inputs[3];
    const auto refuse = [&](const char* reason) {
      return kit::unsupported(checked.op->name, ": ", reason, "; let core decompose it");
    };
    if (!can_run_bwd(limits)) return refuse("this device has no kernels for tensor cores");
    if (q.shape[3] > kMaxBwdDepth || v.shape[3] > kMaxBwdDepth) return refuse("a row has more than 128 elements");
    const int64_t heads = q.shape[0] * q.shape[1];
    if (q.shape[2] > kMaxBwdRows || v.shape[2] > kMaxBwdRows || heads * q.shape[2] > kMaxBwdRows ||
        heads * v.shape[2] > kMaxBwdRows) {
      return refuse("there are more than 2^28 rows");
    }
    simt::stage_immediates(checked, needs);
    needs.any_size = false;
    needs.workspace_bytes = std::max<uint64_t>(static_cast<uint64_t>(heads * q.shape[2]) * sizeof(float), 1);
    return {};
  }
  simt::KernelNames kernels(const kit::PlanForm&) const override { return {}; }
  simt::KernelNames kernels_on(const simt::Limits& limits, const kit::PlanForm&) const override {
    simt::KernelNames out;
    out[kSums] = {module_, "attention_bwd_sums"};
    for (uint32_t wide = 0; wide < 2; ++wide) {
      const char* const depth = wide != 0 ? "128" : "64";
      out[kQueries + wide] = {module_, kit::text("attention_bwd_queries_", depth), kBwdBytes[wide]};
      out[kKeys + wide] = {module_, kit::text("attention_bwd_keys_", depth), kBwdBytes[wide]};
      if (!has_bwd_groups(limits)) continue;
      out[kGroupQueries + wide] = {group_module_, kit::text("attention_bwd_warpgroup_queries_", depth),
                                   kBwdGroupBytes[wide]};
      out[kGroupKeys + wide] = {group_module_, kit::text("attention_bwd_warpgroup_keys_", depth), kBwdGroupBytes[wide]};
    }
    return out;
  }
  kit::Status enqueue(simt::Launcher& launcher, const simt::Program& program, const simt::Call& call) const override;

 private:
  // Indices of a plan's kernels. Each index except kSums is for rows of up to 64 elements, and index + 1 is for up to
  // 128 elements.
  enum Kernel : uint32_t {
    kSums,
    kQueries,
    kKeys = kQueries + 2,
    kGroupQueries = kKeys + 2,
    kGroupKeys = kGroupQueries + 2
  };

  const std::string module_, group_module_;
};

kit::Status AttentionBackward::enqueue(simt::Launcher& launcher, const simt::Program& program,
                                       const simt::Call& call) const {
  const View &q = call.in(1), &k = call.in(2), &v = call.in(3);
  const auto& attributes = call.attributes<bp_attention_attributes>();
  AttentionBwdParams params{};
  std::array<simt::Place, kBwdOperands> places{};
  const auto set = [&](uint32_t operand, const View* view) {
    AttentionStrides& strides = params.strides[operand];
    if (view == nullptr) return false;
    strides = {view->strides[0], view->strides[1], view->strides[2], view->rank > 3 ? view->strides[3] : 0};
    if (has_bwd_words(*view)) params.words |= 1u << operand;
    places[operand] = view->place;
    return true;
  };
  for (uint32_t i = 0; i <= kBwdMask; ++i) set(i, simt::given(call.inputs, i));
  set(kBwdDq, &call.out());
  params.has_dk = set(kBwdDk, simt::given(call.outputs, 1)) ? 1 : 0;
  params.has_dv = set(kBwdDv, simt::given(call.outputs, 2)) ? 1 : 0;
  places[kBwdSums] = call.workspace;
  params.batches = static_cast<u32>(q.shape[0]), params.groups = static_cast<u32>(k.shape[1]);
  params.repeats = params.groups == 0 ? 0 : static_cast<u32>(q.shape[1] / k.shape[1]);
  params.queries = static_cast<u32>(q.shape[2]), params.keys = static_cast<u32>(k.shape[2]);
  params.depth = static_cast<u32>(q.shape[3]), params.value_columns = static_cast<u32>(v.shape[3]);
  params.causal = attributes.causal;
  params.scale = attributes.scale;
  if (const View* mask = simt::given(call.inputs, kBwdMask); mask != nullptr) {
    params.mask_kind = mask->dtype == BP_BOOL ? SIMT_MASK_BOOL : SIMT_MASK_ADDED;
  }
  const uint32_t wide = params.depth > 64 || params.value_columns > 64 ? 1 : 0;
  const auto launch = [&](uint32_t kernel, uint32_t groups, uint32_t threads, uint32_t bytes) -> kit::Status {
    if (groups == 0) return {};
    return launcher.launch({program.kernels[kernel], {groups, 1, 1}, threads, places, &params, sizeof(params), bytes});
  };
  // Launches a kernel for `rows` rows in each of `heads` heads. Tiles of warpgroups are faster if each multiprocessor
  // gets at least one.
  const auto launch_tiles = [&](Kernel kernel, Kernel group_kernel, u32 heads, u32 rows) {
    const auto tiles_of = [&](u32 tile_rows) { return (rows + tile_rows - 1) / tile_rows; };
    constexpr u32 kCopied = 1u << kBwdDy | 1u << kBwdQ | 1u << kBwdK | 1u << kBwdV;
    params.tiles = tiles_of(ATTENTION_BWD_GROUP_ROWS);
    if (has_bwd_groups(launcher.limits()) && (params.words & kCopied) == kCopied &&
        heads * params.tiles >= launcher.limits().compute_units) {
      return launch(group_kernel + wide, heads * params.tiles, ATTENTION_BWD_GROUP_THREADS, kBwdGroupBytes[wide]);
    }
    params.tiles = tiles_of(ATTENTION_BWD_ROWS);
    return launch(kernel + wide, heads * params.tiles, ATTENTION_BWD_THREADS, kBwdBytes[wide]);
  };
  const u32 heads = params.batches * params.groups * params.repeats;
  kit::Status status =
      launch(kSums, (heads * params.queries + kBwdSumRows - 1) / kBwdSumRows, ATTENTION_BWD_THREADS, 0);
  if (status.ok()) status = launch_tiles(kQueries, kGroupQueries, heads, params.queries);
  if (!status.ok() || (params.has_dk == 0 && params.has_dv == 0)) return status;
  return launch_tiles(kKeys, kGroupKeys, params.batches * params.groups, params.keys);
}

}  // namespace

void add_tensor_attention_bwd(simt::Operators& operators) {
  for (const uint32_t dtype : {BP_F16, BP_BF16}) {
    operators.add(BP_OP_ATTENTION_BWD, dtype, simt::entry_of<AttentionBackward>(dtype));
  }
}

}  // namespace backplane::cuda
