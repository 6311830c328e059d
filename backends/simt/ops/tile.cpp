// SPDX-License-Identifier: Apache-2.0
#include "ops/tile.hpp"

#include <bit>

namespace backplane::simt {

namespace {

// Maximum length of rows that are assigned to single threads even if the elements of a row are
// contiguous.
constexpr int64_t kShortRow = 16;

constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

int64_t TileNest::Dimensions::count() const {
  int64_t out = 1;
  for (uint32_t d = 0; d < rank; ++d) out *= shape[d];
  return out;
}

void TileNest::Dimensions::swap(uint32_t a, uint32_t b) {
  std::swap(shape[a], shape[b]);
  for (int64_t* each : strides) std::swap(each[a], each[b]);
}

void TileNest::Dimensions::drop(uint32_t d) {
  --rank;
  std::copy(shape + d + 1, shape + rank + 1, shape + d);
  for (int64_t* each : strides) {
    std::copy(each + d + 1, each + rank + 1, each + d);
    each[rank] = 0;
  }
}

bool TileNest::Dimensions::mergeable(uint32_t d) const {
  return std::ranges::all_of(strides, [&](const int64_t* each) { return each[d - 1] == each[d] * shape[d]; });
}

void TileNest::Dimensions::arrange() {
  for (uint32_t d = rank; d-- > 0;) {
    if (shape[d] == 1) drop(d);
  }
  // Sorts the dimensions by the stride of operand 1, the greatest first.
  for (uint32_t i = 1; i < rank; ++i) {
    for (uint32_t d = i; d > 0 && std::abs(strides[1][d - 1]) < std::abs(strides[1][d]); --d) swap(d - 1, d);
  }
  for (uint32_t d = rank; d-- > 1;) {
    if (!mergeable(d)) continue;
    shape[d - 1] *= shape[d];
    for (int64_t* each : strides) each[d - 1] = each[d];
    drop(d);
  }
}

void TileNest::arrange() {
  rows.arrange();
  elements.arrange();
  if (rows.rank == 0 || rows.shape[rows.rank - 1] >= kShortRow || elements.count() > kShortRow) return;
  // Threads are distributed along the last dimension of `rows`. If that dimension and the rows
  // themselves are short, moves the longest dimension to the last place.
  const auto longest = std::max_element(rows.shape, rows.shape + rows.rank) - rows.shape;
  rows.swap(static_cast<uint32_t>(longest), rows.rank - 1);
}

void TileNest::add(int64_t extent, bool inner, std::initializer_list<int64_t> strides) {
  Dimensions& to = inner ? elements : rows;
  to.shape[to.rank] = extent;
  uint32_t k = 0;
  for (const int64_t stride : strides) to.strides[k++][to.rank] = stride;
  ++to.rank;
}

void TileNest::add(std::initializer_list<const View*> views, uint32_t axes) {
  const View& first = **views.begin();
  for (uint32_t d = 0; d < first.rank; ++d) {
    Dimensions& to = (axes >> d & 1u) != 0 ? elements : rows;
    to.shape[to.rank] = first.shape[d];
    uint32_t k = 0;
    for (const View* view : views) to.strides[k++][to.rank] = view == nullptr ? 0 : view->strides[d];
    ++to.rank;
  }
}

TileGrid TileGrid::of(const TileNest& nest, const Limits& limits, bool reduces) {
  const TileNest::Dimensions &rows = nest.rows, &elements = nest.elements;
  const int64_t count = rows.count(), extent = elements.count(), width = limits.width;
  const int64_t last_rows = rows.rank == 0 ? 1 : rows.shape[rows.rank - 1];
  const int64_t length = elements.rank == 0 ? 1 : elements.shape[elements.rank - 1];
  const bool contiguous = elements.rank != 0 && elements.strides[1][elements.rank - 1] == 1;
  const bool across = rows.rank != 0 && rows.strides[1][rows.rank - 1] == 1;
  const auto most = static_cast<int64_t>(whole_group(limits));
  TileGrid out{};
  out.caches = !limits.is_cpu;
  int64_t group = width;
  if (last_rows >= width && ((across && !contiguous) || extent <= kShortRow)) {
    out.tile = SIMT_TILE_THREADS;
    while (!limits.is_cpu && group < most && group < last_rows) group *= 2;
    out.blocks = count / last_rows * divide_up(last_rows, group);
  } else {
    out.tile = SIMT_TILE_SUBGROUP;
    out.blocks = count;
  }
  // Divides rows into splits if there are few rows, so that all compute units have work.
  const bool by_thread = out.tile == SIMT_TILE_THREADS;
  const int64_t lanes = by_thread ? group : 1, least = by_thread ? 512 : limits.is_cpu ? 8192 : 4096;
  const int64_t wanted = int64_t{limits.compute_units} * (limits.is_cpu ? 4 : 16);
  out.splits = std::min(divide_up(wanted, out.blocks), divide_up(extent, least));
  if (reduces) out.splits = std::min(out.splits, kTilePartials / (out.blocks * lanes));
  out.splits = std::max<int64_t>(out.splits, 1);
  out.chunk = std::max<int64_t>(length, 1);
  if (out.splits > 1) {
    const int64_t segment_splits = divide_up(out.splits, std::max<int64_t>(extent / length, 1));
    out.chunk = divide_up(divide_up(length, segment_splits), 64) * 64;
  }
  out.segment_chunks = divide_up(length, out.chunk);
  out.chunks = length == 0 ? 0 : extent / length * out.segment_chunks;
  out.split_chunks = divide_up(out.chunks, out.splits);
  out.splits = out.chunks == 0 ? 1 : divide_up(out.chunks, out.split_chunks);
  const int64_t split_length = divide_up(extent, out.splits);
  if (!by_thread && !limits.is_cpu) {
    if (split_length > 8 * width) out.tile = SIMT_TILE_GROUP;
    while (group < most && (out.tile == SIMT_TILE_SUBGROUP || group * 8 < split_length)) group *= 2;
  }
  out.group_size = static_cast<uint32_t>(group);
  const int64_t items = out.blocks * out.splits, per_group = out.tile == SIMT_TILE_SUBGROUP ? group / width : 1;
  out.groups = groups_for(static_cast<uint64_t>(items), static_cast<uint64_t>(per_group));
  if (limits.is_cpu) {
    const uint64_t work = static_cast<uint64_t>(items * std::max<int64_t>(split_length, 1) * lanes);
    const uint64_t share = elements_per_group(limits, static_cast<uint32_t>(group), work, 4096);
    out.groups = std::min(out.groups, groups_for(work, share));
  }
  return out;
}

void TileGrid::fill(const TileNest& nest, u32* shape, u32& lanes) const {
  const TileNest::Dimensions &rows = nest.rows, &elements = nest.elements;
  for (uint32_t d = 0; d < rows.rank; ++d) shape[d] = static_cast<u32>(rows.shape[d]);
  for (uint32_t d = 0; d + 1 < elements.rank; ++d) shape[rows.rank + d] = static_cast<u32>(elements.shape[d]);
  if (tile != SIMT_TILE_THREADS) return;
  lanes = shape[rows.rank - 1];
  shape[rows.rank - 1] = (lanes + group_size - 1) / group_size;
}

uint32_t access_of(std::span<const int64_t> lane_strides, uint32_t main, uint32_t shared) {
  const auto all = [&](uint32_t mask, int64_t stride) {
    for (uint32_t k = 0; k < lane_strides.size(); ++k) {
      if ((mask >> k & 1u) != 0 && lane_strides[k] != stride) return false;
    }
    return true;
  };
  if (!all(main, 1)) return SIMT_ACCESS_ANY;
  return all(shared, 1) ? SIMT_ACCESS_ALONG : all(shared, 0) ? SIMT_ACCESS_ACROSS : SIMT_ACCESS_ANY;
}

namespace {

// Returns whether the elements of a row of operand `k` have one stride.
bool has_one_stride(const TileNest::Dimensions& elements, uint32_t k) {
  return elements.rank <= 1 ||
         (elements.rank == 2 && elements.strides[k][0] == elements.strides[k][1] * elements.shape[1]);
}

// Returns whether element 0 of each row and of each segment is at a multiple of `pack` elements. `row_rank` is the
// number of dimensions that enumerate rows or packs of rows, and `segment_rank` the number of those that enumerate
// segments.
bool has_packs(const TileNest& nest, const Place& place, uint32_t k, uint32_t row_rank, uint32_t segment_rank,
               int64_t pack, uint32_t bytes) {
  const auto whole = [&](int64_t stride) { return stride % pack == 0; };
  const uint64_t address = (place.memory == nullptr            ? 0
                            : place.memory->address != nullptr ? std::bit_cast<uintptr_t>(place.memory->address)
                                                               : place.memory->offset) +
                           place.offset;
  return std::all_of(nest.rows.strides[k], nest.rows.strides[k] + row_rank, whole) &&
         std::all_of(nest.elements.strides[k], nest.elements.strides[k] + segment_rank, whole) &&
         address % (static_cast<uint64_t>(pack) * bytes) == 0;
}

int64_t power_above(int64_t least, int64_t from, int64_t most) {
  int64_t out = from;
  while (out < least && out < most) out *= 2;
  return out;
}

}  // namespace

std::optional<TeamGrid> TeamGrid::of(const TileNest& nest, const Limits& limits, const TileKernels& kernels,
                                     std::span<const Place> places, std::span<const uint32_t> bytes, uint32_t main,
                                     uint32_t shared, bool splits) {
  const TileNest::Dimensions &rows = nest.rows, &elements = nest.elements;
  const int64_t extent = elements.count(), count = rows.count();
  if (limits.is_cpu || elements.rank == 0 || extent == 0) return std::nullopt;
  const uint32_t last = elements.rank - 1;
  const auto all = [&](uint32_t mask, const auto& holds) {
    for (uint32_t k = 0; k < bytes.size(); ++k) {
      if ((mask >> k & 1u) != 0 && !holds(k)) return false;
    }
    return true;
  };
  if (!all(main, [&](uint32_t k) { return bytes[k] == bytes[1] && has_one_stride(elements, k); })) return std::nullopt;
  const auto most = static_cast<int64_t>(whole_group(limits)), units = static_cast<int64_t>(limits.compute_units);
  TeamGrid out{};
  out.splits = 1;
  if (elements.strides[1][last] == 1) {
    const int64_t pack = SIMT_PACK_BYTES / bytes[1];
    if (!kernels.packed || extent < 4 * pack) return std::nullopt;
    if (!all(main, [&](uint32_t k) { return elements.strides[k][last] == 1; })) return std::nullopt;
    // TileGrid divides few long rows into splits, so that all compute units have work.
    if (count < units && extent > 2 * most * SIMT_TEAM_VALUES) return std::nullopt;
    out.team = static_cast<uint32_t>(power_above(divide_up(extent, SIMT_TEAM_VALUES), 1, most));
    out.group_size = out.team > limits.width ? out.team : static_cast<uint32_t>(std::min<int64_t>(most, 128));
    out.blocks = count;
    out.groups = groups_for(static_cast<uint64_t>(count), out.group_size / out.team);
    const auto packs = [&](uint32_t k) { return has_packs(nest, places[k], k, rows.rank, last, pack, bytes[1]); };
    out.packed =
        !kernels.deterministic && elements.shape[last] % pack == 0 && all(main, packs) && all(shared, [&](uint32_t k) {
          return elements.strides[k][last] == 0 || (elements.strides[k][last] == 1 && packs(k));
        });
    return out;
  }
  const int64_t word = static_cast<int64_t>(sizeof(uint32_t)) / bytes[1], values = SIMT_COLUMN_VALUES / word;
  const uint32_t outer = rows.rank - 1;
  if (kernels.deterministic && word > 1) return std::nullopt;
  if (elements.rank != 1 || !kernels.columns || rows.rank == 0 || rows.shape[outer] % word != 0) return std::nullopt;
  if (!all(main, [&](uint32_t k) {
        return rows.strides[k][outer] == 1 && has_packs(nest, places[k], k, outer, 1, word, bytes[1]);
      }))
    return std::nullopt;
  // The kernels load an element of a shared operand once for all rows of a group, so rows must not differ in it.
  if (!all(shared, [&](uint32_t k) { return rows.strides[k][outer] == 0; })) return std::nullopt;
  // The fewer rows a group has, the longer are the rows that fit into its registers. 8 threads with adjacent rows
  // access a whole sector of 32 bytes.
  const int64_t columns = rows.shape[outer];
  if (columns < 8 * word) return std::nullopt;
  out.interleaved = true;
  out.group_size = static_cast<uint32_t>(most);
  int64_t across = 32;
  while (across > 8 && (across * word / 2 >= columns || extent > most / across * values)) across /= 2;
  if (extent > most / across * values) across = 32;
  const int64_t most_splits = splits && rows.rank == 1 ? std::clamp<int64_t>(kTilePartials / columns, 1, 64) : 1;
  if (splits && divide_up(columns, across * word) * most_splits < 2 * units) across = 16;
  out.team = static_cast<uint32_t>(across);
  out.blocks = count / columns * divide_up(columns, across * word);
  if (splits && rows.rank == 1) {
    out.splits = std::clamp<int64_t>(
        std::min({divide_up(2 * units, out.blocks), most_splits, extent / (most / across * 8)}), 1, most_splits);
    out.splits = divide_up(extent, divide_up(extent, out.splits));
  } else if (out.blocks < units && extent > most / across * values) {
    return std::nullopt;
  }
  out.groups = groups_for(static_cast<uint64_t>(out.blocks * out.splits), 1);
  return out;
}

void stage_immediates(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) {
  for (uint32_t i = 0; i < checked.desc.input_count; ++i) {
    if ((checked.desc.inputs[i].flags & BP_DESC_IMMEDIATE) != 0) needs.stage_inputs |= 1u << i;
  }
}

}  // namespace backplane::simt
