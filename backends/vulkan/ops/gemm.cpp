// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm.hpp"

#include <algorithm>
#include <bit>

#include "ops/gemm_split_k.hpp"
#include "shaders/sizes.h"

namespace backplane::vulkan {

namespace {

constexpr uint32_t kWayOfFewRows = 3, kModeSideBySide = 1;  // shaders/matmul.comp's MODE
// Pipelines of a plan. From kAlong on for 1, 2, 4 and 8 rows.
constexpr uint32_t kProduct = 0, kSumOfParts = 1, kFewRows = 2, kLargeTiles = 3, kAlong = 4;
constexpr uint32_t kAlongRows[] = {1, 2, 4, BACKPLANE_SUMS_M};
constexpr uint32_t kSideBySide = 2;                                   // by subgroups, which take few rows as well
constexpr int64_t kLaneColumns = BACKPLANE_SUMS_N * BACKPLANE_LANES;  // of the smallest subgroup
constexpr int64_t kSubgroupsOfGroup = BACKPLANE_LANE_GROUP / BACKPLANE_LANES;  // at most
constexpr int64_t kEnoughGroups = 256, kEnoughGroupsOfCpu = 8;

// As many workgroups, in two dimensions where one has no room for them.
Stream::Dispatch grid(VkPipeline pipeline, int64_t groups, std::span<const Access> accesses, double operations) {
  const int64_t lines = std::min<int64_t>(ceil_div(groups, kMostGroups), kMostGroups);
  const int64_t line = std::min<int64_t>(ceil_div(groups, lines), kMostGroups);  // kernels stride over what lies beyond
  return {pipeline,
          {static_cast<uint32_t>(line), static_cast<uint32_t>(lines), 1},
          accesses,
          static_cast<uint64_t>(std::min(operations, 0x1p62))};
}

// Whether all of the plan's outputs are one row.
bool is_single_row(const kit::PlanForm& plan) {
  constexpr uint32_t kOne = 1 << 2;  // rules::dim_class
  const kit::Operand& out = plan.operands[plan.input_count];
  for (uint32_t d = 0; d + 1 < out.rank; ++d) {
    if ((out.classes >> 4 * d & 15) != kOne) return false;
  }
  return true;
}

Constants constants_of(uint32_t packed, uint32_t operation, uint32_t out, const MatrixTiling& tiling) {
  const MatrixShape& shape = tiling.shape;
  return {packed, operation, out, 0, shape.m, shape.n, shape.k, tiling.lanes, tiling.subgroups_m, tiling.tile};
}

}  // namespace

Product::Product(uint32_t dtype, Way way, const PhysicalDevice& device, Columns columns)
    : dtype_(dtype),
      way_(way_of_dtype(way, dtype, device)),
      is_cpu_(device.is_cpu()),
      most_operations_(static_cast<double>(device.most_operations())),
      columns_(columns) {
  if (way_ != Way::kCooperative) return;
  matrices_ = device.matrices.tiling(dtype, BACKPLANE_MATRIX_TILE);
  large_matrices_ = device.matrices.tiling(dtype, BACKPLANE_MATRIX_LARGE_TILE);
}

uint64_t* Product::address_of_input(ProductParams& params, uint32_t input) const {
  if (input == 2) return &params.bias.address;
  return (input == 0) == (columns_.window == 0) ? &params.a.address
                                                : &params.b.address;  // convolutions read images as b
}

std::string Product::shader(const char* way) const {
  return shader_name(kit::text("matmul", columns_.quantized ? "_quantized" : "", way).c_str(), dtype_);
}

kit::Status Product::prepare(const kit::CheckedDesc& checked, kit::PlanNeeds&) const { return check_counts(checked); }

std::vector<Kernel> Product::kernels(const kit::PlanForm& plan, bool) const {
  const uint32_t first = packed(plan), last = operation(plan), out = plan.dtypes.second;
  const bool scaled = columns_.quantized && is_byte();  // at the end of sums
  const Kernel sum_of_parts{scaled ? shader("_split_k") : shader_name("matmul_split_k", dtype_), {columns_.window, last, out}};
  const Kernel few_rows{shader(""), {first, last, out, kWayOfFewRows}};
  if (way_ == Way::kSubgroup) {
    std::vector<Kernel> kernels{{shader("_subgroup"), {first, last, out}}, sum_of_parts};
    if (columns_.window == 0 && !is_byte() && !columns_.quantized)
      kernels.push_back({shader("_subgroup"), {first, last, out, kModeSideBySide}});
    return kernels;
  }
  Kernel product{shader(way_ == Way::kDot ? "_dot" : ""), {first, last, out, static_cast<uint32_t>(way_)}}, large{};
  if (way_ == Way::kCooperative) product = {shader("_cooperative"), constants_of(first, last, out, *matrices_)};
  if (large_matrices_) large = {shader("_cooperative"), constants_of(first, last, out, *large_matrices_)};
  const bool single = columns_.window == 0 && is_single_row(plan);
  if (single) product = large = {};
  std::vector<Kernel> kernels{product, sum_of_parts, few_rows, large};
  for (const uint32_t rows : kAlongRows) {
    if (goes_along())
      kernels.push_back((rows == 1) == single ? Kernel{shader("_k_major"), {first, last, out, 0, rows}} : Kernel{});
  }
  return kernels;
}

kit::Status Product::enqueue(Stream& stream, const Program& program, const Call& call) const {
  if (call.out().elements() == 0) return {};
  if (kit::Status status = check_counts(call); !status.ok()) return status;
  ProductParams params{};
  params.segments = params.matrices = 1;
  describe(call, params);
  params.all_rows = params.rows;
  // Sums of nothing: operands without elements have no address either.
  if (call.in(0).elements() == 0 || call.in(1).elements() == 0) params.depth = params.segments = 0;
  params.to.address = address_of(call.out());
  for (uint32_t i = 0; i < call.inputs.size(); ++i) {
    uint64_t* const address = address_of_input(params, i);
    if (address != nullptr && call.in(i).dtype != 0) *address = address_of(call.in(i));
  }

  const int64_t wanted = enough_groups() / groups_of(program, params);
  const int64_t parts =
      divide_depth(params, std::clamp<int64_t>(wanted, 1, std::max<int64_t>(kRoomForSums / params.sums(), 1)));
  const Extent extent = extent_in_time(params, parts, most_operations_);
  kit::Status status;
  for (int64_t matrix = 0; matrix < params.matrices; matrix += extent.matrices) {
    for (int64_t row = 0; row < params.rows; row += extent.rows) {
      for (int64_t column = 0; status.ok() && column < params.columns; column += extent.columns)
        status = enqueue_part(stream, program, call, part_of(params, extent, matrix, row, column), parts);
    }
  }
  return status;
}

// On a CPU neighbours gain nothing by lying side by side.
bool Product::goes_along() const { return columns_.window == 0 && way_ != Way::kSubgroup && way_ != Way::kDirect; }
bool Product::runs_along(const ProductParams& params) const {
  return params.b_byte != 0 || params.columns == 1 || std::abs(params.b_depth) < std::abs(params.b_column);
}

bool Product::lies_side_by_side(const ProductParams& params) const {
  if (columns_.window != 0 || is_byte() || columns_.quantized) return false;
  const auto bytes = static_cast<uint64_t>(dtype_ == BP_F32 ? sizeof(float) : sizeof(uint16_t));
  uint64_t all = params.b.address | static_cast<uint64_t>(params.b_depth);
  for (uint32_t d = 0; d < params.matrix_rank; ++d) all |= static_cast<uint64_t>(params.b.strides[d]);
  return params.b_column == static_cast<int64_t>(bytes) && params.columns % BACKPLANE_SUMS_N == 0 &&
         all % (bytes * BACKPLANE_SUMS_N) == 0;
}

int64_t Product::enough_groups() const { return is_cpu_ ? kEnoughGroupsOfCpu : kEnoughGroups; }

Product::Tiling Product::tiling_of(const Program& program, const ProductParams& params) const {
  if (way_ == Way::kSubgroup)
    return {lies_side_by_side(params) ? kSideBySide : kProduct, BACKPLANE_SUMS_M, kLaneColumns};
  if (params.rows <= BACKPLANE_SUMS_M && goes_along() && runs_along(params)) {
    // The rows' number, made a power of two. One row goes as two, but where the plan has nothing else.
    const bool single = program.pipelines[kAlong] != VK_NULL_HANDLE;
    const uint32_t index = single ? 0 : static_cast<uint32_t>(std::max<int>(std::bit_width(params.rows - 1), 1));
    return {kAlong + index, kAlongRows[index], BACKPLANE_ALONG_TILE_N};
  }
  if (params.rows <= BACKPLANE_SUMS_M) return {kFewRows, BACKPLANE_SUMS_M, BACKPLANE_FEW_TILE_N};
  if (way_ != Way::kCooperative) return {kProduct, BACKPLANE_TILE_M, BACKPLANE_TILE_N};
  constexpr int64_t kLarge = BACKPLANE_MATRIX_LARGE_TILE;
  const int64_t large = ceil_div(params.rows, kLarge) * ceil_div(params.columns, kLarge) * params.matrices;
  if (large_matrices_ && std::min(params.rows, params.columns) > BACKPLANE_MATRIX_TILE && large >= enough_groups())
    return {kLargeTiles, kLarge, kLarge};
  return {kProduct, BACKPLANE_MATRIX_TILE, BACKPLANE_MATRIX_TILE};
}

int64_t Product::groups_of(const Program& program, const ProductParams& params) const {
  const Tiling tiling = tiling_of(program, params);
  const int64_t tiles = ceil_div(params.rows, tiling.rows) * ceil_div(params.columns, tiling.columns);
  return ceil_div(tiles * params.matrices, way_ == Way::kSubgroup ? kSubgroupsOfGroup : 1);
}

kit::Status Product::enqueue_part(Stream& stream, const Program& program, const Call& call, ProductParams params,
                                  int64_t parts) const {
  VkPipeline const pipeline = program.pipelines[tiling_of(program, params).pipeline];
  const int64_t sums = params.sums();
  const double operations = operations_of_sum(params) * static_cast<double>(sums) / static_cast<double>(parts);
  const auto in_time = static_cast<int64_t>(std::min<double>(most_operations_ / std::max(operations, 1.0), kMostSteps));
  const int64_t slots = std::min({parts, std::max<int64_t>(kRoomForSums / sums, 1), std::max<int64_t>(in_time, 1)});
  const auto fill = [&](ProductParams& block, uint64_t address) {
    block = params;
    for (uint32_t i = 0; i < call.inputs.size(); ++i) {
      uint64_t* const of_input = address_of_input(block, i);
      if (of_input == nullptr || !call.in(i).is_immediate) continue;
      block.immediates[i] = call.in(i).immediate;
      *of_input = address + offsetof(ProductParams, immediates) + i * sizeof(uint64_t);
    }
  };
  if (parts == 1) {
    params.parts = 1;
    return stream.dispatch<ProductParams>(grid(pipeline, groups_of(program, params), accesses_of(call), operations),
                                          fill);
  }
  params.partial = stream.scratch();
  const Access scratch{params.partial, params.partial + static_cast<uint64_t>(sums * slots) * sizeof(float), true};
  const uint32_t flags = params.flags;
  Accesses reads_to_scratch{scratch};
  for (const View& view : call.inputs) add_access(reads_to_scratch, view, false);
  kit::Status status;
  for (int64_t first = 0; status.ok() && first < parts; first += slots) {
    params.first_part = static_cast<uint32_t>(first);
    params.parts = static_cast<uint32_t>(std::min(slots, parts - first));
    params.flags = flags | ProductParams::kPartial | (first == 0 ? 0 : ProductParams::kContinue);
    status = stream.dispatch<ProductParams>(
        grid(pipeline, groups_of(program, params) * params.parts, reads_to_scratch, operations * params.parts), fill);
  }
  if (!status.ok()) return status;
  params.parts = static_cast<uint32_t>(slots), params.flags = flags;
  Accesses accesses = accesses_of(call);
  accesses.add({scratch.begin, scratch.end, false});
  return stream.dispatch<ProductParams>(
      {program.pipelines[kSumOfParts], {groups_for(static_cast<uint64_t>(sums)), 1, 1}, accesses}, fill);
}

}  // namespace backplane::vulkan
