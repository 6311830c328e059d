// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm.hpp"

#include <algorithm>
#include <bit>

#include "ops/gemm_split_k.hpp"

namespace backplane::vulkan {

namespace {

constexpr int64_t kMinSubgroupTileN = BACKPLANE_THREAD_TILE_N * BACKPLANE_MIN_SUBGROUP;
constexpr int64_t kMaxSubgroupsPerGroup = BACKPLANE_SUBGROUP_WORKGROUP / BACKPLANE_MIN_SUBGROUP;
constexpr int64_t kOccupancyOfGpu = 256, kOccupancyOfCpu = 8;  // minimum number of workgroups that keep a device busy
// Minimum number of workgroups of matmul_cooperative_wide.comp that keep a GPU busy. Each workgroup
// needs the registers of a whole multiprocessor.
constexpr int64_t kOccupancyOfWideMatrices = 120;

// Returns a dispatch of `groups` workgroups. The dispatch has two dimensions if `groups` exceeds the limit of one
// dimension. The dispatch has fewer workgroups if `groups` exceeds the limit of two dimensions, because kernels loop
// over the remaining work.
Stream::Dispatch grid(VkPipeline pipeline, int64_t groups, std::span<const Access> accesses, double operations) {
  const int64_t lines = std::min<int64_t>(ceil_div(groups, kMaxGroups), kMaxGroups);
  const int64_t line = std::min<int64_t>(ceil_div(groups, lines), kMaxGroups);
  return {pipeline,
          {static_cast<uint32_t>(line), static_cast<uint32_t>(lines), 1},
          accesses,
          static_cast<uint64_t>(std::min(operations, 0x1p62))};
}

// Returns whether the output has a single row in every execution of the plan.
bool has_single_row(const kit::PlanForm& plan) {
  constexpr uint32_t kOne = 1 << 2;  // the class of extent 1 (rules::dim_class)
  const kit::Operand& out = plan.operands[plan.input_count];
  for (uint32_t d = 0; d + 1 < out.rank; ++d) {
    if ((out.classes >> 4 * d & 15) != kOne) return false;
  }
  return true;
}

Constants with_matrices(Constants constants, const MatrixTiling& tiling) {
  constants.set(kIdMatrixM, tiling.shape.m);
  constants.set(kIdMatrixN, tiling.shape.n);
  constants.set(kIdMatrixK, tiling.shape.k);
  constants.set(kIdMatrixSubgroupSize, tiling.subgroup_size);
  constants.set(kIdSubgroupsM, tiling.subgroups_m);
  constants.set(kIdGroupTile, tiling.rows);
  constants.set(kIdGroupTileN, tiling.columns);
  return constants;
}

}  // namespace

Gemm::Gemm(uint32_t dtype, GemmAlgorithm algorithm, const PhysicalDevice& device, BSource source)
    : dtype_(dtype),
      algorithm_(algorithm_for_dtype(algorithm, dtype, device)),
      is_cpu_(device.is_cpu()),
      max_operations_(static_cast<double>(device.max_operations())),
      source_(source) {
  if (algorithm_ == GemmAlgorithm::kCooperative) {
    matrices_ = device.matrices.tiling(dtype, BACKPLANE_MATRIX_TILE, BACKPLANE_MATRIX_TILE);
    large_matrices_ = device.matrices.tiling(dtype, BACKPLANE_MATRIX_LARGE_TILE, BACKPLANE_MATRIX_LARGE_TILE);
  }
  if (algorithm != GemmAlgorithm::kWide || source.quantized) return;
  if (algorithm_ == GemmAlgorithm::kCooperative && source.window == 0)
    wide_matrices_ = device.matrices.wide_tiling(dtype);
  if (wide_matrices_) {
    wide_ = {kWideTiles, wide_matrices_->rows, wide_matrices_->columns};
  } else if (algorithm_ == GemmAlgorithm::kShared && !is_byte()) {
    wide_ = {kWideTiles, BACKPLANE_WIDE_TILE_M, BACKPLANE_WIDE_TILE_N};
  }
}

uint64_t* Gemm::address_of_input(GemmParams& params, uint32_t input) const {
  if (input == 2) return &params.bias.address;
  // Input 0 of a convolution is the image, which is operand `b` of the GEMM.
  return (input == 0) == (source_.window == 0) ? &params.a.address : &params.b.address;
}

std::string Gemm::shader(const char* variant) const {
  return shader_name(kit::text("matmul", source_.quantized ? "_quantized" : "", variant).c_str(), dtype_);
}

kit::Status Gemm::prepare(const kit::CheckedDesc& checked, kit::PlanNeeds&) const {
  return check_index_limits(checked);
}

Kernels Gemm::kernels(const kit::PlanForm& plan, bool) const {
  const Constants common{
      {kIdBSource, b_source(plan)}, {kIdEpilogue, epilogue(plan)}, {kIdOutDtype, plan.dtypes.second}};
  const auto with = [&](ConstantId id, uint32_t value) {
    Constants constants = common;
    constants.set(id, value);
    return constants;
  };
  const bool scaled = source_.quantized && is_byte();  // integer sums are scaled at the end
  Kernels out;
  out[kSplitKReduce] = {scaled ? shader("_split_k") : shader_name("matmul_split_k", dtype_),
                        with(kIdBSource, source_.window)};
  if (algorithm_ == GemmAlgorithm::kSubgroup) {
    out[kTiled] = {shader("_subgroup"), common};
    if (source_.window == 0 && !is_byte() && !source_.quantized)
      out[kSubgroupVec4] = {shader("_subgroup"), with(kIdMode, BACKPLANE_MODE_VEC4_COLUMNS)};
    return out;
  }
  out[kSkinny] = {shader(""), with(kIdAlgorithm, BACKPLANE_ALGORITHM_SKINNY)};
  const bool single_row = source_.window == 0 && has_single_row(plan);
  if (!single_row) {
    if (algorithm_ == GemmAlgorithm::kCooperative) {
      out[kTiled] = {shader("_cooperative"), with_matrices(common, *matrices_)};
    } else {
      out[kTiled] = {shader(algorithm_ == GemmAlgorithm::kDot ? "_dot" : ""),
                     with(kIdAlgorithm, static_cast<uint32_t>(algorithm_))};
    }
    if (wide_matrices_) {
      out[kWideTiles] = {shader("_cooperative_wide"), with_matrices(common, *wide_matrices_)};
    } else if (wide_) {
      out[kWideTiles] = {shader("_wide"), common};
    }
    if (large_matrices_) out[kLargeTiles] = {shader("_cooperative"), with_matrices(common, *large_matrices_)};
  }
  for (uint32_t i = 0; has_k_major_kernel() && i < std::size(kKMajorRows); ++i) {
    if ((kKMajorRows[i] == 1) == single_row) out[kKMajor + i] = {shader("_k_major"), with(kIdGemmRows, kKMajorRows[i])};
  }
  return out;
}

kit::Status Gemm::enqueue(Stream& stream, const Program& program, const Call& call) const {
  if (call.out().elements() == 0) return {};
  if (kit::Status status = check_index_limits(call); !status.ok()) return status;
  GemmParams params{};
  params.segments = params.matrices = 1;
  describe(call, params);
  params.all_rows = params.rows;
  // If an input is empty, sums have no terms. Kernels must then not read the inputs, because the
  // address of an empty input may be null.
  if (call.in(0).elements() == 0 || call.in(1).elements() == 0) params.depth = params.segments = 0;
  params.c.address = address_of(call.out());
  for (uint32_t i = 0; i < call.inputs.size(); ++i) {
    uint64_t* const address = address_of_input(params, i);
    if (address != nullptr && call.in(i).dtype != 0) *address = address_of(call.in(i));
  }

  const int64_t wanted =
      tiling_of(program, params).pipeline == kWideTiles ? 1 : occupancy_target() / workgroups_of(program, params);
  const int64_t splits =
      choose_split_k(params, std::clamp<int64_t>(wanted, 1, std::max<int64_t>(kMaxPartialSums / params.outputs(), 1)));
  const DispatchExtent extent = dispatch_extent(params, splits, max_operations_);
  kit::Status status;
  for (int64_t matrix = 0; matrix < params.matrices; matrix += extent.matrices) {
    for (int64_t row = 0; row < params.rows; row += extent.rows) {
      for (int64_t column = 0; status.ok() && column < params.columns; column += extent.columns)
        status = enqueue_slice(stream, program, call, slice_of(params, extent, matrix, row, column), splits);
    }
  }
  return status;
}

// The K-major kernel coalesces reads, which a CPU does not need. The algorithms for CPUs (kSubgroup
// and kDirect) therefore do not use this kernel.
bool Gemm::has_k_major_kernel() const {
  return source_.window == 0 && algorithm_ != GemmAlgorithm::kSubgroup && algorithm_ != GemmAlgorithm::kDirect;
}
bool Gemm::b_is_k_major(const GemmParams& params) const {
  return params.b_byte != 0 || params.columns == 1 || std::abs(params.b_depth) < std::abs(params.b_column);
}

bool Gemm::b_is_vec4_columns(const GemmParams& params) const {
  if (source_.window != 0 || is_byte() || source_.quantized) return false;
  const auto bytes = static_cast<uint64_t>(dtype_ == BP_F32 ? sizeof(float) : sizeof(uint16_t));
  uint64_t addresses = params.b.address | static_cast<uint64_t>(params.b_depth);
  for (uint32_t d = 0; d < params.matrix_rank; ++d) addresses |= static_cast<uint64_t>(params.b.strides[d]);
  return params.b_column == static_cast<int64_t>(bytes) && params.columns % BACKPLANE_THREAD_TILE_N == 0 &&
         addresses % (bytes * BACKPLANE_THREAD_TILE_N) == 0;
}

bool Gemm::fills_wide_tiles(const GemmParams& params) const {
  if (is_cpu_) return true;  // tests on a CPU run the kernels with wide tiles for all sizes
  const int64_t tiles = ceil_div(params.rows, wide_->rows) * ceil_div(params.columns, wide_->columns) * params.matrices;
  return 2 * params.rows > wide_->rows && 2 * params.columns > wide_->columns &&
         tiles >= (wide_matrices_ ? kOccupancyOfWideMatrices : occupancy_target());
}

int64_t Gemm::occupancy_target() const { return is_cpu_ ? kOccupancyOfCpu : kOccupancyOfGpu; }

Gemm::Tiling Gemm::tiling_of(const Program& program, const GemmParams& params) const {
  if (algorithm_ == GemmAlgorithm::kSubgroup)
    return {b_is_vec4_columns(params) ? kSubgroupVec4 : kTiled, BACKPLANE_THREAD_TILE_M, kMinSubgroupTileN};
  if (params.rows <= BACKPLANE_THREAD_TILE_M && has_k_major_kernel() && b_is_k_major(params)) {
    // Chooses the kernel for M rounded up to a power of two. The kernel for one row is compiled
    // only if every execution of the plan has a single row. Otherwise, M = 1 uses the kernel for
    // two rows.
    const bool single_row = program.pipelines[kKMajor] != VK_NULL_HANDLE;
    const uint32_t index = single_row ? 0 : static_cast<uint32_t>(std::max<int>(std::bit_width(params.rows - 1), 1));
    return {kKMajor + index, kKMajorRows[index], BACKPLANE_K_MAJOR_TILE_N};
  }
  if (params.rows <= BACKPLANE_THREAD_TILE_M) return {kSkinny, BACKPLANE_THREAD_TILE_M, BACKPLANE_SKINNY_TILE_N};
  if (wide_ && fills_wide_tiles(params)) return *wide_;
  if (algorithm_ != GemmAlgorithm::kCooperative) return {kTiled, BACKPLANE_GROUP_TILE_M, BACKPLANE_GROUP_TILE_N};
  constexpr int64_t kLarge = BACKPLANE_MATRIX_LARGE_TILE;
  const int64_t large_tiles = ceil_div(params.rows, kLarge) * ceil_div(params.columns, kLarge) * params.matrices;
  if (large_matrices_ && std::min(params.rows, params.columns) > BACKPLANE_MATRIX_TILE &&
      large_tiles >= occupancy_target())
    return {kLargeTiles, kLarge, kLarge};
  return {kTiled, BACKPLANE_MATRIX_TILE, BACKPLANE_MATRIX_TILE};
}

int64_t Gemm::workgroups_of(const Program& program, const GemmParams& params) const {
  const Tiling tiling = tiling_of(program, params);
  const int64_t tiles = ceil_div(params.rows, tiling.rows) * ceil_div(params.columns, tiling.columns);
  return ceil_div(tiles * params.matrices, algorithm_ == GemmAlgorithm::kSubgroup ? kMaxSubgroupsPerGroup : 1);
}

kit::Status Gemm::enqueue_slice(Stream& stream, const Program& program, const Call& call, GemmParams params,
                                int64_t splits) const {
  VkPipeline const pipeline = program.pipelines[tiling_of(program, params).pipeline];
  const int64_t outputs = params.outputs();
  // Number of operations per split.
  const double operations = operations_per_output(params) * static_cast<double>(outputs) / static_cast<double>(splits);
  const auto in_time = static_cast<int64_t>(std::min<double>(max_operations_ / std::max(operations, 1.0), kMaxSteps));
  // Maximum number of splits that one dispatch computes.
  const int64_t slots =
      std::min({splits, std::max<int64_t>(kMaxPartialSums / outputs, 1), std::max<int64_t>(in_time, 1)});
  const auto fill = [&](GemmParams& block, uint64_t address) {
    block = params;
    for (uint32_t i = 0; i < call.inputs.size(); ++i) {
      uint64_t* const of_input = address_of_input(block, i);
      if (of_input == nullptr || !call.in(i).is_immediate) continue;
      block.immediates[i] = call.in(i).immediate;
      *of_input = address + offsetof(GemmParams, immediates) + i * sizeof(uint64_t);
    }
  };
  if (splits == 1) {
    params.splits = 1;
    return stream.dispatch<GemmParams>(grid(pipeline, workgroups_of(program, params), accesses_of(call), operations),
                                       fill);
  }
  params.partials = stream.scratch();
  const Access scratch{params.partials, params.partials + static_cast<uint64_t>(outputs * slots) * sizeof(float), true};
  const uint32_t flags = params.flags;
  Accesses reads_to_scratch{scratch};
  for (const View& view : call.inputs) add_access(reads_to_scratch, view, false);
  kit::Status status;
  for (int64_t first = 0; status.ok() && first < splits; first += slots) {
    params.first_split = static_cast<uint32_t>(first);
    params.splits = static_cast<uint32_t>(std::min(slots, splits - first));
    params.flags = flags | GemmParams::kPartial | (first == 0 ? 0 : GemmParams::kAccumulate);
    status = stream.dispatch<GemmParams>(
        grid(pipeline, workgroups_of(program, params) * params.splits, reads_to_scratch, operations * params.splits),
        fill);
  }
  if (!status.ok()) return status;
  params.splits = static_cast<uint32_t>(slots), params.flags = flags;
  Accesses accesses = accesses_of(call);
  accesses.add({scratch.begin, scratch.end, false});
  return stream.dispatch<GemmParams>(
      {program.pipelines[kSplitKReduce], {groups_for(static_cast<uint64_t>(outputs)), 1, 1}, accesses}, fill);
}

}  // namespace backplane::vulkan
