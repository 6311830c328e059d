// SPDX-License-Identifier: Apache-2.0
// The operator `attention`, computed without a tensor of scores.
#include "ops/attention.hpp"

#include <cmath>

#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::simt {

namespace {

constexpr uint32_t kMaxGroup = 256;  // threads
// Threads of a group of attention_split and of attention_combine, and the least width of sub-groups with which a device
// runs these kernels. Devices with narrower sub-groups have too few registers for attention_split_4.
constexpr uint32_t kSplitGroup = SIMT_ATTENTION_SPLITS, kMinWidth = 32;
// attention_split computes heads (of k and v) with at most this number of rows. If it can, attention_blocks computes
// the other heads.
constexpr uint32_t kFewRows = 8;
// Lanes of the smaller team of attention_split, and f32 elements that a lane loads at once.
constexpr uint32_t kPacks = 8, kPackElements = 4;
// The least number of keys per split, of attention_split and of attention_blocks. In attention_split, the number of
// keys per split is also a multiple of kSplitKeys.
constexpr uint32_t kSplitKeys = 64, kSplitBlockKeys = 2 * SIMT_ATTENTION_STEP;
constexpr uint32_t kSplitGroups = 4;  // groups of attention_split per compute unit
// Bytes of local memory of attention_blocks: for queries, keys and values.
constexpr uint32_t kBlockBytes = 4 * (SIMT_ATTENTION_KEPT + 2 * SIMT_ATTENTION_STEP * SIMT_ATTENTION_STEP);
constexpr uint32_t kBlockRows = 64;  // maximum rows per group of attention_blocks
constexpr uint64_t kWorkspaceBytes = uint64_t{2} << 20;
constexpr int64_t kMaxAttentionExtent = int64_t{1} << 30;

// Returns UNSUPPORTED for shapes that exceed the kernels' 32-bit indices.
kit::Status check_shapes(const int64_t* q, const int64_t* v) {
  double items = 1;
  bool fits = v[2] <= kMaxAttentionExtent && q[3] <= kMaxAttentionExtent && v[3] <= kMaxAttentionExtent;
  for (int d = 0; d < 3; ++d) items *= static_cast<double>(q[d]);
  fits = fits && items * std::ceil(static_cast<double>(v[3]) / SIMT_ATTENTION_COLUMNS) <= double{kMaxAttentionExtent};
  if (fits) return {};
  return kit::unsupported("attention: there are more than 2^30 keys, columns or queries; divide the operands");
}

AttentionStrides strides_of(const View& view) {
  return {view.strides[0], view.strides[1], view.strides[2], view.rank > 3 ? view.strides[3] : 0};
}

uint64_t divided(uint64_t extent, uint64_t by) { return (extent + by - 1) / by; }

class Attention : public Operator {
 public:
  explicit Attention(uint32_t dtype)
      : module_(module_name("attention", dtype)),
        block_module_(dtype == BP_F32 ? module_name("attention_blocks", dtype) : std::string()) {}

  kit::Status prepare_on(const Limits& limits, const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override {
    stage_immediates(checked, needs);
    if (has_splits(limits)) needs.workspace_bytes = kWorkspaceBytes;
    return check_shapes(checked.desc.inputs[0].shape, checked.desc.inputs[2].shape);
  }
  KernelNames kernels(const kit::PlanForm&) const override {
    return {{{module_, "attention_tiles"}, {module_, "attention_rows"}}};
  }
  KernelNames kernels_on(const Limits& limits, const kit::PlanForm& plan) const override {
    KernelNames out = kernels(plan);
    if (has_splits(limits)) {
      out[kSplit1] = {block_module_, "attention_split_1"};
      out[kSplit4] = {block_module_, "attention_split_4"};
      out[kCombine] = {block_module_, "attention_combine"};
    }
    if (has_blocks(limits)) {
      out[kBlocks2] = {block_module_, "attention_blocks_2"};
      out[kBlocks4] = {block_module_, "attention_blocks_4"};
    }
    return out;
  }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    const View &q = call.in(0), &v = call.in(2);
    if (q.shape[0] == 0 || q.shape[1] == 0 || q.shape[2] == 0) return {};
    if (kit::Status status = check_attention(call); !status.ok()) return status;
    const Limits& limits = launcher.limits();
    AttentionParams params = attention_params(call);
    const uint32_t rows = params.repeats * params.queries;
    if (has_splits(limits) && rows <= kFewRows && splittable(call)) return enqueue_split(launcher, program, call);
    if (has_blocks(limits) && (rows > kFewRows || params.depth > SIMT_ATTENTION_DEPTH)) {
      const Block block = Block::of(limits, params);
      if (block.rows != 0) return enqueue_blocks(launcher, program, call, block);
    }
    const bool by_rows = rows <= limits.width / 4 && params.depth <= SIMT_ATTENTION_DEPTH;
    const uint32_t subgroups = by_rows ? row_subgroups(limits, params) : tile_subgroups(limits, params);
    params.columns = by_rows ? SIMT_ATTENTION_PARTS * limits.width : SIMT_ATTENTION_COLUMNS * subgroups;
    params.column_blocks = std::max((params.value_columns + params.columns - 1) / params.columns, 1u);
    params.tiles = by_rows ? rows : (rows + limits.width - 1) / limits.width;
    params.items = params.batches * params.groups * params.tiles * params.column_blocks;
    params.contiguous = call.in(1).strides[3] == 1 && v.strides[3] == 1 && params.depth % limits.width == 0 &&
                        params.value_columns % limits.width == 0;
    return launch(launcher, program.kernels[by_rows ? kRows : kTiles], groups_for(params.items, 1),
                  subgroups * limits.width, attention_places(call), params);
  }

 private:
  // kTiles assigns one row to each lane. kRows assigns one row to each group. The other kernels are those of
  // device/attention_blocks.h for f32.
  enum Kernel : uint32_t { kTiles, kRows, kSplit1, kSplit4, kCombine, kBlocks2, kBlocks4 };
  static_assert(kRows + 1 == kSharedAttentionKernels && kBlocks4 < kMaxKernels);

  // has_splits() and has_blocks() return whether the device has the sub-group width, the group size and the local
  // memory for attention_split and attention_blocks. A CPU has caches instead of local memory, and its compilers
  // vectorize the other kernels better.
  bool has_splits(const Limits& limits) const {
    return !block_module_.empty() && !limits.is_cpu && limits.width >= kMinWidth &&
           limits.max_group_size >= kSplitGroup;
  }
  bool has_blocks(const Limits& limits) const { return has_splits(limits) && limits.local_bytes >= kBlockBytes; }

  // The work of a group of attention_blocks.
  struct Block {
    uint32_t kernel = 0, threads = 0;
    uint32_t rows = 0;  // 0 if the kernels cannot compute the call
    uint64_t items = 0;

    // Returns the largest tile that fits, or a smaller one if the largest would leave compute units without a group. A
    // group has at least four sub-groups, if the tile permits, because a compute unit executes several sub-groups at
    // once.
    static Block of(const Limits& limits, const AttentionParams& params) {
      Block out;
      if (params.depth == 0) return out;
      const uint64_t heads = uint64_t{params.batches} * params.groups, rows = uint64_t{params.repeats} * params.queries;
      const uint32_t most = limits.width == 32 || limits.max_group_size < kMaxGroup ? kSplitGroup : kMaxGroup;
      for (uint32_t threads = most; threads >= kSplitGroup; threads /= 2) {
        for (const uint32_t own : {4u, 2u}) {
          const uint32_t tile = threads / SIMT_ATTENTION_TEAM * own;
          const uint64_t kept = tile * divided(params.depth, SIMT_ATTENTION_STEP) * SIMT_ATTENTION_STEP;
          if (tile > kBlockRows || kept > SIMT_ATTENTION_KEPT) continue;
          if (params.value_columns > 8 / own * SIMT_ATTENTION_STEP) continue;
          if (out.rows != 0 && out.items >= limits.compute_units) continue;
          if (out.rows != 0 && tile >= out.rows) continue;
          out = {own == 4 ? kBlocks4 : kBlocks2, threads, tile, heads * divided(rows, tile)};
        }
      }
      return out;
    }
  };

  // Returns whether the strides and extents of k and v permit attention_split. The kernel itself checks addresses.
  static bool splittable(const Call& call) {
    const View &k = call.in(1), &v = call.in(2);
    return k.strides[3] == 1 && v.strides[3] == 1 && k.shape[3] % kPackElements == 0 &&
           v.shape[3] % kPackElements == 0 && k.shape[3] <= SIMT_ATTENTION_SPLIT_DEPTH;
  }

  // Divides the keys into splits, so that `items` items become about `wanted` items if the workspace suffices. A split
  // has at least `least` keys. All splits except the last have a multiple of `unit` keys.
  static void divide_keys(AttentionBlockParams& params, const Call& call, uint64_t items, uint64_t wanted,
                          uint32_t least, uint32_t unit) {
    const AttentionParams& o = params.operands;
    const uint64_t rows = uint64_t{o.batches} * o.groups * o.repeats * o.queries;
    const uint64_t bytes = rows * (uint64_t{o.value_columns} + 2) * sizeof(float);
    const uint64_t most = std::min<uint64_t>(
        {SIMT_ATTENTION_SPLITS, o.keys / least, std::min(call.workspace_bytes, kWorkspaceBytes) / bytes});
    const uint64_t splits = std::max<uint64_t>(std::min(divided(wanted, items), most), 1);
    params.split_keys = static_cast<u32>(divided(divided(o.keys, splits), unit) * unit);
    params.splits = params.split_keys == 0 ? 1 : static_cast<u32>(divided(o.keys, params.split_keys));
  }
  static kit::Status launch_block(Launcher& launcher, const Program& program, const Call& call, Kernel kernel,
                                  uint32_t threads, AttentionBlockParams& params) {
    const auto places = attention_places(call);
    const Place partials = params.splits > 1 ? call.workspace : Place{};
    const std::array<Place, 7> all{places[0], places[1], places[2], places[3], places[4], places[5], partials};
    kit::Status status =
        launch(launcher, program.kernels[kernel], groups_for(params.operands.items, 1), threads, all, params);
    if (!status.ok() || params.splits == 1) return status;
    const AttentionParams& o = params.operands;
    const std::array<Place, 3> combined{places[0], places[1], partials};
    const uint64_t rows = uint64_t{o.batches} * o.groups * o.repeats * o.queries;
    return launch(launcher, program.kernels[kCombine], groups_for(rows, 1), kSplitGroup, combined, params);
  }
  static kit::Status enqueue_split(Launcher& launcher, const Program& program, const Call& call) {
    AttentionBlockParams params{};
    AttentionParams& o = params.operands;
    o = attention_params(call);
    const uint32_t rows = o.repeats * o.queries, most_rows = rows == 1 ? 1 : SIMT_ATTENTION_SPLIT_ROWS;
    constexpr uint32_t narrow = kPacks * kPackElements;
    params.lanes = o.depth > narrow || o.value_columns > narrow ? 16 : 8;
    o.columns = SIMT_ATTENTION_SPLIT_COLUMNS;
    o.column_blocks = std::max(static_cast<u32>(divided(o.value_columns, o.columns)), 1u);
    o.tiles = static_cast<u32>(divided(rows, most_rows));
    const uint64_t items = uint64_t{o.batches} * o.groups * o.tiles * o.column_blocks;
    divide_keys(params, call, items, uint64_t{kSplitGroups} * launcher.limits().compute_units, kSplitKeys, kSplitKeys);
    o.items = static_cast<u32>(items * params.splits);
    return launch_block(launcher, program, call, rows == 1 ? kSplit1 : kSplit4, kSplitGroup, params);
  }
  static kit::Status enqueue_blocks(Launcher& launcher, const Program& program, const Call& call, const Block& block) {
    AttentionBlockParams params{};
    AttentionParams& o = params.operands;
    o = attention_params(call);
    o.column_blocks = 1;
    o.columns = o.value_columns;
    o.tiles = static_cast<u32>(divided(uint64_t{o.repeats} * o.queries, block.rows));
    divide_keys(params, call, block.items, launcher.limits().compute_units, kSplitBlockKeys, SIMT_ATTENTION_STEP);
    o.items = static_cast<u32>(block.items * params.splits);
    params.longest_first = o.causal != BP_CAUSAL_NONE ? 1 : 0;
    return launch_block(launcher, program, call, static_cast<Kernel>(block.kernel), block.threads, params);
  }

  // Returns the number of sub-groups per group of attention_tiles. The sub-groups divide the keys of
  // a step, and the columns of v.
  static uint32_t tile_subgroups(const Limits& limits, const AttentionParams& params) {
    constexpr uint32_t kLeast = SIMT_ATTENTION_KEYS / SIMT_ATTENTION_OWN_KEYS;
    const uint32_t most = std::min({kMaxGroup / limits.width, uint32_t{SIMT_ATTENTION_GROUPS}});
    uint32_t out = kLeast;
    while (out < most && out * SIMT_ATTENTION_COLUMNS < params.value_columns) out *= 2;
    return out;
  }
  static uint32_t row_subgroups(const Limits& limits, const AttentionParams& params) {
    if (limits.is_cpu) return 1;
    const uint32_t most = std::min({kMaxGroup / limits.width, uint32_t{SIMT_ATTENTION_GROUPS}});
    uint32_t out = 1;
    while (out < most && out * SIMT_ATTENTION_BLOCK < params.keys) out *= 2;
    return out;
  }

  const std::string module_, block_module_;
};

}  // namespace

std::shared_ptr<const Operator> shared_attention(uint32_t dtype) { return std::make_shared<const Attention>(dtype); }

kit::Status check_attention(const Call& call) { return check_shapes(call.in(0).shape, call.in(2).shape); }

AttentionParams attention_params(const Call& call) {
  const View &q = call.in(0), &k = call.in(1), &v = call.in(2);
  const auto& attributes = call.attributes<bp_attention_attributes>();
  AttentionParams out{};
  out.batches = static_cast<u32>(q.shape[0]), out.groups = static_cast<u32>(k.shape[1]);
  out.repeats = static_cast<u32>(q.shape[1] / k.shape[1]);
  out.queries = static_cast<u32>(q.shape[2]), out.keys = static_cast<u32>(k.shape[2]);
  out.depth = static_cast<u32>(q.shape[3]), out.value_columns = static_cast<u32>(v.shape[3]);
  out.y = strides_of(call.out());
  out.q = strides_of(q), out.k = strides_of(k), out.v = strides_of(v);
  if (const View* mask = given(call.inputs, 3); mask != nullptr) {
    out.mask = strides_of(*mask);
    out.mask_kind = mask->dtype == BP_BOOL ? SIMT_MASK_BOOL : SIMT_MASK_ADDED;
  }
  if (const View* logsumexp = given(call.outputs, 1); logsumexp != nullptr) {
    out.logsumexp = strides_of(*logsumexp);
    out.has_logsumexp = 1;
  }
  out.causal = attributes.causal;
  out.scale = attributes.scale;
  return out;
}

std::array<Place, 6> attention_places(const Call& call) {
  std::array<Place, 6> out{};
  out[0] = call.out().place;
  if (const View* logsumexp = given(call.outputs, 1); logsumexp != nullptr) out[1] = logsumexp->place;
  for (uint32_t i = 0; i < 4; ++i) {
    if (const View* view = given(call.inputs, i); view != nullptr) out[2 + i] = view->place;
  }
  return out;
}

void add_attention(Operators& operators) {
  for_dtypes(kComputed & BP_SET_FLOATS,
             [&](uint32_t dtype) { operators.add(BP_OP_ATTENTION, dtype, entry_of<Attention>(dtype)); });
}

}  // namespace backplane::simt
