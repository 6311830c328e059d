// SPDX-License-Identifier: Apache-2.0
#include "ops/tile.hpp"

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

void stage_immediates(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) {
  for (uint32_t i = 0; i < checked.desc.input_count; ++i) {
    if ((checked.desc.inputs[i].flags & BP_DESC_IMMEDIATE) != 0) needs.stage_inputs |= 1u << i;
  }
}

}  // namespace backplane::simt
