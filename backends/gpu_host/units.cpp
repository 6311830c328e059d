// SPDX-License-Identifier: Apache-2.0
#include "gpu_host/units.hpp"

#include <algorithm>
#include <map>

#include "gpu_host/storage.hpp"

namespace backplane::gpu_host {

namespace {

constexpr const char* kLayoutNames[] = {"kk", "kn", "mk", "mn"};
// The kernels copy 16 bytes at a time.
constexpr int64_t kCopyBytes = 16, kElementBytes = 2;
// Lines of a box, for an operand whose contiguous index is not k.
constexpr uint32_t kBoxLines = UNIT_DEPTH;
// The maximum pitch of a tensor map.
constexpr uint64_t kMaxMapPitch = (uint64_t{1} << 40) - 1;
// With fewer rows or columns, most of a tile would be unused. The kernels of simt for few rows read each weight once.
constexpr uint64_t kMinExtent = 9;
// Minimum extent of a split of k, and maximum number of splits.
constexpr uint64_t kMinSplitDepth = 256, kMaxSplits = 16;
constexpr uint32_t kCombineGroup = 256, kMaxCombineGroups = 32768;

constexpr uint64_t divide_up(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

uint64_t tiles_of(const UnitTile& tile, const simt::MatrixProduct& p) {
  return divide_up(p.rows, tile.rows) * divide_up(p.columns, tile.columns) * p.batches;
}

// The map of an operand whose lines are contiguous. If all products use the same matrix, the map has one matrix.
simt::TensorMap map_of(uint32_t place, const simt::Matrix& matrix, const Storage& storage, uint64_t extent,
                       uint64_t depth, uint64_t batches, bool across, uint32_t tile_extent) {
  simt::TensorMap out{};
  out.place = place;
  out.dtype = matrix.dtype;
  out.extents[0] = across ? extent : depth;
  out.extents[1] = across ? depth : extent;
  const bool is_shared = batches == 1 || matrix.batch_stride == 0;
  out.extents[2] = is_shared ? 1 : batches;
  out.pitches[0] = static_cast<uint64_t>(storage.pitch * kElementBytes);
  out.pitches[1] =
      is_shared ? out.pitches[0] * out.extents[1] : static_cast<uint64_t>(matrix.batch_stride * kElementBytes);
  out.lines = across ? kBoxLines : tile_extent;
  return out;
}

// An estimate of a product's cycles. Each compute unit processes its tiles one after another.
uint64_t cycles_of(const UnitTile& tile, uint64_t compute_units, const simt::MatrixProduct& p, uint64_t splits) {
  constexpr uint64_t kStart = 1000, kStoredPerCycle = 16, kCombination = 4000, kBytesPerCycle = 8;
  const uint64_t steps = divide_up(divide_up(p.depth, UNIT_DEPTH), splits);
  const uint64_t rounds = divide_up(tiles_of(tile, p) * splits, compute_units);
  const uint64_t each = steps * tile.step_cycles + kStart + uint64_t{tile.rows} * tile.columns / kStoredPerCycle;
  if (splits == 1) return rounds * each;
  const uint64_t bytes = p.rows * p.columns * p.batches * (splits + 1) * sizeof(float);
  return rounds * each + kCombination + bytes / (compute_units * kBytesPerCycle);
}

// Returns the storage of a matrix whose lines the kernels can copy.
std::optional<Storage> aligned_storage(const simt::Matrix& matrix, uint64_t rows, uint64_t columns, uint64_t batches) {
  auto out = storage_of(matrix, rows, columns);
  if (!out || out->pitch * kElementBytes % kCopyBytes != 0) return std::nullopt;
  if (batches != 1 && matrix.batch_stride * kElementBytes % kCopyBytes != 0) return std::nullopt;
  if (reinterpret_cast<uintptr_t>(address_of(matrix.place)) % kCopyBytes != 0) return std::nullopt;
  return out;
}

// Returns whether tensor maps can describe a and b, which have aligned storage.
bool has_maps(const simt::MatrixProduct& p) {
  const auto is_described = [&](const simt::Matrix& matrix) {
    return p.batches == 1 || static_cast<uint64_t>(matrix.batch_stride) * kElementBytes <= kMaxMapPitch;
  };
  return is_described(p.a) && is_described(p.b);
}

bool is_unit_dtype(uint32_t dtype) { return dtype == BP_F16 || dtype == BP_BF16; }

}  // namespace

bool can_run(const UnitTile& tile, const simt::Limits& limits) {
  return tile.local_bytes <= limits.launch_bytes &&
         (tile.instructions & limits.matrix_instructions) == tile.instructions;
}

simt::Launch UnitCall::combination() {
  const uint64_t parts = uint64_t{params.rows} * divide_up(params.columns, combined) * params.batches;
  const uint64_t wanted = divide_up(parts, kCombineGroup);
  const auto count = static_cast<uint32_t>(std::min<uint64_t>(wanted, kMaxCombineGroups));
  return {combine, {count, 1, 1}, kCombineGroup, places, &params, sizeof(params), 0};
}

UnitChoice choose_unit(std::span<const UnitTile> tiles, const simt::Limits& limits,
                       const simt::MatrixProduct& product) {
  const uint64_t sum_bytes = product.rows * product.columns * product.batches * sizeof(float);
  const uint64_t most =
      std::clamp<uint64_t>(std::min(product.depth / kMinSplitDepth, product.scratch_bytes / sum_bytes), 1, kMaxSplits);
  UnitChoice out;
  uint64_t best = UINT64_MAX;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    if (!can_run(tiles[i], limits) || (tiles[i].resident_groups != 0 && !has_maps(product))) continue;
    for (uint64_t splits = 1; splits <= most; ++splits) {
      const uint64_t cycles = cycles_of(tiles[i], std::max(limits.compute_units, 1u), product, splits);
      if (cycles >= best) continue;
      best = cycles;
      out.tile = i;
      out.splits = static_cast<uint32_t>(splits);
    }
  }
  const uint64_t depth = divide_up(divide_up(product.depth, out.splits), UNIT_DEPTH) * UNIT_DEPTH;
  out.split_depth = static_cast<uint32_t>(depth);
  out.splits = static_cast<uint32_t>(divide_up(product.depth, depth));
  return out;
}

bool Units::is_on() const {
  const simt::Limits& limits = context_.device().limits;
  return context_.stack().unit_kernels() != nullptr && limits.matrix_instructions != 0 &&
         std::ranges::any_of(context_.stack().unit_kernels()->tiles,
                             [&](const UnitTile& tile) { return can_run(tile, limits); });
}

kit::Result<uint32_t> Units::find(const char* module, uint32_t dtype, const std::string& name, uint32_t local_bytes) {
  return kernels_.get({kit::text(module, "_", kit::dtype_name(dtype)), name, local_bytes}, {});
}

bool Units::load(uint32_t dtype, const kit::Host& host) {
  if (!is_on() || !is_unit_dtype(dtype)) return false;
  std::lock_guard lock(mutex_);
  const auto [entry, is_new] = modules_.try_emplace(dtype);
  if (is_new) {
    auto number = find(context_.stack().unit_kernels()->module, dtype, "unit_combine", 0);
    if (number.ok()) {
      entry->second.combine = number.value();
    } else {
      host.log(BP_LOG_WARNING,
               kit::text(number.status().message(), "; kernels without tensor cores compute products of ",
                         kit::dtype_name(dtype)));
    }
  }
  return entry->second.combine.has_value();
}

bool Units::set_kernels(UnitCall& out, uint32_t dtype, std::size_t tile, std::size_t layout) {
  std::lock_guard lock(mutex_);
  const auto entry = modules_.find(dtype);
  if (entry == modules_.end() || !entry->second.combine) return false;
  std::optional<uint32_t>& kernel = entry->second.kernels[tile][layout];
  const UnitTile& of = context_.stack().unit_kernels()->tiles[tile];
  if (!kernel) {
    const std::string name = kit::text("unit_", of.rows, "x", of.columns, "_", kLayoutNames[layout]);
    auto number = find(of.module, dtype, name, of.local_bytes);
    if (!number.ok()) return false;
    kernel = number.value();
  }
  out.kernel = *kernel;
  out.combine = *entry->second.combine;
  if (of.resident_groups != 0) {
    std::optional<uint32_t>& combine = entry->second.combine_of_maps;
    if (!combine) {
      auto number = find(of.module, dtype, "unit_combine", 0);
      if (!number.ok()) return false;
      combine = number.value();
    }
    out.combine = *combine;
    out.combined = UNIT_COMBINED;
  }
  return true;
}

std::optional<UnitCall> Units::call_of(const simt::MatrixProduct& given) {
  auto c = storage_of(given.c, given.rows, given.columns);
  if (!c) return std::nullopt;
  if (!c->by_rows) {
    if (given.bias_dtype != 0) return std::nullopt;
    simt::MatrixProduct other = given;
    std::swap(other.rows, other.columns);
    other.a = transposed(given.b);
    other.b = transposed(given.a);
    other.c = transposed(given.c);
    return call_of(other);
  }
  const uint32_t dtype = given.a.dtype;
  if (given.b.dtype != dtype || (given.c.dtype != dtype && given.c.dtype != BP_F32)) return std::nullopt;
  if (given.bias_dtype != 0 && given.bias_dtype != dtype && given.bias_dtype != BP_F32) return std::nullopt;
  if (given.rows < kMinExtent || given.columns < kMinExtent) return std::nullopt;
  const auto a = aligned_storage(given.a, given.rows, given.depth, given.batches);
  const auto b = aligned_storage(given.b, given.depth, given.columns, given.batches);
  if (!a || !b) return std::nullopt;
  if (!is_unit_dtype(dtype)) return std::nullopt;
  if (!is_on()) return std::nullopt;
  const std::span<const UnitTile> tiles = context_.stack().unit_kernels()->tiles;
  const UnitChoice choice = choose_unit(tiles, context_.device().limits, given);
  const UnitTile& tile = tiles[choice.tile];
  const uint64_t groups = tiles_of(tile, given) * choice.splits;
  if (std::max({given.rows, given.columns, given.depth, given.batches, groups}) > INT_MAX) return std::nullopt;

  UnitCall out;
  UnitParams& p = out.params;
  p.rows = static_cast<uint32_t>(given.rows);
  p.columns = static_cast<uint32_t>(given.columns);
  p.depth = static_cast<uint32_t>(given.depth);
  p.batches = static_cast<uint32_t>(given.batches);
  p.pitches[0] = c->pitch;
  p.pitches[1] = a->pitch;
  p.pitches[2] = b->pitch;
  if (given.batches != 1) {
    p.batch_strides[0] = given.c.batch_stride;
    p.batch_strides[1] = given.a.batch_stride;
    p.batch_strides[2] = given.b.batch_stride;
  }
  p.row_tiles = static_cast<uint32_t>(divide_up(given.rows, tile.rows));
  p.column_tiles = static_cast<uint32_t>(divide_up(given.columns, tile.columns));
  p.splits = choice.splits;
  p.split_depth = choice.split_depth;
  p.c_bytes = kit::dtype_bytes(given.c.dtype);
  p.bias_bytes = given.bias_dtype == 0 ? 0 : kit::dtype_bytes(given.bias_dtype);
  p.activation = given.activation;
  out.places = {given.c.place, given.a.place, given.b.place};
  if (given.bias_dtype != 0) out.places[3] = given.bias;
  if (choice.splits != 1) out.places[4] = given.scratch;
  out.groups = static_cast<uint32_t>(groups);
  if (tile.resident_groups != 0) {
    const uint32_t resident = std::max(context_.device().limits.compute_units, 1u) * tile.resident_groups;
    out.groups = std::min(out.groups, resident);
    out.maps = {map_of(1, given.a, *a, given.rows, given.depth, given.batches, !a->by_rows, tile.rows),
                map_of(2, given.b, *b, given.columns, given.depth, given.batches, b->by_rows, tile.columns)};
    out.map_count = 2;
  }
  out.group_size = tile.group_size;
  out.local_bytes = tile.local_bytes;
  const std::size_t layout = (a->by_rows ? 0 : 2) + (b->by_rows ? 1 : 0);
  if (!set_kernels(out, dtype, choice.tile, layout)) return std::nullopt;
  return out;
}

}  // namespace backplane::gpu_host
