// SPDX-License-Identifier: Apache-2.0
// The reduction operators, including argmax and argmin.
#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::simt {

namespace {

// Maximum number of partial results, and the maximum bytes of each.
constexpr int64_t kMaxPartials = 32768;
constexpr uint64_t kPartialBytes = 16;

// The dimensions that enumerate rows (`outer`), and the dimensions within a row (`inner`). Operand 0 is
// the output, and operand 1 is the input.
struct Rows {
  Nest outer, inner;

  static Rows of(const View& out, const View& in, uint32_t axes) {
    Rows rows;
    for (Nest* nest : {&rows.outer, &rows.inner}) {
      nest->add(out);
      nest->add(in);
      const Nest::Operand both[] = {nest->operand[0], nest->operand[1]};
      for (uint32_t d = 0; d < in.rank; ++d) {
        const bool reduced = (axes >> d & 1u) != 0;
        if (reduced != (nest == &rows.inner)) continue;
        nest->shape[nest->rank] = in.shape[d];
        for (uint32_t k = 0; k < 2; ++k) {
          nest->operand[k].strides[nest->rank] = k == 0 && reduced ? 0 : both[k].strides[d];
        }
        ++nest->rank;
      }
      nest->merge();
    }
    return rows;
  }

  // Returns parameters for all rows and the elements of `slice`, which is a part of `inner`.
  ReduceParams params(const Nest& slice) const {
    ReduceParams out{};
    out.outer_rank = outer.rank;
    out.inner_rank = std::max(slice.rank, 1u);
    out.rows = static_cast<uint32_t>(outer.count());
    out.extent = static_cast<uint32_t>(slice.count());
    if (out.outer_rank < SIMT_RANK) out.shape[out.outer_rank] = 1;
    for (uint32_t k = 0; k < 2; ++k) {
      std::copy_n(outer.operand[k].strides, outer.rank, out.strides[k]);
      std::copy_n(slice.operand[k].strides, slice.rank, out.strides[k] + outer.rank);
    }
    for (uint32_t d = 0; d < outer.rank; ++d) out.shape[d] = static_cast<uint32_t>(outer.shape[d]);
    for (uint32_t d = 0; d < slice.rank; ++d) out.shape[outer.rank + d] = static_cast<uint32_t>(slice.shape[d]);
    out.out_bytes = outer.operand[0].bytes;
    out.is_immediate = outer.operand[1].is_immediate ? 1 : 0;
    out.immediate = outer.operand[1].immediate;
    return out;
  }
};

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

enum Kernel : uint32_t { kGroup, kThread, kPartials, kTile };

// The distribution of rows over threads.
struct Distribution {
  Kernel kernel;  // kThread: one thread per row or split, kGroup: one group per row or split, kTile: one group per tile
  uint32_t group_size;
  int64_t split_length;
  uint32_t tile;  // rows per tile, or 1

  static Distribution of(const Rows& rows, const Limits& limits) {
    const Nest &outer = rows.outer, &inner = rows.inner;
    const int64_t count = std::max<int64_t>(outer.count(), 1), extent = std::max<int64_t>(inner.count(), 1);
    const Nest::Operand& in = inner.operand[1];
    const bool contiguous = inner.rank == 1 && in.strides[0] == 1;
    const bool across = outer.rank != 0 && outer.operand[1].strides[outer.rank - 1] == 1 && !contiguous;
    Distribution out{kGroup, stream_group(limits), extent, 1};
    if (count >= limits.width && (extent <= 16 || (across && limits.is_cpu))) {
      out.kernel = kThread;
    } else if (across && !limits.is_cpu && !outer.operand[1].is_immediate) {
      out.kernel = kTile;
    }
    if (out.kernel == kTile) return out.with_tiles(outer, extent, limits);
    // Divides rows into splits if there are few rows, so that all compute units have work.
    const int64_t threads = out.kernel == kThread ? limits.width : 1;
    const int64_t wanted = int64_t{limits.compute_units} * (limits.is_cpu ? 4 : kGroups) * threads;
    const int64_t least = out.kernel == kThread ? 512 : limits.is_cpu ? 16384 : 4096;
    out.divide(count, extent, ceil_div(wanted, count), least);
    if (limits.is_cpu || out.kernel != kGroup) return out;
    // A split begins at a multiple of kAlignment elements of its row, so its packs are aligned if those of the row are.
    if (out.split_length < extent) out.split_length = ceil_div(out.split_length, kAlignment) * kAlignment;
    out.group_size = group_for(limits, ceil_div(out.split_length, contiguous ? kThreadBytes / in.bytes : 8));
    return out;
  }
  // Returns the smallest group that has at least `threads` threads, or the largest group.
  static uint32_t group_for(const Limits& limits, int64_t threads) {
    uint32_t out = limits.width;
    while (out < whole_group(limits) && out < threads) out *= 2;
    return out;
  }

 private:
  static constexpr int64_t kAlignment = 1024;  // elements
  static constexpr int64_t kTileBytes = 128;   // bytes of adjacent elements
  static constexpr int64_t kStrandLength = 8;  // minimum number of elements per strand, if there are several strands
  // Groups per compute unit, of the kernels kGroup and kTile. With two groups of kTile, enough bytes are in flight.
  static constexpr int64_t kGroups = 8, kTileGroups = 2;
  static constexpr int64_t kThreadBytes = 128;  // bytes of a contiguous row that a thread loads at once

  // Divides rows into about `splits` splits of at least `least` elements.
  void divide(int64_t count, int64_t extent, int64_t splits, int64_t least) {
    splits = std::min({splits, ceil_div(extent, least), std::max<int64_t>(kMaxPartials / count, 1)});
    split_length = std::min(ceil_div(extent, std::max<int64_t>(splits, 1)), Nest::kMaxCount / 2);
  }
  Distribution with_tiles(const Nest& outer, int64_t extent, const Limits& limits) const {
    Distribution out = *this;
    const int64_t length = outer.shape[outer.rank - 1];
    int64_t group = whole_group(limits);
    // A tile has as many adjacent rows as fill a cache line, or more if rows are too short for all strands.
    int64_t tile = 1;
    while (tile < length && tile < group &&
           (tile * outer.operand[1].bytes < kTileBytes || group / tile * kStrandLength > extent)) {
      tile *= 2;
    }
    // A tile has half as many rows if there are few tiles.
    const auto tiles = [&] { return outer.count() / std::max<int64_t>(length, 1) * ceil_div(length, tile); };
    if (tile * outer.operand[1].bytes == kTileBytes && tiles() < 2 * limits.compute_units &&
        group / tile * 2 * kStrandLength <= extent) {
      tile /= 2;
    }
    while (group > limits.width && group / tile * kStrandLength > extent) group /= 2;
    out.group_size = static_cast<uint32_t>(group);
    out.tile = static_cast<uint32_t>(tile);
    out.divide(std::max<int64_t>(outer.count(), 1), extent,
               limits.compute_units * kTileGroups / std::max<int64_t>(tiles(), 1), group / tile * kStrandLength);
    return out;
  }
};

class Reduce : public Operator {
 public:
  Reduce(uint32_t op, uint32_t dtype) : module_(module_name("reduce", dtype)), op_(op) {}

  kit::Status prepare(const kit::CheckedDesc&, kit::PlanNeeds& needs) const override {
    needs.workspace_bytes = kMaxPartials * kPartialBytes;
    return {};
  }
  KernelNames kernels(const kit::PlanForm&) const override {
    const std::string name = kit::op_name(op_);
    KernelNames out;
    out[kGroup] = {module_, name + "_group"};
    out[kThread] = {module_, name + "_thread"};
    out[kPartials] = {module_, name + "_partials"};
    return out;
  }
  KernelNames kernels_on(const Limits& limits, const kit::PlanForm& plan) const override {
    KernelNames out = kernels(plan);
    if (!limits.is_cpu) out[kTile] = {module_, std::string(kit::op_name(op_)) + "_tile"};
    return out;
  }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    const bool one_axis = op_ == BP_OP_ARGMAX || op_ == BP_OP_ARGMIN;
    const uint32_t axes =
        one_axis ? 1u << call.attributes<bp_axis_attributes>().axis : call.attributes<bp_reduce_attributes>().axes;
    const Rows rows = Rows::of(call.out(), call.in(0), axes);
    const Distribution distribution = Distribution::of(rows, launcher.limits());
    const int64_t length = rows.inner.count(),
                  splits = std::max<int64_t>(ceil_div(length, distribution.split_length), 1);
    // A launch reduces at most Nest::kMaxCount elements of a row.
    const bool whole = splits == 1 && length <= Nest::kMaxCount;
    if (one_axis && length > UINT32_MAX) {
      return kit::invalid_argument(call.op->name, ": the axis exceeds 2^32 - 1 elements; divide the input");
    }
    // A launch reduces a slice of each row, of at most Nest::kMaxCount / 2 elements. A longer row has at most three
    // slices for each Nest::kMaxCount / 2 of its elements. Each slice may end with one more, shorter split.
    const int64_t slices = length <= Nest::kMaxCount / 2 ? 0 : 3 * ceil_div(length, Nest::kMaxCount / 2);
    const int64_t row_splits = whole ? 1 : splits + slices;
    const int64_t max_rows =
        whole ? Nest::kMaxCount / std::max<int64_t>(splits, 1) : std::max<int64_t>(kMaxPartials / row_splits, 1);
    return rows.outer.for_slices(
        [&](const Nest& outer, int64_t) {
          return reduce(launcher, program, call, {outer, rows.inner}, distribution, whole);
        },
        max_rows);
  }

 private:
  kit::Status reduce(Launcher& launcher, const Program& program, const Call& call, const Rows& rows,
                     const Distribution& distribution, bool whole) const {
    const uint32_t kernel = program.kernels[distribution.kernel];
    const Place places[] = {rows.outer.operand[0].place, rows.outer.operand[1].place, call.workspace};
    const auto run = [&](ReduceParams& params, const Place& in) {
      params.tile = distribution.tile;
      uint64_t items = params.rows;
      if (distribution.kernel == kTile) {
        const uint32_t length = params.shape[params.outer_rank - 1];
        items = uint64_t{params.rows / length} * ((length + params.tile - 1) / params.tile);
      }
      const Place moved[] = {places[0], in, places[2]};
      return launch(launcher, kernel,
                    groups_for(items * params.splits, distribution.kernel == kThread ? distribution.group_size : 1),
                    distribution.group_size, moved, params);
    };
    if (whole) {
      ReduceParams params = rows.params(rows.inner);
      params.splits = 1;
      params.row_splits = 1;
      params.split_length = params.extent;
      return run(params, places[1]);
    }
    uint32_t next = 0;
    std::vector<ReduceParams> parts;
    std::vector<Place> starts;
    kit::Status status = rows.inner.for_slices(
        [&](const Nest& slice, int64_t first) {
          ReduceParams params = rows.params(slice);
          params.splits = static_cast<uint32_t>(ceil_div(params.extent, distribution.split_length));
          params.split_length = static_cast<uint32_t>(distribution.split_length);
          params.first_split = next;
          params.first_element = static_cast<uint32_t>(first);
          params.is_partial = 1;
          next += params.splits;
          Place in = places[1];
          in.offset += slice.operand[1].place.offset - rows.inner.operand[1].place.offset;
          parts.push_back(params);
          starts.push_back(in);
          return kit::Status{};
        },
        Nest::kMaxCount / 2);
    for (std::size_t i = 0; status.ok() && i < parts.size(); ++i) {
      parts[i].row_splits = next;
      status = run(parts[i], starts[i]);
    }
    if (!status.ok()) return status;
    ReduceParams params = rows.params(rows.inner);
    params.row_splits = next;
    const Limits& limits = launcher.limits();
    const uint32_t group = limits.is_cpu ? stream_group(limits) : Distribution::group_for(limits, next);
    return launch(launcher, program.kernels[kPartials], groups_for(params.rows, 1), group, places, params);
  }

  const std::string module_;
  const uint32_t op_;
};

}  // namespace

void add_reduce(Operators& operators) {
  for (const uint32_t op :
       {BP_OP_REDUCE_SUM, BP_OP_REDUCE_PROD, BP_OP_REDUCE_MAX, BP_OP_REDUCE_MIN, BP_OP_ARGMAX, BP_OP_ARGMIN}) {
    for_dtypes(kComputed & kit::find_op(op)->dtypes, [&](uint32_t dtype) {
      OperatorEntry entry = entry_of<Reduce>(op, dtype);
      entry.mixed = rules::kMixedIndex;  // affects only argmax and argmin, whose output is an index
      operators.add(op, dtype, std::move(entry));
    });
  }
}

}  // namespace backplane::simt
