// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm.hpp"

#include "ops/block.hpp"

namespace backplane::simt {

namespace {

// The same values as in device/gemm.h.
constexpr uint32_t kSubgroupRows = 8, kGemmOutputs = 16, kGemmMaxGroup = 256, kMaxRowSubgroups = 16;
// Minimum extent of a split of k. The extents of splits are multiples of kSplitStep, which is a
// multiple of the step of each kernel.
constexpr uint32_t kMinSplitDepth = 256, kSplitStep = 128;
// Maximum extent of rows, columns and k. Kernels have 32-bit indices.
constexpr int64_t kMaxExtent = int64_t{1} << 30;

constexpr uint64_t tiles_of(uint64_t extent, uint64_t tile) { return (extent + tile - 1) / tile; }

// Threads of a group of the kernels for few rows, if there is more than one row. Larger groups would leave registers
// unused.
constexpr uint32_t kFewRowsGroup = 128;
// Groups per compute unit that `chunks` tries to obtain by dividing k among the sub-groups of a group.
constexpr uint64_t kChunksGroups = 4;
// Bits that a lane of the kernels for few rows loads at once.
constexpr uint32_t kFewLoadBits = 128;

bool is_for_few_rows(GemmKernel kernel) { return kernel >= kGemmChunksOne; }

// The extents of a tile, and the numbers of sub-groups and tiles per group. `slices` is the number of sub-groups that
// divide k among them, and `splits` is the wanted number of splits.
struct GemmTiling {
  uint32_t rows, columns, subgroups, tiles_per_group;
  uint32_t slices = 1;
  uint64_t splits = 1;

  uint64_t tiles(const GemmParams& p) const {
    return tiles_of(p.rows, rows) * tiles_of(p.columns, columns) * p.batches;
  }
  static GemmTiling of(GemmKernel kernel, const Gemm& gemm, const Limits& limits) {
    const GemmParams& p = gemm.params;
    if (is_for_few_rows(kernel)) return of_few_rows(kernel, gemm, limits);
    const uint32_t width = limits.width, most = std::min(kGemmMaxGroup, limits.max_group_size) / width;
    const uint64_t busy = uint64_t{limits.compute_units} * 2;
    GemmTiling out{};
    out.subgroups = out.tiles_per_group = 1;
    if (kernel == kGemmDots) {
      out.rows = p.rows == 1 ? 1 : 4;
      out.columns = p.rows == 1 ? 8 : 4;
      out.subgroups = out.tiles_per_group = limits.is_cpu ? 1 : std::min(most, 4u);
    } else if (kernel == kGemmRows) {
      out.rows = p.rows == 1 ? 1 : kSubgroupRows;
      out.columns = kGemmOutputs / out.rows * width;
      const auto grown = [&] { return GemmTiling{out.rows, 2 * out.columns, 2 * out.subgroups, 1}; };
      while (2 * out.subgroups <= std::min(most, kSubgroupRows) && grown().tiles(p) >= busy) out = grown();
    } else {
      out.rows = kSubgroupRows;
      out.columns = 2 * width;
      const auto grown = [&] { return GemmTiling{2 * out.rows, out.columns, 2 * out.subgroups, 1}; };
      while (2 * out.subgroups <= std::min(most, kMaxRowSubgroups) && out.rows < p.rows &&
             (out.subgroups < 4 || grown().tiles(p) >= busy))
        out = grown();
    }
    out.splits = tiles_of(uint64_t{limits.compute_units} * (limits.is_cpu ? 2 : 4), out.tiles(p));
    return out;
  }

 private:
  // The tiles of device/few_rows.h.
  static GemmTiling of_few_rows(GemmKernel kernel, const Gemm& gemm, const Limits& limits) {
    const GemmParams& p = gemm.params;
    const uint32_t width = limits.width, elements = kFewLoadBits / gemm.weight_bits;
    const uint64_t units = limits.compute_units;
    GemmTiling out{};
    const bool has_packs = kernel == kGemmPacksOne || kernel == kGemmPacks;
    out.rows = has_packs ? few_pack_rows(p.rows) : few_chunk_rows(p.rows);
    out.tiles_per_group = 1;
    out.subgroups = std::min(out.rows == 1 ? kGemmMaxGroup : kFewRowsGroup, limits.max_group_size) / width;
    if (has_packs) {
      out.columns = FEW_PACK_LANES * elements;
      out.splits = std::max<uint64_t>(units / out.tiles(p), 1);
      return out;
    }
    const uint32_t subgroup_columns = width / FEW_LANES * few_columns(elements, out.rows);
    // The numbers of a for the chunks that a group loads in one round must fit into local memory.
    const uint32_t most = few_piece(elements, out.rows) / (FEW_LANES * few_steps(out.rows));
    const auto with_slices = [&](uint32_t slices) {
      GemmTiling next = out;
      next.slices = slices;
      next.columns = subgroup_columns * (out.subgroups / slices);
      return next;
    };
    const auto has_work = [&](uint32_t slices) { return uint64_t{slices} * FEW_LANES * elements <= p.depth; };
    uint32_t slices = 1;
    while (2 * slices <= most && out.subgroups % (2 * slices) == 0 && has_work(2 * slices) &&
           with_slices(slices).tiles(p) < kChunksGroups * units)
      slices *= 2;
    out = with_slices(slices);
    out.splits = std::max<uint64_t>(units * (out.rows == 1 ? 1 : 2) / out.tiles(p), 1);
    return out;
  }
};

}  // namespace

kit::Status Gemm::set_rows(const View& c, const View& a, const char* name) {
  const uint32_t rank = c.rank;
  const int64_t rows = rank < 2 ? 1 : c.shape[rank - 2], columns = c.shape[rank - 1], depth = a.shape[rank - 1];
  if (rows > kMaxExtent || columns > kMaxExtent || depth > kMaxExtent) {
    return kit::invalid_argument(name, ": an extent exceeds 2^30 elements; divide the matrices");
  }
  params.rows = static_cast<uint32_t>(rows);
  params.columns = static_cast<uint32_t>(columns);
  params.depth = static_cast<uint32_t>(depth);
  params.batches = 1;
  uint64_t batches = 1;
  params.batch_rank = rank < 2 ? 0 : rank - 2;
  for (uint32_t d = 0; d < params.batch_rank; ++d) {
    const int64_t extent = std::min<int64_t>(c.shape[d], kMaxExtent + 1);
    params.batch_shape[d] = static_cast<uint32_t>(extent);
    batches *= static_cast<uint64_t>(extent);
    if (batches > kMaxExtent) return kit::invalid_argument(name, ": the batch exceeds 2^30 matrices; divide the batch");
  }
  params.batches = static_cast<uint32_t>(batches);
  params.out_bytes = kit::dtype_bytes(c.dtype);
  const View* const views[] = {&c, &a};
  for (uint32_t k = 0; k < 2; ++k) {
    set(k, *views[k]);
    if (views[k]->is_immediate) continue;
    std::copy_n(views[k]->strides, params.batch_rank, params.batch_strides[k]);
    params.row_strides[k] = rank < 2 ? 0 : views[k]->strides[rank - 2];
    params.column_strides[k] = views[k]->strides[rank - 1];
  }
  return {};
}

void Gemm::set(uint32_t operand, const View& view) {
  places[operand] = view.place;
  if (!view.is_immediate) return;
  params.immediate |= 1u << operand;
  params.immediates[operand] = view.immediate;
}

void Gemm::set_bias(const View& view) {
  set(kGemmBias, view);
  params.bias_bytes = kit::dtype_bytes(view.dtype);
  params.bias_stride = view.is_immediate ? 0 : view.strides[0];
}

void Gemm::fold_batch_into_rows() {
  while (params.batch_rank != 0) {
    const uint32_t d = params.batch_rank - 1;
    const uint64_t extent = params.batch_shape[d];
    bool mergeable = params.batch_strides[2][d] == 0 && extent * params.rows <= kMaxExtent;
    for (uint32_t k = 0; k < 2; ++k) {
      mergeable &= params.batch_strides[k][d] == params.row_strides[k] * int64_t{params.rows};
    }
    if (params.rows == 1 && params.batch_strides[2][d] == 0) {
      for (uint32_t k = 0; k < 2; ++k) params.row_strides[k] = params.batch_strides[k][d];
      mergeable = true;
    }
    if (!mergeable && extent != 1) return;
    if (extent != 0) params.batches /= static_cast<uint32_t>(extent);
    params.rows *= static_cast<uint32_t>(extent);
    --params.batch_rank;
  }
}

void Gemm::transpose() {
  std::swap(params.rows, params.columns);
  std::swap(params.row_strides[0], params.column_strides[0]);
  std::swap(params.row_strides[1], params.column_strides[2]);
  std::swap(params.column_strides[1], params.row_strides[2]);
  std::swap(params.batch_strides[1], params.batch_strides[2]);
  std::swap(params.immediates[1], params.immediates[2]);
  std::swap(places[kGemmA], places[kGemmB]);
  params.immediate = (params.immediate & ~6u) | (params.immediate & 2u) << 1 | (params.immediate & 4u) >> 1;
}

bool has_few_rows(const Limits& limits) { return !limits.is_cpu && limits.width >= 32; }

bool Gemm::fits_chunks(const Limits& limits) const {
  const GemmParams& p = params;
  return has_few_rows(limits) && weight_bits != 0 && p.rows <= FEW_MAX_ROWS && p.row_strides[2] == 1 &&
         !is_immediate(kGemmA) && !is_immediate(kGemmB) && p.depth >= FEW_LANES * (kFewLoadBits / weight_bits);
}

GemmKernel Gemm::fastest_kernel(const Limits& limits) const {
  if (is_immediate(kGemmA) || is_immediate(kGemmB)) return kGemmTiles;
  if (has_few_rows(limits) && weight_bits != 0) {
    // If the first column (or row) of b begins at a multiple of kFewLoadBits, all others must do so too.
    const auto on_boundary = [&](int64_t stride) { return stride * weight_bits % kFewLoadBits == 0; };
    if (fits_chunks(limits) && (params.columns == 1 || on_boundary(params.column_strides[2]))) {
      return params.rows == 1 ? kGemmChunksOne : kGemmChunks;
    }
    if (params.rows <= FEW_MAX_ROWS && params.column_strides[2] == 1 && on_boundary(params.row_strides[2]) &&
        params.columns >= FEW_PACK_LANES * (kFewLoadBits / weight_bits)) {
      return params.rows == 1 ? kGemmPacksOne : kGemmPacks;
    }
  }
  if (params.rows > kSubgroupRows) return has_blocks(limits) && weight_bits != 0 ? kGemmLargeBlocks : kGemmTiles;
  const bool along_k = params.column_strides[1] == 1 && params.row_strides[2] == 1;
  if (along_k && params.depth >= limits.width * (params.rows == 1 ? 4 : 16)) return kGemmDots;
  return params.column_strides[2] == 1 ? kGemmRows : kGemmTiles;
}

kit::Status Gemm::enqueue(Launcher& launcher, const Program& program, GemmKernel kernel, const Call& call, void* whole,
                          uint32_t bytes, uint32_t operands) {
  if (kernel == kGemmLargeBlocks) return enqueue_blocks(launcher, program, call, whole, bytes, operands);
  const Limits& limits = launcher.limits();
  const GemmTiling tiling = GemmTiling::of(kernel, *this, limits);
  const uint64_t tiles = tiling.tiles(params);
  const uint64_t outputs = uint64_t{params.rows} * params.columns * params.batches;
  const uint64_t most = std::min<uint64_t>(params.depth / kMinSplitDepth, call.workspace_bytes / 4 / outputs);
  const uint64_t splits = std::clamp<uint64_t>(tiling.splits, 1, std::max<uint64_t>(most, 1));
  params.split_depth = static_cast<uint32_t>(tiles_of(tiles_of(params.depth, splits), kSplitStep)) * kSplitStep;
  params.splits = std::max(static_cast<uint32_t>(tiles_of(params.depth, std::max(params.split_depth, 1u))), 1u);
  params.slices = tiling.slices;
  return enqueue_splits(launcher, program, kernel, tiles * params.splits,
                        {tiling.tiles_per_group, tiling.subgroups * limits.width}, call, whole, bytes, operands);
}

kit::Status Gemm::enqueue_blocks(Launcher& launcher, const Program& program, const Call& call, void* whole,
                                 uint32_t bytes, uint32_t operands) {
  const BlockPlan plan =
      plan_blocks(launcher.limits(), {params.rows, params.columns, params.depth, params.batches}, call.workspace_bytes);
  params.splits = plan.splits;
  params.split_depth = plan.split_depth;
  return enqueue_splits(launcher, program, plan.is_large() ? kGemmLargeBlocks : kGemmSmallBlocks, plan.groups,
                        {1, plan.group_size()}, call, whole, bytes, operands);
}

kit::Status Gemm::enqueue_splits(Launcher& launcher, const Program& program, GemmKernel kernel, uint64_t tiles,
                                 const Group& group, const Call& call, void* whole, uint32_t bytes, uint32_t operands) {
  if (tiles > kMaxExtent) {
    return kit::invalid_argument(call.op->name, ": the output exceeds 2^30 tiles; divide the batch");
  }
  const Place c = places[kGemmC];
  if (params.splits != 1) places[kGemmC] = call.workspace;
  const std::span<const Place> given{places.data(), operands};
  kit::Status status = launcher.launch(
      {program.kernels[kernel], {groups_for(tiles, group.tiles), 1, 1}, group.threads, given, whole, bytes});
  if (!status.ok() || params.splits == 1) return status;
  places[kGemmC] = c;
  places[kGemmA] = call.workspace;
  return combine(launcher, program, whole, bytes, operands);
}

kit::Status Gemm::combine(Launcher& launcher, const Program& program, void* whole, uint32_t bytes, uint32_t operands) {
  const uint32_t group = stream_group(launcher.limits());
  const uint64_t outputs = uint64_t{params.rows} * params.columns * params.batches;
  return launcher.launch({program.kernels[kGemmCombine],
                          {groups_for(outputs, uint64_t{4} * group), 1, 1},
                          group,
                          {places.data(), operands},
                          whole,
                          bytes});
}

}  // namespace backplane::simt
