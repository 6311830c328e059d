// SPDX-License-Identifier: Apache-2.0
// attention without a tensor of scores: one kernel goes once through keys and values (shaders/attention.comp), by parts of them
// where rows are few or keys many, which a second one joins.
#include <cmath>

#include "ops/gemm_split_k.hpp"
#include "ops/gemm_algorithm.hpp"
#include "shaders/sizes.h"

namespace backplane::vulkan {

namespace {

struct Operand {
  uint64_t address;
  int64_t strides[4];
};

// Mirrors shaders/attention.glsl. Strides are in bytes.
struct Block {
  uint32_t queries, keys, depth, width;
  uint32_t groups, repeats;
  uint32_t rows, tile_rows, tiles;
  uint32_t first_item, items;
  uint32_t parts, chunk;
  float scale;
  uint32_t causal, mask_kind;
  uint64_t room;
  Operand q, k, v, mask, y, sums;
  uint64_t immediates[4];  // addressed, never named
};
static_assert(sizeof(Block) == 344);

constexpr int64_t kRows = BACKPLANE_ATTENTION_ROWS;
constexpr int64_t kLanes = BACKPLANE_LANES, kLaneGroup = BACKPLANE_LANE_GROUP;
constexpr int64_t kMostDepth = 65536;  // elements of a query: one block of keys is then below what a loop may have
constexpr int64_t kMostWidth = 1024;   // columns of values in one dispatch
constexpr int64_t kLeastKeys = 256;    // of a part that is made to busy more of the device
constexpr int64_t kEnough = 4096, kEnoughOfCpu = 16;  // subgroups
constexpr int64_t kMost = int64_t{1} << 31;           // kernels count in 32 bits
constexpr auto kRoom = static_cast<int64_t>(Stream::kScratchBytes);

using Shape = std::span<const int64_t>;  // of rank 4

// How the items of work are dealt out.
struct Division {
  int64_t tile_rows = 1, tiles = 1, items = 1;  // rows of a tile, tiles of a group, and of all
  int64_t parts = 1, chunk = 0;                 // of the keys
  int64_t each = 1;                             // items of a subgroup in one dispatch
  int64_t room = 1;                             // bytes of an item's part
  bool one_block = false;                       // of keys, whose values are not kept in between

  // Bytes that are taken at once: of an item, or, where keys are whole, of the subgroups of a workgroup.
  int64_t room_taken(int64_t lanes) const {
    if (parts == 1) return one_block ? 0 : room * (kLaneGroup / lanes);
    return room * parts;
  }
};

int64_t tile_rows(Shape q, Shape k) { return q[2] == 1 && q[1] == k[1] ? 1 : kRows; }

// For subgroups of so many lanes. More of them make no more parts, and take no more room.
Division divide(Shape q, Shape k, Shape v, bool cpu, int64_t lanes) {
  Division out;
  const int64_t block = lanes * BACKPLANE_ATTENTION_KEYS;  // keys that a subgroup goes through at once
  out.tile_rows = tile_rows(q, k);
  const int64_t rows = k[1] == 0 ? 0 : q[1] / k[1] * q[2];
  out.tiles = ceil_div(rows, out.tile_rows);
  out.items = out.tiles * k[1] * k[0];
  const int64_t keys = k[2], width = ceil_div(std::min(v[3], kMostWidth), 4) * 4;
  out.room = out.tile_rows * (4 + width) * static_cast<int64_t>(sizeof(float));
  // Iterations of a block of keys: elements of a query by eights, columns by fours of the lanes, shuffles.
  const int64_t steps = 64 + q[3] / kLanes + 20 * ceil_div(width, 4 * lanes);
  const int64_t most_blocks = std::max<int64_t>(2 * kMostSteps / steps, 1);
  const int64_t wanted = (cpu ? kEnoughOfCpu : kEnough) / std::max<int64_t>(out.items, 1);
  const int64_t parts = std::max(std::min({wanted, keys / std::max(kLeastKeys, block), kRoom / out.room}),
                                 ceil_div(keys, most_blocks * block));
  out.chunk = std::max<int64_t>(ceil_div(ceil_div(keys, std::max<int64_t>(parts, 1)), block) * block, block);
  out.parts = std::max<int64_t>(ceil_div(keys, out.chunk), 1);
  out.each = std::max<int64_t>(most_blocks / ceil_div(out.chunk, block), 1);
  out.one_block = out.chunk == block;
  return out;
}

// UNSUPPORTED: kernels cannot go through these.
kit::Status check_shapes(Shape q, Shape k, Shape v) {
  const auto counted = [](int64_t extent) { return extent < kMost; };
  const double heads = k[1] == 0 ? 0 : static_cast<double>(q[1]) / static_cast<double>(k[1]);
  const double rows = heads * static_cast<double>(q[2]);
  const double tiles = std::ceil(rows / static_cast<double>(tile_rows(q, k)));
  bool fits = std::ranges::all_of(q, counted) && std::ranges::all_of(k, counted) && std::ranges::all_of(v, counted) &&
              rows < double{kMost} && tiles * static_cast<double>(k[1]) * static_cast<double>(k[0]) < double{kMost} &&
              q[3] <= kMostDepth;
  if (fits) {
    const Division division = divide(q, k, v, false, kLanes);
    fits = division.room_taken(kLanes) <= kRoom && division.parts <= kMostSteps;
  }
  if (fits) return {};
  const auto text = [](Shape shape) { return kit::text("[", backplane::rules::list_text(shape), "]"); };
  return kit::unsupported("attention of q ", text(q), ", k ", text(k), " and v ", text(v),
                          " is beyond this plugin: it takes 65,536 elements of a query, 2^31 - 1 queries, and keys",
                          " whose parts, at most ", kMostSteps, ", have room in ", kRoom >> 20,
                          " MiB; divide the operands");
}
Shape shape_of(const View& view) { return {view.shape, 4}; }

// Whether last dimensions are packed, and every four elements of k's, v's and y's aligned for one load.
bool by_four(const Call& call) {
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
  Attention(uint32_t dtype, bool cpu, uint32_t lanes) : dtype_(dtype), cpu_(cpu), lanes_(lanes) {}

  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds&) const override {
    const bp_tensor_desc* in = checked.desc.inputs;
    return check_shapes({in[0].shape, 4}, {in[1].shape, 4}, {in[2].shape, 4});
  }

  std::vector<Kernel> kernels(const kit::PlanForm& plan, bool) const override {
    const std::string rows = shader_name("attention", dtype_), row = shader_name("attention_row", dtype_);
    std::vector<Kernel> out{{shader_name("attention_combine", dtype_), {}}, {rows, {0, lanes_}}, {rows, {1, lanes_}}};
    const bool one_query = (plan.operands[0].classes >> 8 & 15) == 4;  // dimension 2 has one element
    if (one_query) out.insert(out.end(), {{row, {0, lanes_}}, {row, {1, lanes_}}});
    return out;
  }

  kit::Status enqueue(Stream& stream, const Program& program, const Call& call) const override {
    const Shape q = shape_of(call.in(0)), k = shape_of(call.in(1)), v = shape_of(call.in(2));
    if (q[0] == 0 || q[1] == 0 || q[2] == 0) return {};
    kit::Status status = check_shapes(q, k, v);
    const Division division = status.ok() ? divide(q, k, v, cpu_, lanes_) : Division{};
    // Columns of the values are independent.
    for (int64_t column = 0; status.ok() && (column == 0 || column < v[3]); column += kMostWidth)
      status = enqueue_columns(stream, program, call, division, column);
    return status;
  }

 private:
  // kMostWidth of them, or what is left, from `first_column` on.
  kit::Status enqueue_columns(Stream& stream, const Program& program, const Call& call, const Division& division,
                              int64_t first_column) const {
    const int64_t columns = std::min(call.in(2).shape[3] - first_column, kMostWidth);
    const bool single = division.tile_rows == 1;
    const int64_t room = std::max<int64_t>(division.room_taken(lanes_), 1);
    VkPipeline const pipeline = program.pipelines[(single ? 3 : 1) + (by_four(call) ? 1 : 0)];
    Accesses accesses = accesses_of(call);
    if (!division.one_block) accesses.add({stream.scratch(), stream.scratch() + Stream::kScratchBytes, true});
    // Items of a dispatch: where there are parts, all of them have room; else each subgroup has.
    const int64_t per_group = kLaneGroup / lanes_;
    const int64_t most_groups = std::min<int64_t>(kMostGroups, division.parts == 1 ? kRoom / room : kMostGroups);
    const int64_t most_items = division.parts == 1 ? most_groups * per_group * division.each
                                                   : std::min(kRoom / room, kMost / division.parts - 1);
    kit::Status status;
    for (int64_t first = 0; status.ok() && first < division.items; first += most_items) {
      const int64_t items = std::min(most_items, division.items - first);
      const auto fill = [&](Block& block, uint64_t address) {
        describe(call, division, block, address);
        block.width = static_cast<uint32_t>(columns);
        for (Operand* const operand : {&block.v, &block.y})
          operand->address += static_cast<uint64_t>(first_column * operand->strides[3]);
        if (first_column != 0) block.sums = {};
        block.first_item = static_cast<uint32_t>(first);
        block.items = static_cast<uint32_t>(items);
        block.room = stream.scratch();
      };
      const int64_t groups = std::min(ceil_div(items * division.parts, per_group), most_groups);
      const double scores = static_cast<double>(items * division.tile_rows) * static_cast<double>(call.in(1).shape[2]);
      const double operations = 2.0 * scores * static_cast<double>(call.in(0).shape[3] + columns);
      status = stream.dispatch<Block>({pipeline,
                                       {static_cast<uint32_t>(groups), 1, 1},
                                       accesses,
                                       static_cast<uint64_t>(std::min(operations, 0x1p62))},
                                      fill);
      if (!status.ok() || division.parts == 1) continue;
      const int64_t elements = items * division.tile_rows * std::max<int64_t>(columns, 1);
      status = stream.dispatch<Block>(
          {program.pipelines[0], {groups_for(static_cast<uint64_t>(elements)), 1, 1}, accesses}, fill);
    }
    return status;
  }

  static Operand operand_of(const View* view, uint64_t& immediate, uint64_t immediate_at) {
    if (view == nullptr) return {};
    Operand out{address_of(*view), {}};
    if (view->is_immediate) {
      immediate = view->immediate;
      out.address = immediate_at;
      return out;
    }
    const Strides strides(*view);
    std::copy_n(strides.bytes, 4, out.strides);
    return out;
  }

  static void describe(const Call& call, const Division& division, Block& block, uint64_t address) {
    const View &q = call.in(0), &k = call.in(1);
    block = {};
    block.queries = static_cast<uint32_t>(q.shape[2]), block.keys = static_cast<uint32_t>(k.shape[2]);
    block.depth = static_cast<uint32_t>(q.shape[3]);
    block.groups = static_cast<uint32_t>(k.shape[1]), block.repeats = static_cast<uint32_t>(q.shape[1] / k.shape[1]);
    block.rows = block.repeats * block.queries;
    block.tile_rows = static_cast<uint32_t>(division.tile_rows);
    block.tiles = static_cast<uint32_t>(division.tiles);
    block.parts = static_cast<uint32_t>(division.parts);
    block.chunk = static_cast<uint32_t>(division.chunk);
    block.scale = call.attributes<bp_attention_attributes>().scale;
    block.causal = call.attributes<bp_attention_attributes>().causal;
    if (call.inputs.size() > 3 && call.in(3).dtype != 0) block.mask_kind = call.in(3).dtype == BP_BOOL ? 1 : 2;
    Operand* const inputs[] = {&block.q, &block.k, &block.v, &block.mask};
    for (uint32_t i = 0; i < call.inputs.size(); ++i) {
      const View* view = call.in(i).dtype != 0 ? &call.in(i) : nullptr;
      *inputs[i] = operand_of(view, block.immediates[i], address + offsetof(Block, immediates) + i * sizeof(uint64_t));
    }
    uint64_t none = 0;
    block.y = operand_of(&call.out(), none, 0);
    if (call.outputs.size() > 1 && call.out(1).dtype != 0) block.sums = operand_of(&call.out(1), none, 0);
  }

  const uint32_t dtype_;
  const bool cpu_;
  const uint32_t lanes_;
};

}  // namespace

void add_attention(Operators& operators, const PhysicalDevice& device) {
  if (!takes_lanes(device) || !device.shuffles) return;
  for_dtypes(kFloats, [&](uint32_t dtype) {
    operators.add(BP_OP_ATTENTION, dtype, entry_of<Attention>(dtype, device.is_cpu(), device.lanes));
  });
}

}  // namespace backplane::vulkan
