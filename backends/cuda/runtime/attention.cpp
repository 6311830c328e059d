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
// Fragments of 16 rows per warp. kLong gives tiles of 128 rows, which load each key and value half as often. kShort
// gives tiles of 64 rows, which divide the work among more groups.
enum Rows : uint32_t { kShort = 1, kLong = 2 };
// Bytes of local memory; the indices are the depth (64, 128) and the fragments per warp - 1.
constexpr uint32_t kBytes[2][2] = {{ATTENTION_MMA_BYTES(64, 1), ATTENTION_MMA_BYTES(64, 2)},
                                   {ATTENTION_MMA_BYTES(128, 1), ATTENTION_MMA_BYTES(128, 2)}};
constexpr uint32_t kPartBytes[2] = {ATTENTION_PART_BYTES(64), ATTENTION_PART_BYTES(128)};
constexpr uint32_t kMaxBytes = std::max({kBytes[0][kLong - 1], kBytes[1][kLong - 1], kPartBytes[1]});
constexpr uint32_t kGroupBytes[2] = {ATTENTION_GROUP_BYTES(64), ATTENTION_GROUP_BYTES(128)};
// The tiles of the kernels whose warpgroups take turns.
struct TurnTile {
  uint32_t warpgroups, bytes;
  [[nodiscard]] constexpr uint32_t rows() const { return ATTENTION_TURN_ROWS(warpgroups); }
};
constexpr TurnTile turn_tile(uint32_t depth, uint32_t warpgroups, uint32_t keys, uint32_t stages) {
  return {warpgroups, ATTENTION_TURN_BYTES(depth, warpgroups, keys, stages)};
}
constexpr TurnTile kTurn64 = turn_tile(64, ATTENTION_TURN_64), kTurn64Long = turn_tile(64, ATTENTION_TURN_64_LONG),
                   kTurn64Masked = turn_tile(64, ATTENTION_TURN_64_MASKED),
                   kTurn128 = turn_tile(128, ATTENTION_TURN_128);
// Tiles include all heads that share keys if a head has at most this number of queries.
constexpr uint32_t kFewQueries = 64;
// If a unit has at most kFewRows rows, groups divide its keys into parts, unless each multiprocessor gets
// kGroupsPerUnit groups without this division. A part has at least kMinPartSteps steps.
constexpr uint32_t kFewRows = 64, kMinPartSteps = 2, kGroupsPerUnit = 2;
// Bytes of workspace for the parts. This size limits the number of parts only if a batch has thousands of rows.
constexpr uint64_t kPartsBytes = uint64_t{4} << 20;
// On an H100, tiles of 128 rows are faster than tiles of 64 rows if each multiprocessor gets at least this number of
// them. If the call is causal and rows have more than 64 elements, tiles of 64 rows are always faster.
constexpr uint64_t kManyTiles = 4;
// The number of warpgroup tiles that run on a multiprocessor at once, for a depth of 64 and of 128. If a call has
// fewer tiles than all multiprocessors can run at once, tiles of 64 rows are faster.
constexpr uint32_t kTilesPerUnit[2] = {2, 1};
// Within these limits, no product of a score and the scale becomes subnormal or infinite.
constexpr float kMinScale = 0x1p-40F, kMaxScale = 0x1p40F;
// Bytes of keys and values that stay in the cache of the device while tiles of several units run.
constexpr double kCachedBytes = 24e6;

uint32_t divide_up(uint64_t a, uint64_t b) { return static_cast<uint32_t>((a + b - 1) / b); }

// Returns whether every row begins at a multiple of 16 bytes, which are `elements` elements, and is contiguous.
bool has_aligned_rows(const View& view, int64_t elements = kElements) {
  const simt::Place& place = view.place;
  if (place.memory == nullptr || place.memory->address == nullptr || view.strides[3] != 1) return false;
  if ((reinterpret_cast<uintptr_t>(place.memory->address) + place.offset) % 16 != 0) return false;
  for (uint32_t d = 0; d < 3; ++d) {
    if (view.shape[d] > 1 && view.strides[d] % elements != 0) return false;
  }
  return true;
}

bool is_suitable_depth(int64_t depth) { return depth > 0 && depth <= kMaxDepth && depth % kElements == 0; }

const View* mask_of(const simt::Call& call) {
  return call.inputs.size() > 3 && call.inputs[3].dtype != 0 ? &call.inputs[3] : nullptr;
}

// Returns whether the kernels for tensor cores can compute the call, and are probably faster than the kernels of
// simt.
bool suits(const simt::Call& call) {
  const View &q = call.in(0), &k = call.in(1), &v = call.in(2);
  const auto& attributes = call.attributes<bp_attention_attributes>();
  if (!is_suitable_depth(q.shape[3]) || !is_suitable_depth(v.shape[3])) return false;
  if (q.shape[0] == 0 || q.shape[1] == 0 || q.shape[2] == 0 || k.shape[2] == 0) return false;
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
  out.section = 1;
  if (o.causal != BP_CAUSAL_NONE) {
    const double unit_bytes = 2.0 * o.keys * (o.depth + o.value_columns);
    out.section = static_cast<u32>(std::clamp(kCachedBytes / unit_bytes, 1.0, static_cast<double>(out.units)));
  }
  if (const View* mask = mask_of(call); mask != nullptr) {
    out.mask_words = has_aligned_rows(*mask, mask->dtype == BP_BOOL ? 16 : kElements) ? 1 : 0;
  }
  return out;
}

// Sets `params` for tiles of 16 rows whose keys are divided among groups. Returns false if tiles of more rows are
// faster.
bool divide_keys(const simt::Call& call, const simt::Limits& limits, AttentionMmaParams& params) {
  const AttentionParams& o = params.operands;
  const uint64_t rows = uint64_t{params.unit_heads} * o.queries;
  if (rows > kFewRows) return false;
  const uint32_t unit_tiles = divide_up(rows, ATTENTION_PART_ROWS);
  const uint32_t steps = divide_up(o.keys, ATTENTION_PART_KEYS);
  const uint64_t wanted =
      divide_up(uint64_t{limits.compute_units} * kGroupsPerUnit, uint64_t{params.units} * unit_tiles);
  const uint64_t row_bytes = rows * params.units * sizeof(float) * ATTENTION_PART_NUMBERS(uint64_t{o.value_columns});
  const uint64_t most = std::min<uint64_t>(steps / kMinPartSteps, call.workspace_bytes / row_bytes);
  if (std::min(wanted, most) < 2) return false;
  params.unit_tiles = unit_tiles;
  params.part_steps = divide_up(steps, std::min(wanted, most));
  params.parts = divide_up(steps, params.part_steps);
  params.part_depth = o.value_columns;
  return true;
}

class Attention : public simt::Operator {
 public:
  explicit Attention(uint32_t dtype)
      : shared_(simt::shared_attention(dtype)),
        module_(kit::text("attention_mma_", kit::dtype_name(dtype))),
        group_module_(kit::text("attention_warpgroup_", kit::dtype_name(dtype))),
        turn_module_(kit::text("attention_turns_", kit::dtype_name(dtype))) {}

  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override {
    needs.workspace_bytes = kPartsBytes;
    return shared_->prepare(checked, needs);
  }
  simt::KernelNames kernels(const kit::PlanForm& plan) const override { return shared_->kernels(plan); }
  simt::KernelNames kernels_on(const simt::Limits& limits, const kit::PlanForm& plan) const override {
    simt::KernelNames out = kernels(plan);
    if (!has_tensor_cores(limits)) return out;
    const bool is_masked = plan.input_count > 3 && plan.operands[3].dtype != 0;
    for (uint32_t wide = 0; wide < 2; ++wide) {
      const char *const depth = wide != 0 ? "128" : "64", *const masked = is_masked ? "_masked" : "";
      out[kTiles + wide] = {module_, kit::text("attention_mma_", depth, masked), kBytes[wide][kShort - 1]};
      out[kParts + wide] = {module_, kit::text("attention_part_", depth, masked), kPartBytes[wide]};
      if (has_turns(limits)) {
        out[kGroupTiles + wide] = {turn_module_, kit::text("attention_turns_", depth, masked),
                                   turn_tile_of(wide, is_masked, false).bytes};
      }
      // Kernels with a mask have no registers for a second fragment, or for the keys of attention_warpgroup.
      if (is_masked) continue;
      if (has_warpgroups(limits) && !has_turns(limits)) {
        out[kGroupTiles + wide] = {group_module_, kit::text("attention_warpgroup_", depth), kGroupBytes[wide]};
      }
      out[kLongTiles + wide] = {module_, kit::text("attention_mma_", depth, "_long"), kBytes[wide][kLong - 1]};
    }
    out[kJoin] = {module_, is_trial(limits) ? "attention_join_steps" : "attention_join"};
    if (has_turns(limits) && !is_masked) out[kLongTurns] = {turn_module_, "attention_turns_64_long", kTurn64Long.bytes};
    return out;
  }
  kit::Status enqueue(simt::Launcher& launcher, const simt::Program& program, const simt::Call& call) const override {
    // The choice depends on the alignment of addresses, so deterministic plans use the kernels of simt.
    if (program.deterministic || !has_tensor_cores(launcher.limits()) || !suits(call)) {
      return shared_->enqueue(launcher, program, call);
    }
    if (kit::Status status = simt::check_attention(call); !status.ok()) return status;
    AttentionMmaParams params = params_of(call);
    const uint32_t wide = params.operands.depth > 64 || params.operands.value_columns > 64 ? 1 : 0;
    if (divide_keys(call, launcher.limits(), params)) return enqueue_parts(launcher, program, call, params, wide);
    const uint64_t rows = uint64_t{params.unit_heads} * params.operands.queries;
    const bool is_masked = params.operands.mask_kind != SIMT_MASK_NONE;
    // Long tiles have more warps, and short tiles skip more keys that a causal mask hides.
    const bool is_long = wide == 0 && !is_masked && params.operands.causal == BP_CAUSAL_NONE;
    for (const bool takes_long : {is_long, false}) {
      const TurnTile& tile = turn_tile_of(wide, is_masked, takes_long);
      if (!has_turn_tiles(launcher.limits(), params, rows, tile)) continue;
      params.unit_tiles = divide_up(rows, tile.rows());
      return launcher.launch({program.kernels[takes_long ? kLongTurns : kGroupTiles + wide],
                              {params.units * params.unit_tiles, 1, 1},
                              ATTENTION_TURN_THREADS(tile.warpgroups),
                              simt::attention_places(call),
                              &params,
                              sizeof(params),
                              tile.bytes});
    }
    if (has_group_tiles(launcher.limits(), params, rows, wide)) {
      params.unit_tiles = divide_up(rows, ATTENTION_GROUP_ROWS);
      return launcher.launch({program.kernels[kGroupTiles + wide],
                              {params.units * params.unit_tiles, 1, 1},
                              ATTENTION_GROUP_THREADS,
                              simt::attention_places(call),
                              &params,
                              sizeof(params),
                              kGroupBytes[wide]});
    }
    const Rows fragments = has_long_tiles(launcher.limits(), params, rows, wide != 0) ? kLong : kShort;
    params.unit_tiles = divide_up(rows, ATTENTION_MMA_ROWS(fragments));
    const auto places = simt::attention_places(call);
    return launcher.launch({program.kernels[(fragments == kLong ? kLongTiles : kTiles) + wide],
                            {params.units * params.unit_tiles, 1, 1},
                            ATTENTION_MMA_THREADS,
                            places,
                            &params,
                            sizeof(params),
                            kBytes[wide][fragments - 1]});
  }

 private:
  // Indices of a plan's kernels. Each index is for rows of up to 64 elements, and index + 1 is for up to 128
  // elements. kJoin and kLongTurns are single kernels.
  enum Kernel : uint32_t {
    kTiles = simt::kSharedAttentionKernels,
    kLongTiles = kTiles + 2,
    kParts = kLongTiles + 2,
    kJoin = kParts + 2,
    kGroupTiles,  // kernels whose warpgroups take turns if has_turns(limits), otherwise the other warpgroup kernels
    kLongTurns = kGroupTiles + 2
  };

  static bool has_tensor_cores(const simt::Limits& limits) {
    return (limits.matrix_instructions & kTensorCores) != 0 && limits.launch_bytes >= kMaxBytes;
  }
  static bool has_warpgroups(const simt::Limits& limits) {
    return (limits.matrix_instructions & kWarpgroups) != 0 && limits.launch_bytes >= kGroupBytes[1];
  }
  // Returns whether the device may run kernels that no GPU has certified.
  static bool is_trial(const simt::Limits& limits) { return (limits.matrix_instructions & kTrial) != 0; }
  static bool has_turns(const simt::Limits& limits) {
    return is_trial(limits) && has_warpgroups(limits) && limits.launch_bytes >= kTurn128.bytes;
  }
  static const TurnTile& turn_tile_of(uint32_t wide, bool is_masked, bool is_long) {
    if (wide != 0) return kTurn128;
    return is_masked ? kTurn64Masked : is_long ? kTurn64Long : kTurn64;
  }
  // Returns whether the device runs these tiles and each multiprocessor gets at least one. With fewer tiles, tiles of
  // 64 rows are faster.
  static bool has_turn_tiles(const simt::Limits& limits, const AttentionMmaParams& params, uint64_t rows,
                             const TurnTile& tile) {
    return has_turns(limits) && uint64_t{params.units} * divide_up(rows, tile.rows()) >= limits.compute_units;
  }
  static bool has_group_tiles(const simt::Limits& limits, const AttentionMmaParams& params, uint64_t rows,
                              uint32_t wide) {
    return has_warpgroups(limits) && !has_turns(limits) && params.operands.mask_kind == SIMT_MASK_NONE &&
           uint64_t{params.units} * divide_up(rows, ATTENTION_GROUP_ROWS) >=
               uint64_t{kTilesPerUnit[wide]} * limits.compute_units;
  }
  static bool has_long_tiles(const simt::Limits& limits, const AttentionMmaParams& params, uint64_t rows,
                             bool is_wide) {
    if (params.operands.mask_kind != SIMT_MASK_NONE || (is_wide && params.operands.causal != BP_CAUSAL_NONE))
      return false;
    return params.units * (rows / ATTENTION_MMA_ROWS(kLong)) >= kManyTiles * limits.compute_units;
  }
  static kit::Status enqueue_parts(simt::Launcher& launcher, const simt::Program& program, const simt::Call& call,
                                   AttentionMmaParams& params, uint32_t wide) {
    auto places = simt::attention_places(call);
    const simt::Place y = std::exchange(places[0], call.workspace);
    kit::Status status = launcher.launch({program.kernels[kParts + wide],
                                          {params.units * params.unit_tiles * params.parts, 1, 1},
                                          ATTENTION_MMA_THREADS,
                                          places,
                                          &params,
                                          sizeof(params),
                                          kPartBytes[wide]});
    if (!status.ok()) return status;
    const simt::Place operands[] = {y, places[1], call.workspace};
    return launcher.launch({program.kernels[kJoin],
                            {params.units * params.unit_heads * params.operands.queries, 1, 1},
                            ATTENTION_MMA_THREADS,
                            operands,
                            &params,
                            sizeof(params)});
  }

  const std::shared_ptr<const simt::Operator> shared_;
  const std::string module_, group_module_, turn_module_;
};

}  // namespace

void add_tensor_attention(simt::Operators& operators) {
  for (const uint32_t dtype : {BP_F16, BP_BF16}) {
    operators.add(BP_OP_ATTENTION, dtype, simt::entry_of<Attention>(dtype));
  }
}

}  // namespace backplane::cuda
