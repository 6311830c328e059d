// SPDX-License-Identifier: Apache-2.0
// The operator cumsum.
#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::simt {

namespace {

constexpr int64_t kSharedFrom = 256;  // minimum number of elements of a slice that a group scans
constexpr int64_t kTiledFrom = 64;    // minimum number of elements of a slice that a group of a GPU scans in tiles
constexpr int64_t kTileBytes = 128;   // bytes of the adjacent elements of a tile
constexpr int64_t kGroups = 4;        // groups per compute unit
// Maximum number of the sums of splits, and the bytes of each.
constexpr int64_t kMaxSums = 16384;
constexpr uint64_t kSumBytes = 8;

class Cumsum : public Operator {
 public:
  explicit Cumsum(uint32_t dtype) : module_(module_name("scan", dtype)) {}
  kit::Status prepare(const kit::CheckedDesc&, kit::PlanNeeds& needs) const override {
    needs.workspace_bytes = kMaxSums * kSumBytes;
    return {};
  }
  KernelNames kernels(const kit::PlanForm&) const override {
    return {{{module_, "scan_thread"}, {module_, "scan_group"}}};
  }
  KernelNames kernels_on(const Limits& limits, const kit::PlanForm& plan) const override {
    KernelNames out = kernels(plan);
    if (!limits.is_cpu) out[kTile] = {module_, "scan_tile"};
    return out;
  }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    const auto& attributes = call.attributes<bp_cumsum_attributes>();
    const uint32_t axis = attributes.axis;
    Nest nest = Nest::over(call.out());
    nest.add(call.out());
    nest.add(call.in(0));
    if (nest.count() == 0) return {};
    const int64_t extent = call.out().shape[axis];
    int64_t strides[2] = {nest.operand[0].strides[axis], nest.operand[1].strides[axis]};
    for (uint32_t k = 0; attributes.reverse != 0 && k < 2; ++k) {
      nest.advance(k, (extent - 1) * strides[k]);
      strides[k] = -strides[k];
    }
    nest.drop(axis);
    nest.merge();
    const auto fill = [&](NestParams& params, int64_t) {
      params.extra[0] = extent;
      params.extra[1] = strides[0];
      params.extra[2] = strides[1];
      params.option = attributes.exclusive;
    };
    const Limits& limits = launcher.limits();
    if (!limits.is_cpu && extent >= kTiledFrom && !nest.operand[1].is_immediate) {
      return nest.for_slices([&](const Nest& slice, int64_t first) {
        NestParams params = slice.nest_params();
        fill(params, first);
        return scan_tiles(launcher, program.kernels[kTile], slice, call.workspace, params);
      });
    }
    if (extent < kSharedFrom || nest.count() >= int64_t{limits.compute_units} * limits.width * 4) {
      return launch_nest(launcher, program.kernels[kThread], nest, fill, 1);
    }
    return nest.for_slices([&](const Nest& slice, int64_t first) {
      NestParams params = slice.nest_params();
      fill(params, first);
      const auto places = slice.places();
      return launch(launcher, program.kernels[kGroup], groups_for(params.count, 1), whole_group(limits),
                    {places.data(), 2}, params);
    });
  }

 private:
  enum Kernel : uint32_t { kThread, kGroup, kTile };

  static constexpr uint32_t kSmallGroup = 64, kManyGroups = 16;

  // Enqueues a scan of all slices in tiles. If there are few slices, divides them into splits.
  static kit::Status scan_tiles(Launcher& launcher, uint32_t kernel, const Nest& nest, const Place& sums,
                                NestParams& params) {
    const Limits& limits = launcher.limits();
    const int64_t extent = params.extra[0], count = params.count, length = params.shape[params.rank - 1];
    const bool across = params.strides[1][params.rank - 1] == 1 && params.extra[2] != 1 && params.extra[2] != -1;
    // Threads of small groups wait less at barriers. If there are many slices, small groups suffice to occupy the
    // device.
    int64_t group = whole_group(limits), tile = 1, strands = 1;
    if (!across && count >= int64_t{limits.compute_units} * kManyGroups) {
      group = std::min<int64_t>(group, std::max(limits.width, kSmallGroup));
    }
    while (strands < group && strands * SCAN_ITEMS < extent) strands *= 2;
    const auto tiles = [&] { return count / length * ((length + tile - 1) / tile); };
    // The adjacent elements of a tile fill a cache line, or a half of it if there are few tiles.
    while (across && tile < length && tile * nest.operand[1].bytes < kTileBytes) tile *= 2;
    if (across && tile * nest.operand[1].bytes == kTileBytes && tiles() < 2 * limits.compute_units) tile /= 2;
    // If slices are short, a tile has more slices, or else a group has fewer threads, so that few threads are idle.
    while (tile < length && tile * 2 * strands <= group) tile *= 2;
    while (group > limits.width && group / 2 >= tile * strands) group /= 2;
    const int64_t step = group / tile * SCAN_ITEMS;
    const int64_t wanted = tiles() >= limits.compute_units ? 1 : limits.compute_units * kGroups / tiles();
    const int64_t splits =
        std::clamp<int64_t>(std::min(extent / (step * 4), kMaxSums / count), 1, std::max<int64_t>(wanted, 1));
    const int64_t split_length = (extent + splits * step - 1) / (splits * step) * step;
    params.extra[3] = tile;
    params.extra[4] = (extent + split_length - 1) / split_length;
    params.extra[5] = split_length;
    const Place places[] = {nest.operand[0].place, nest.operand[1].place, sums};
    const uint32_t groups = groups_for(static_cast<uint64_t>(tiles() * params.extra[4]), 1);
    if (params.extra[4] > 1) {
      NestParams first = params;
      first.option |= SCAN_SUMS;
      if (kit::Status status = launch(launcher, kernel, groups, static_cast<uint32_t>(group), places, first);
          !status.ok())
        return status;
    }
    return launch(launcher, kernel, groups, static_cast<uint32_t>(group), places, params);
  }

  const std::string module_;
};

}  // namespace

void add_scan(Operators& operators) {
  for_dtypes(kComputed & BP_SET_NUMERIC,
             [&](uint32_t dtype) { operators.add(BP_OP_CUMSUM, dtype, entry_of<Cumsum>(dtype)); });
}

}  // namespace backplane::simt
