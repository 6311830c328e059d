// SPDX-License-Identifier: Apache-2.0
// Launches of kernels that reduce and map rows. The order of the elements of a row has no meaning,
// so dimensions are sorted by their strides and then merged.
#pragma once

#include <optional>

#include "ops/kernels.hpp"

namespace backplane::simt {

#include "device/tile_params.h"

inline constexpr uint32_t kTileOperands = 6;
inline constexpr int64_t kMaxTileRows = int64_t{1} << 29;  // per launch
// Maximum number of partial results, the bytes of each of them, and their total bytes.
inline constexpr int64_t kTilePartials = 8192;
inline constexpr uint64_t kTilePartialBytes = 16;
inline constexpr uint64_t kTileWorkspaceBytes = kTilePartials * kTilePartialBytes;

// The dimensions that enumerate rows (`rows`), and the dimensions within a row (`elements`). The strides of operand 1
// determine the order of the dimensions.
struct TileNest {
  struct Dimensions {
    uint32_t rank = 0;
    int64_t shape[SIMT_TILE_RANK] = {};
    int64_t strides[kTileOperands][SIMT_TILE_RANK] = {};  // elements

    int64_t count() const;
    void arrange();
    void swap(uint32_t a, uint32_t b);

   private:
    void drop(uint32_t d);
    bool mergeable(uint32_t d) const;
  };
  Dimensions rows, elements;
  std::array<int64_t, kTileOperands> advance = {};  // elements from each operand's element 0 to the slice's first row

  // Adds a dimension. The dimension enumerates elements of a row if `inner` is true, and rows
  // otherwise. `strides` has one stride per operand.
  void add(int64_t extent, bool inner, std::initializer_list<int64_t> strides);
  // Adds the dimensions of `views`. Absent operands are null. The first operand must be present.
  // `axes` is the mask of the dimensions within rows.
  void add(std::initializer_list<const View*> views, uint32_t axes);
  // Sorts and merges the dimensions.
  void arrange();
};

// The distribution of rows over tiles.
struct TileGrid {
  uint32_t tile;  // SIMT_TILE_*
  uint32_t group_size, groups;
  int64_t blocks;
  int64_t chunk, segment_chunks, chunks, split_chunks, splits;
  // Whether local memory may contain the elements of rows. On CPUs, a hardware cache contains them
  // anyway.
  bool caches;

  // Returns the distribution for a kernel. `reduces` states whether the kernel needs a reduction over the whole row.
  static TileGrid of(const TileNest& nest, const Limits& limits, bool reduces);
  void fill(const TileNest& nest, u32* shape, u32& lanes) const;
};

// Calls `body(slice)` for slices with at most kMaxTileRows rows.
template <class Body>
kit::Status for_row_slices(const TileNest& nest, const Body& body) {
  const int64_t total = nest.rows.count();
  if (total == 0) return {};
  if (total <= kMaxTileRows) return body(nest);
  uint32_t d = 0;
  while (nest.rows.shape[d] == 1) ++d;
  const int64_t extent = nest.rows.shape[d], step = std::max<int64_t>(kMaxTileRows / (total / extent), 1);
  kit::Status status;
  for (int64_t i = 0; status.ok() && i < extent; i += step) {
    TileNest slice = nest;
    slice.rows.shape[d] = std::min(step, extent - i);
    for (uint32_t k = 0; k < kTileOperands; ++k) slice.advance[k] += i * nest.rows.strides[k][d];
    status = for_row_slices(slice, body);
  }
  return status;
}

// The operands of a kernel. The first places belong to the operands of the nest, and the last place
// to the partial results.
template <int Places, int Operands>
struct TileOperands {
  std::array<Place, Places> places{};
  std::array<uint32_t, Operands> bytes{};  // bytes per element
  uint32_t present = 0;
  // Masks of the main operands and of the shared operands (SIMT_ACCESS_* in tile_params.h), whose
  // elements kernels access in loops.
  uint32_t main = 0, shared = 0;

  void set(uint32_t place, const View* view) {
    if (view == nullptr) return;
    set(place, view->place, kit::dtype_bytes(view->dtype));
  }
  void set(uint32_t place, const Place& memory, uint32_t element_bytes) {
    places[place] = memory;
    present |= 1u << place;
    if (place < Operands) bytes[place] = element_bytes;
  }
};

// Returns the entry of SIMT_ACCESS_* for the operands in the masks `main` and `shared`.
uint32_t access_of(std::span<const int64_t> lane_strides, uint32_t main, uint32_t shared);

// Returns the parameters of a launch of all splits.
template <int Places, int Operands>
TileParams<Places, Operands> tile_params(const TileNest& nest, const TileGrid& grid,
                                         const TileOperands<Places, Operands>& operands) {
  TileParams<Places, Operands> out{};
  const TileNest::Dimensions &rows = nest.rows, &elements = nest.elements;
  out.block_rank = rows.rank;
  out.segment_rank = elements.rank == 0 ? 0 : elements.rank - 1;
  const uint32_t last = out.segment_rank;
  grid.fill(nest, out.shape, out.lanes);
  for (uint32_t k = 0; k < Operands; ++k) {
    std::copy_n(rows.strides[k], rows.rank, out.strides[k]);
    std::copy_n(elements.strides[k], last, out.strides[k] + rows.rank);
    out.steps[k] = out.lane_strides[k] = elements.strides[k][last];
    if (grid.tile == SIMT_TILE_THREADS) {
      out.lane_strides[k] = rows.strides[k][rows.rank - 1];
      out.strides[k][rows.rank - 1] *= grid.group_size;
    }
    out.bytes[k] = operands.bytes[k];
  }
  out.access = access_of(out.lane_strides, operands.present & operands.main, operands.present & operands.shared);
  out.blocks = static_cast<u32>(grid.blocks);
  out.length = static_cast<u32>(elements.rank == 0 ? 1 : elements.shape[last]);
  out.chunk = static_cast<u32>(grid.chunk);
  out.segment_chunks = static_cast<u32>(grid.segment_chunks);
  out.chunks = static_cast<u32>(grid.chunks);
  out.split_chunks = static_cast<u32>(grid.split_chunks);
  out.splits = out.row_splits = static_cast<u32>(grid.splits);
  out.tile = grid.tile;
  out.caches = grid.caches ? 1 : 0;
  out.present = operands.present;
  out.count = static_cast<float>(elements.count());
  return out;
}

// The kernels of an operator, as numbers that Program::kernels contains. Only plans for GPUs have kernels for rows in
// registers (device/rows.h): for rows in packs of 16 bytes, for other rows, and for interleaved rows.
struct TileKernels {
  uint32_t tiles;
  std::optional<uint32_t> packed = {}, unaligned = {}, columns = {};
  // Whether the choice of the kernel must not depend on addresses. The order of sums depends on the kernel.
  bool deterministic = false;

  // Adds the kernels for rows in registers, whose indices in `program` are given, if the device has them.
  TileKernels& add_rows(const Limits& limits, const Program& program, uint32_t packed_index, uint32_t unaligned_index) {
    deterministic = program.deterministic;
    if (limits.is_cpu) return *this;
    packed = program.kernels[packed_index];
    unaligned = program.kernels[unaligned_index];
    return *this;
  }
  TileKernels& add_columns(const Limits& limits, const Program& program, uint32_t index) {
    deterministic = program.deterministic;
    if (!limits.is_cpu) columns = program.kernels[index];
    return *this;
  }
};

// The distribution of rows over teams of threads that keep the rows in registers.
struct TeamGrid {
  bool interleaved;  // whether adjacent rows are one element apart in memory
  bool packed;       // whether rows consist of packs of 16 bytes
  uint32_t team, group_size, groups;
  int64_t blocks, splits;

  // Returns nothing if `kernels` contains no kernel for the rows, or if tiles are better for these rows. `main`
  // and `shared` are masks of the operands that are present. `splits` states whether the kernel for interleaved rows
  // may divide rows.
  static std::optional<TeamGrid> of(const TileNest& nest, const Limits& limits, const TileKernels& kernels,
                                    std::span<const Place> places, std::span<const uint32_t> bytes, uint32_t main,
                                    uint32_t shared, bool splits);
};

// The passes of a kernel over a row.
enum class TilePasses {
  kReduce,  // writes results of rows only
  kReduceAndMap,
  kMap,  // needs no reduction over the whole row
};

// Returns the parameters of a launch of teams.
template <int Places, int Operands>
TeamParams<Places, Operands> team_params(const TileNest& nest, const TeamGrid& teams,
                                         const TileOperands<Places, Operands>& operands) {
  TileGrid grid{};
  grid.tile = teams.interleaved ? SIMT_TILE_THREADS : SIMT_TILE_GROUP;
  // The number of adjacent rows of a group.
  grid.group_size = teams.interleaved ? teams.team * static_cast<uint32_t>(sizeof(uint32_t)) / operands.bytes[1] : 1;
  grid.blocks = teams.blocks;
  grid.splits = teams.splits;
  grid.split_chunks = (nest.elements.count() + teams.splits - 1) / teams.splits;
  TeamParams<Places, Operands> out{};
  out.rows = tile_params(nest, grid, operands);
  out.extent = static_cast<u32>(nest.elements.count());
  out.team = teams.team;
  return out;
}

// Returns the teams that launch_tiles uses, or nothing if it uses tiles.
template <int Places, int Operands>
std::optional<TeamGrid> teams_of(const TileKernels& kernels, TilePasses passes, const TileNest& nest,
                                 const Limits& limits, const TileOperands<Places, Operands>& operands) {
  return TeamGrid::of(nest, limits, kernels, operands.places, operands.bytes, operands.present & operands.main,
                      operands.present & operands.shared, passes == TilePasses::kReduce);
}

// Enqueues the kernels that process all rows. `fill(params)` sets the fields of TileParams whose meaning the kernels
// define.
template <int Places, int Operands, class Fill>
kit::Status launch_tiles(Launcher& launcher, const TileKernels& kernels, TilePasses passes, const TileNest& nest,
                         const TileOperands<Places, Operands>& operands, const Fill& fill) {
  if (nest.elements.count() > Nest::kMaxCount) {
    return kit::invalid_argument("a row has more than 2^30 elements; divide the row");
  }
  return for_row_slices(nest, [&](const TileNest& slice) {
    TileOperands<Places, Operands> moved = operands;
    for (uint32_t k = 0; k < Operands; ++k) {
      moved.places[k].offset += static_cast<uint64_t>(slice.advance[k] * int64_t{operands.bytes[k]});
    }
    const auto teams = teams_of(kernels, passes, slice, launcher.limits(), moved);
    if (teams) {
      TeamParams<Places, Operands> params = team_params(slice, *teams, moved);
      fill(params.rows);
      const auto& kernel = teams->interleaved ? kernels.columns : teams->packed ? kernels.packed : kernels.unaligned;
      kit::Status status =
          launch(launcher, *kernel, teams->groups, teams->group_size, std::span<const Place>(moved.places), params);
      if (!status.ok() || teams->splits == 1) return status;
    }
    TileGrid grid = TileGrid::of(slice, launcher.limits(), passes != TilePasses::kMap);
    if (teams) grid.splits = teams->splits;
    TileParams<Places, Operands> params = tile_params(slice, grid, moved);
    fill(params);
    const auto run = [&] {
      return launch(launcher, kernels.tiles, grid.groups, grid.group_size, std::span<const Place>(moved.places),
                    params);
    };
    if (!teams) {
      if (grid.splits == 1 || passes == TilePasses::kMap) return run();
      params.phase = SIMT_PHASE_PARTIALS;
      kit::Status status = run();
      if (!status.ok()) return status;
    }
    params.phase = SIMT_PHASE_COMBINE;
    if (passes == TilePasses::kReduce) params.splits = 1;
    return run();
  });
}

// Makes core stage immediates, because kernels of rows read every operand from memory.
void stage_immediates(const kit::CheckedDesc& checked, kit::PlanNeeds& needs);

}  // namespace backplane::simt
