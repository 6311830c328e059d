// SPDX-License-Identifier: Apache-2.0
// The operator attention, computed without a tensor of scores. One kernel (shaders/attention.comp)
// processes each tile of rows in one pass over keys and values. If there are few rows or many keys,
// the keys are divided into splits, and a second kernel combines the results of the splits.
#include <cmath>

#include "ops/gemm_algorithm.hpp"
#include "ops/gemm_params.hpp"
#include "ops/operators.hpp"

namespace backplane::vulkan {

namespace {

struct AttentionOperand {
  uint64_t address;
  int64_t strides[4];
};

// The parameter block, whose layout must match shaders/attention.glsl. Strides are in bytes.
struct AttentionParams {
  uint32_t queries, keys, depth, width;
  uint32_t groups, group_heads;
  uint32_t rows, tile_rows, tiles;
  uint32_t first_item, items;
  uint32_t splits, split_keys;
  float scale;
  uint32_t causal, mask_kind;
  uint64_t scratch;
  AttentionOperand q, k, v, mask, y, logsumexp;
  uint64_t immediates[4];  // values of immediate operands, which kernels read by address
};
static_assert(sizeof(AttentionParams) == 344);

constexpr int64_t kTileRows = BACKPLANE_ATTENTION_ROWS;
constexpr int64_t kMinSubgroup = BACKPLANE_MIN_SUBGROUP, kWorkgroup = BACKPLANE_SUBGROUP_WORKGROUP;
constexpr int64_t kMaxDepth = 65536;    // maximum elements per query, because loops have an iteration limit
constexpr int64_t kMaxWidth = 1024;     // maximum columns of v per dispatch
constexpr int64_t kMinSplitKeys = 256;  // minimum keys per split if keys are split for occupancy
constexpr int64_t kOccupancyOfGpu = 4096, kOccupancyOfCpu = 16;  // minimum number of subgroups that keep a device busy
constexpr int64_t kMaxIndex = int64_t{1} << 31;                  // exclusive upper limit of extents
constexpr auto kScratch = static_cast<int64_t>(Stream::kScratchBytes);

using Shape = std::span<const int64_t>;  // shape with four extents

// The division of the work among subgroups. A row is one query of one head, and an item is one tile of rows.
struct WorkSplit {
  int64_t tile_rows = 1, tiles = 1, items = 1;  // rows per tile, tiles per key head, and total number of tiles
  int64_t splits = 1, split_keys = 0;           // number of splits of the keys, and keys per split
  int64_t items_per_subgroup = 1;               // maximum items per subgroup and dispatch
  int64_t item_bytes = 1;                       // bytes of scratch memory per item and split
  bool one_block = false;                       // whether each split consists of one block of keys

  // Returns whether the kernels store partial results in scratch memory.
  bool uses_scratch() const { return splits > 1 || !one_block; }
  // Returns the bytes of scratch memory that all splits of an item use at the same time. If keys
  // are not split, returns the bytes that the subgroups of a workgroup use, which are 0 if the keys
  // form one block.
  int64_t scratch_bytes(int64_t subgroup_size) const {
    if (!uses_scratch()) return 0;
    return item_bytes * (splits == 1 ? kWorkgroup / subgroup_size : splits);
  }
};

int64_t tile_rows(Shape q, Shape k) { return q[2] == 1 && q[1] == k[1] ? 1 : kTileRows; }

// Divides the work for subgroups of `subgroup_size` threads. Larger subgroups never need more splits or more scratch
// memory, so check_shapes() passes the smallest size.
WorkSplit split_work(Shape q, Shape k, Shape v, bool cpu, int64_t subgroup_size) {
  WorkSplit out;
  const int64_t block = subgroup_size * BACKPLANE_ATTENTION_KEYS;  // keys that a subgroup processes at once
  out.tile_rows = tile_rows(q, k);
  const int64_t rows = k[1] == 0 ? 0 : q[1] / k[1] * q[2];
  out.tiles = ceil_div(rows, out.tile_rows);
  out.items = out.tiles * k[1] * k[0];
  const int64_t keys = k[2], width = ceil_div(std::min(v[3], kMaxWidth), 4) * 4;
  out.item_bytes = out.tile_rows * (4 + width) * static_cast<int64_t>(sizeof(float));
  // Number of iterations per block of keys, with an allowance for shuffles. An iteration processes
  // eight elements of a query, or four columns per thread.
  const int64_t steps = 64 + q[3] / kMinSubgroup + 20 * ceil_div(width, 4 * subgroup_size);
  const int64_t max_blocks = std::max<int64_t>(2 * kMaxSteps / steps, 1);
  const int64_t wanted = (cpu ? kOccupancyOfCpu : kOccupancyOfGpu) / std::max<int64_t>(out.items, 1);
  const int64_t splits = std::max(std::min({wanted, keys / std::max(kMinSplitKeys, block), kScratch / out.item_bytes}),
                                  ceil_div(keys, max_blocks * block));
  out.split_keys = std::max<int64_t>(ceil_div(ceil_div(keys, std::max<int64_t>(splits, 1)), block) * block, block);
  out.splits = std::max<int64_t>(ceil_div(keys, out.split_keys), 1);
  out.items_per_subgroup = std::max<int64_t>(max_blocks / ceil_div(out.split_keys, block), 1);
  out.one_block = out.split_keys == block;
  return out;
}

// Returns UNSUPPORTED for shapes that exceed the kernels' limits.
kit::Status check_shapes(Shape q, Shape k, Shape v) {
  const auto counted = [](int64_t extent) { return extent < kMaxIndex; };
  const double heads = k[1] == 0 ? 0 : static_cast<double>(q[1]) / static_cast<double>(k[1]);
  const double rows = heads * static_cast<double>(q[2]);
  const double tiles = std::ceil(rows / static_cast<double>(tile_rows(q, k)));
  bool fits = std::ranges::all_of(q, counted) && std::ranges::all_of(k, counted) && std::ranges::all_of(v, counted) &&
              rows < double{kMaxIndex} &&
              tiles * static_cast<double>(k[1]) * static_cast<double>(k[0]) < double{kMaxIndex} && q[3] <= kMaxDepth;
  if (fits) {
    const WorkSplit work = split_work(q, k, v, false, kMinSubgroup);
    fits = work.scratch_bytes(kMinSubgroup) <= kScratch && work.splits <= kMaxSteps;
  }
  if (fits) return {};
  const auto text = [](Shape shape) { return kit::text("[", backplane::rules::list_text(shape), "]"); };
  return kit::unsupported("attention of q ", text(q), ", k ", text(k), " and v ", text(v),
                          " is not supported: the limits are 65,536 elements of a query, 2^31 - 1 queries, and keys",
                          " in at most ", kMaxSteps, " splits, whose results fit into ", kScratch >> 20,
                          " MiB; divide the operands");
}
Shape shape_of(const View& view) { return {view.shape, 4}; }

// Returns whether k, v and y are contiguous along the last dimension and aligned for vec4 accesses.
bool is_vec4(const Call& call) {
  const int64_t bytes = element_bytes(call.out()), whole = 4 * bytes;
  const auto fits = [&](const View& view) {
    if (view.shape[3] % 4 != 0 || view.strides[3] != 1 || view.is_immediate) return false;
    if (address_of(view) % static_cast<uint64_t>(whole) != 0) return false;
    return std::all_of(view.strides, view.strides + 3, [](int64_t stride) { return stride % 4 == 0; });
  };
  return fits(call.in(1)) && fits(call.in(2)) && fits(call.out());
}

class Attention : public Operator {
 public:
  Attention(uint32_t dtype, bool cpu, uint32_t subgroup_size)
      : dtype_(dtype), cpu_(cpu), subgroup_size_(subgroup_size) {}

  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds&) const override {
    const bp_tensor_desc* in = checked.desc.inputs;
    return check_shapes({in[0].shape, 4}, {in[1].shape, 4}, {in[2].shape, 4});
  }

  Kernels kernels(const kit::PlanForm& plan, bool) const override {
    const std::string tile = shader_name("attention", dtype_), row = shader_name("attention_row", dtype_);
    const Constants strided{{kIdLayout, BACKPLANE_LAYOUT_STRIDED}, {kIdSubgroupSize, subgroup_size_}};
    const Constants vec4{{kIdLayout, BACKPLANE_LAYOUT_DENSE}, {kIdSubgroupSize, subgroup_size_}};
    Kernels out;
    out[kCombine] = {shader_name("attention_combine", dtype_), {}};
    out[kTile] = {tile, strided};
    out[kTileVec4] = {tile, vec4};
    const bool one_query = (plan.operands[0].classes >> 8 & 15) == 4;  // dimension 2 of q has extent 1
    if (one_query) out[kRow] = {row, strided}, out[kRowVec4] = {row, vec4};
    return out;
  }

  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const Shape q = shape_of(call.in(0)), k = shape_of(call.in(1)), v = shape_of(call.in(2));
    if (q[0] == 0 || q[1] == 0 || q[2] == 0) return {};
    kit::Status status = check_shapes(q, k, v);
    const WorkSplit work = status.ok() ? split_work(q, k, v, cpu_, subgroup_size_) : WorkSplit{};
    // The columns of v are independent. Each iteration computes up to kMaxWidth of these columns.
    for (int64_t column = 0; status.ok() && (column == 0 || column < v[3]); column += kMaxWidth)
      status = enqueue_columns(stream, program, call, work, column);
    return status;
  }

 private:
  // kTile processes several rows per subgroup, and kRow processes one row per subgroup.
  enum Pipeline : uint32_t { kCombine, kTile, kTileVec4, kRow, kRowVec4 };

  // Enqueues the computation of at most kMaxWidth columns, starting at `first_column`.
  kit::Status enqueue_columns(Stream& stream, const Program& program, const Call& call, const WorkSplit& work,
                              int64_t first_column) const {
    const int64_t columns = std::min(call.in(2).shape[3] - first_column, kMaxWidth);
    const int64_t scratch = std::max<int64_t>(work.scratch_bytes(subgroup_size_), 1);
    const bool vec4 = is_vec4(call);
    VkPipeline const pipeline =
        program.pipelines[work.tile_rows == 1 ? (vec4 ? kRowVec4 : kRow) : (vec4 ? kTileVec4 : kTile)];
    Accesses accesses = accesses_of(call);
    if (work.uses_scratch()) accesses.add({stream.scratch(), stream.scratch() + Stream::kScratchBytes, true});
    // The scratch memory must be large enough for all splits of all items in a dispatch. If keys are not split, the
    // memory must be large enough for all subgroups of the dispatch.
    const int64_t per_group = kWorkgroup / subgroup_size_;
    const int64_t max_groups = std::min<int64_t>(kMaxGroups, work.splits == 1 ? kScratch / scratch : kMaxGroups);
    const int64_t max_items = work.splits == 1 ? max_groups * per_group * work.items_per_subgroup
                                               : std::min(kScratch / scratch, kMaxIndex / work.splits - 1);
    kit::Status status;
    for (int64_t first = 0; status.ok() && first < work.items; first += max_items) {
      const int64_t items = std::min(max_items, work.items - first);
      const auto fill = [&](AttentionParams& params, uint64_t address) {
        describe(call, work, params, address);
        params.width = static_cast<uint32_t>(columns);
        for (AttentionOperand* const operand : {&params.v, &params.y})
          operand->address += static_cast<uint64_t>(first_column * operand->strides[3]);
        if (first_column != 0) params.logsumexp = {};
        params.first_item = static_cast<uint32_t>(first);
        params.items = static_cast<uint32_t>(items);
        params.scratch = stream.scratch();
      };
      const int64_t groups = std::min(ceil_div(items * work.splits, per_group), max_groups);
      const double scores = static_cast<double>(items * work.tile_rows) * static_cast<double>(call.in(1).shape[2]);
      const double operations = 2.0 * scores * static_cast<double>(call.in(0).shape[3] + columns);
      status = stream.dispatch<AttentionParams>({pipeline,
                                                 {static_cast<uint32_t>(groups), 1, 1},
                                                 accesses,
                                                 static_cast<uint64_t>(std::min(operations, 0x1p62))},
                                                fill);
      if (!status.ok() || work.splits == 1) continue;
      const int64_t elements = items * work.tile_rows * std::max<int64_t>(columns, 1);
      status = stream.dispatch<AttentionParams>(
          {program.pipelines[kCombine], {groups_for(static_cast<uint64_t>(elements)), 1, 1}, accesses}, fill);
    }
    return status;
  }

  static AttentionOperand operand_of(const View* view, uint64_t& immediate, uint64_t immediate_at) {
    if (view == nullptr) return {};
    AttentionOperand out{address_of(*view), {}};
    if (view->is_immediate) {
      immediate = view->immediate;
      out.address = immediate_at;
      return out;
    }
    const Strides strides(*view);
    std::copy_n(strides.bytes, 4, out.strides);
    return out;
  }

  static void describe(const Call& call, const WorkSplit& work, AttentionParams& params, uint64_t address) {
    const View &q = call.in(0), &k = call.in(1);
    params = {};
    params.queries = static_cast<uint32_t>(q.shape[2]), params.keys = static_cast<uint32_t>(k.shape[2]);
    params.depth = static_cast<uint32_t>(q.shape[3]);
    params.groups = static_cast<uint32_t>(k.shape[1]);
    params.group_heads = static_cast<uint32_t>(q.shape[1] / k.shape[1]);
    params.rows = params.group_heads * params.queries;
    params.tile_rows = static_cast<uint32_t>(work.tile_rows);
    params.tiles = static_cast<uint32_t>(work.tiles);
    params.splits = static_cast<uint32_t>(work.splits);
    params.split_keys = static_cast<uint32_t>(work.split_keys);
    params.scale = call.attributes<bp_attention_attributes>().scale;
    params.causal = call.attributes<bp_attention_attributes>().causal;
    if (const View* mask = given(call.inputs, 3); mask != nullptr) params.mask_kind = mask->dtype == BP_BOOL ? 1 : 2;
    AttentionOperand* const inputs[] = {&params.q, &params.k, &params.v, &params.mask};
    for (uint32_t i = 0; i < call.inputs.size(); ++i) {
      *inputs[i] = operand_of(given(call.inputs, i), params.immediates[i],
                              address + offsetof(AttentionParams, immediates) + i * sizeof(uint64_t));
    }
    uint64_t none = 0;
    params.y = operand_of(&call.out(), none, 0);
    if (const View* logsumexp = given(call.outputs, 1); logsumexp != nullptr)
      params.logsumexp = operand_of(logsumexp, none, 0);
  }

  const uint32_t dtype_;
  const bool cpu_;
  const uint32_t subgroup_size_;
};

}  // namespace

void add_attention(Operators& operators, const PhysicalDevice& device) {
  if (!supports_subgroup_kernels(device) || !device.has_shuffle) return;
  for_dtypes(kFloats, [&](uint32_t dtype) {
    operators.add(BP_OP_ATTENTION, dtype, entry_of<Attention>(dtype, device.is_cpu(), device.subgroup_size));
  });
}

}  // namespace backplane::vulkan
