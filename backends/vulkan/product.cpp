// SPDX-License-Identifier: Apache-2.0
#include "product.hpp"

#include <algorithm>
#include <cstdlib>

#include "shaders/sizes.h"

namespace backplane::vulkan {

namespace {

constexpr uint32_t kWayOfFewRows = 3, kModeSideBySide = 1;  // shaders/product.comp's MODE
constexpr std::pair<std::string_view, Way> kWays[] = {{"direct", Way::kDirect},
                                                      {"shared", Way::kShared},
                                                      {"subgroup", Way::kSubgroup},
                                                      {"cooperative", Way::kCooperative},
                                                      {"dot", Way::kDot}};
constexpr uint32_t kProduct = 0, kSumOfParts = 1, kFewRows = 2, kLargeTiles = 3;  // pipelines of a plan
constexpr uint32_t kSideBySide = 2;                                   // by subgroups, which take few rows as well
constexpr int64_t kLaneColumns = BACKPLANE_SUMS_N * BACKPLANE_LANES;  // of the smallest subgroup
constexpr int64_t kSubgroupsOfGroup = BACKPLANE_LANE_GROUP / BACKPLANE_LANES;  // at most
constexpr int64_t kMostDepth = kMostSteps;                                     // products that a thread adds up
constexpr int64_t kLeastDepth = 256;  // of a part that is made to busy more of the device
constexpr int64_t kPartAlign = 64;    // so that parts start where operands are aligned as they are
constexpr int64_t kEnoughGroups = 256, kEnoughGroupsOfCpu = 8;
// Operations of a dispatch where rows can be divided further: a driver takes one of some seconds for hung (Stream::kMostOperations).
constexpr double kMostOperations = Stream::kMostOperations, kMostOperationsOfCpu = int64_t{1} << 32;
constexpr int64_t kRoom = static_cast<int64_t>(Stream::kScratchBytes / sizeof(float));  // sums of parts

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t sums_of(const ProductParams& params) { return int64_t{params.rows} * params.columns * params.matrices; }

double operations_of_row(const ProductParams& params) { return 2.0 * params.columns * params.depth * params.segments; }

// Divides each sum into about `wanted` parts, and more where a thread would run too long; -> how many.
int64_t divide(ProductParams& params, int64_t wanted) {
  const int64_t all = int64_t{params.depth} * params.segments;
  int64_t depth = params.depth, segments = params.segments;
  if (all != 0) {
    const int64_t each = std::max(ceil_div(all, wanted), kLeastDepth);
    depth = std::min(depth, kMostDepth);
    if (segments == 1) depth = std::min(depth, ceil_div(each, kPartAlign) * kPartAlign);
    segments = std::min({segments, std::max<int64_t>(each / depth, 1), std::max<int64_t>(kMostDepth / (depth + 4), 1)});
  }
  params.depth_part = static_cast<uint32_t>(depth);
  params.segment_part = static_cast<uint32_t>(segments);
  params.depth_parts = all == 0 ? 1 : static_cast<uint32_t>(ceil_div(params.depth, depth));
  return all == 0 ? 1 : params.depth_parts * ceil_div(params.segments, segments);
}

// As many workgroups, in two dimensions where one has no room for them.
Stream::Dispatch grid(VkPipeline pipeline, int64_t groups, std::span<const Access> accesses, double operations) {
  const int64_t lines = std::min<int64_t>(ceil_div(groups, kMostGroups), kMostGroups);
  const int64_t line = std::min<int64_t>(ceil_div(groups, lines), kMostGroups);  // kernels stride over what lies beyond
  return {pipeline,
          {static_cast<uint32_t>(line), static_cast<uint32_t>(lines), 1},
          accesses,
          static_cast<uint64_t>(std::min(operations, kMostOperations))};
}

uint64_t address_of(const Matrices& of, const ProductParams& params, int64_t index) {
  uint64_t at = of.address;
  for (uint32_t d = params.matrix_rank; d-- > 0; index /= params.matrix_shape[d])
    at += static_cast<uint64_t>(of.strides[d] * (index % params.matrix_shape[d]));
  return at;
}

// Rows first, first + 1, ... of one matrix.
ProductParams block_of(const ProductParams& params, int64_t matrix, int64_t first, int64_t rows) {
  ProductParams block = params;
  const auto moved = [&](const Matrices& of, int64_t row) {
    return address_of(of, params, matrix) + static_cast<uint64_t>(row * first);
  };
  block.to.address = moved(params.to, params.out_row);
  block.a.address = moved(params.a, params.a_row);
  block.b.address = moved(params.b, 0);
  block.bias.address = moved(params.bias, params.bias_row);
  block.first_matrix = static_cast<uint32_t>(matrix);
  block.matrices = 1, block.matrix_rank = 0;
  block.rows = static_cast<uint32_t>(rows);
  return block;
}

// Kernels count matrices, rows, columns and terms in 32 bits.
constexpr int64_t kMostCount = int64_t{1} << 31;
kit::Status beyond(const Plan& plan) {
  return kit::unsupported(
      plan.base.op->name,
      ": 2^31 matrices, rows, columns or terms of a sum are beyond this plugin; divide the operands");
}
bool can_count(const kit::Call& call, bool window) {
  constexpr int64_t kMost = kMostCount;
  const auto fits = [](const kit::View& view) {
    return std::all_of(view.shape, view.shape + view.rank, [](int64_t extent) { return extent < kMost; });
  };
  if (!fits(call.out()) || !std::all_of(call.inputs.begin(), call.inputs.end(), fits)) return false;
  const kit::View& out = call.out();
  const int64_t elements = out.elements();
  // Of a window: places, or terms of a sum; of a gradient of weights, columns.
  const int64_t kept = call.op->id == BP_OP_CONV_BWD_WEIGHT ? out.shape[0] : out.shape[1];
  if (window)
    return elements / kept < kMost && call.in(1).elements() / std::max<int64_t>(call.in(1).shape[1], 1) < kMost;
  return out.rank < 2 || elements / (out.shape[out.rank - 2] * out.shape[out.rank - 1]) < kMost;
}

bool takes_matrices(const PhysicalDevice& device) {
  return std::ranges::any_of(device.matrices.shapes, [&](const MatrixShape& each) {
    return device.matrices.tiling(each.dtype, BACKPLANE_MATRIX_TILE).has_value();
  });
}

bool is_byte(uint32_t dtype) { return dtype == BP_I8 || dtype == BP_U8; }

// A CPU's shared memory is memory like any other: passing tiles through it only adds work. It has no matrix hardware to gain by.
Way way_of_cpu(const PhysicalDevice& device) { return takes_lanes(device) ? Way::kSubgroup : Way::kDirect; }

// What is left for `dtype`, where `way` has nothing for it.
Way way_of_dtype(Way way, uint32_t dtype, const PhysicalDevice& device) {
  if (way == Way::kCooperative && !device.matrices.tiling(dtype, BACKPLANE_MATRIX_TILE))
    way = device.fast_dots && is_byte(dtype) ? Way::kDot : Way::kShared;
  return way == Way::kDot && !is_byte(dtype) ? Way::kShared : way;
}

Constants constants_of(uint32_t window, uint32_t activation, uint32_t out, const MatrixTiling& tiling) {
  const MatrixShape& shape = tiling.shape;
  return {window, activation, out, 0, shape.m, shape.n, shape.k, tiling.lanes, tiling.subgroups_m, tiling.tile};
}

}  // namespace

bool takes_lanes(const PhysicalDevice& device) {
  return (device.is_cpu() || device.full_subgroups) && device.lanes >= BACKPLANE_LANES &&
         BACKPLANE_LANE_GROUP % device.lanes == 0;
}

kit::Result<Way> way_of(const PhysicalDevice& device) {
  const char* setting = std::getenv("BACKPLANE_VULKAN_MATMUL");
  if (setting == nullptr || *setting == '\0') return device.is_cpu() ? way_of_cpu(device) : Way::kCooperative;
  const auto* found = std::ranges::find(kWays, std::string_view(setting), &std::pair<std::string_view, Way>::first);
  if (found == std::end(kWays)) {
    return kit::unsupported("BACKPLANE_VULKAN_MATMUL is ", setting,
                            "; it may be direct, shared, subgroup, cooperative or dot, or unset");
  }
  const Way way = found->second;
  if (way == Way::kCooperative && !takes_matrices(device)) {
    return kit::unsupported(
        "BACKPLANE_VULKAN_MATMUL is cooperative, and ", device.properties.deviceName,
        " lists no matrices of f16, bf16 or i8 for subgroups (VK_KHR_cooperative_matrix); unset it");
  }
  if (way == Way::kDot && !device.dots) {
    return kit::unsupported("BACKPLANE_VULKAN_MATMUL is dot, and ", device.properties.deviceName,
                            " has no VK_KHR_shader_integer_dot_product; unset it");
  }
  if (way == Way::kSubgroup && !takes_lanes(device)) {
    return kit::unsupported("BACKPLANE_VULKAN_MATMUL is subgroup, and ", device.properties.deviceName,
                            " has no subgroups of 8, 16 or 32 lanes with ballots; unset it");
  }
  return way;
}

Strides::Strides(const kit::View& view) {
  for (uint32_t i = 0; i < view.rank && !is_immediate(view); ++i) bytes[i] = view.strides[i] * element_bytes(view);
}

Product::Product(uint32_t dtype, Way way, const PhysicalDevice& device, uint32_t window)
    : dtype_(dtype), way_(way_of_dtype(way, dtype, device)), is_cpu_(device.is_cpu()), window_(window) {
  if (way_ != Way::kCooperative) return;
  matrices_ = device.matrices.tiling(dtype, BACKPLANE_MATRIX_TILE);
  large_matrices_ = device.matrices.tiling(dtype, BACKPLANE_MATRIX_LARGE_TILE);
}

const char* Product::family(bool few) const {
  if (few) return "product";
  return way_ == Way::kSubgroup ? "product_subgroup" : way_ == Way::kDot ? "product_dot" : "product";
}

uint64_t* Product::address_of_input(ProductParams& params, uint32_t input) const {
  if (input == 2) return &params.bias.address;
  return input == a_input() ? &params.a.address : &params.b.address;
}

std::vector<Kernel> Product::kernels(const kit::Plan& plan, bool) const {
  const uint32_t last = activation(plan), out = plan.dtypes.second, first = first_constant(plan);
  const Kernel sum_of_parts{shader_name("product_sum", dtype_), {window_, last, out}};
  const Kernel few_rows{shader_name(family(true), dtype_), {first, last, out, kWayOfFewRows}};
  if (way_ == Way::kSubgroup) {
    const std::string shader = shader_name(family(false), dtype_);
    std::vector<Kernel> kernels{{shader, {first, last, out}}, sum_of_parts};
    if (window_ == 0 && !is_byte(dtype_) && reads_elements())
      kernels.push_back({shader, {window_, last, out, kModeSideBySide}});
    return kernels;
  }
  if (way_ != Way::kCooperative)
    return {
        {shader_name(family(false), dtype_), {first, last, out, static_cast<uint32_t>(way_)}}, sum_of_parts, few_rows};
  const std::string shader = shader_name("product_cooperative", dtype_);
  std::vector<Kernel> kernels{{shader, constants_of(window_, last, out, *matrices_)}, sum_of_parts, few_rows};
  if (large_matrices_) kernels.push_back({shader, constants_of(window_, last, out, *large_matrices_)});
  return kernels;
}

kit::Status Product::enqueue(Stream& stream, const Plan& plan, const kit::Call& call) const {
  if (call.out().elements() == 0) return {};
  if (!can_count(call, window_ != 0)) return beyond(plan);
  ProductParams params{};
  params.segments = params.matrices = 1;
  describe(call, params);
  if (params.matrices >= kMostCount) return beyond(plan);
  // Sums of nothing: operands without elements have no address either.
  if (call.in(0).elements() == 0 || call.in(1).elements() == 0) params.depth = params.segments = 0;
  params.to.address = reinterpret_cast<uint64_t>(call.out().data);
  for (uint32_t i = 0; i < call.inputs.size(); ++i) {
    uint64_t* const address = address_of_input(params, i);
    if (address != nullptr && call.in(i).dtype != 0) *address = reinterpret_cast<uint64_t>(call.in(i).data);
  }

  const int64_t sums = sums_of(params);
  const int64_t parts =
      divide(params, std::clamp<int64_t>(enough_groups() / groups_of(params), 1, std::max<int64_t>(kRoom / sums, 1)));
  const bool room = parts == 1 || sums <= kRoom;
  const int64_t in_time = rows_in_time(params);
  if (room && in_time >= params.rows) return enqueue_block(stream, plan, call, params, parts);
  const int64_t rows = room ? in_time : std::min(kRoom / params.columns, in_time);  // sums of which have room
  if (rows == 0) {
    return kit::unsupported(plan.base.op->name, ": sums of ", params.depth, " x ", params.segments, " products for ",
                            params.columns, " columns at once are beyond this plugin; divide the columns");
  }
  kit::Status status;
  for (int64_t matrix = 0; matrix < params.matrices; ++matrix) {
    for (int64_t first = 0; status.ok() && first < params.rows; first += rows) {
      status = enqueue_block(stream, plan, call, block_of(params, matrix, first, std::min(rows, params.rows - first)),
                             parts);
    }
  }
  return status;
}

// Rows of a dispatch. Small matrices stay together, however many they are: a dispatch for each would take longer.
int64_t Product::rows_in_time(const ProductParams& params) const {
  constexpr double kSmall = 1.0 / 64;  // of the most
  const double most = is_cpu_ ? kMostOperationsOfCpu : kMostOperations, row = operations_of_row(params);
  const double matrix = row * params.rows;
  if (matrix * params.matrices <= most || matrix < most * kSmall) return params.rows;
  return std::clamp<int64_t>(static_cast<int64_t>(most / row) / BACKPLANE_TILE_M * BACKPLANE_TILE_M, BACKPLANE_TILE_M,
                             std::max<int64_t>(params.rows, BACKPLANE_TILE_M));
}

bool Product::lies_side_by_side(const ProductParams& params) const {
  if (window_ != 0 || is_byte(dtype_) || !reads_elements()) return false;
  const auto bytes = static_cast<uint64_t>(dtype_ == BP_F32 ? sizeof(float) : sizeof(uint16_t));
  uint64_t all = params.b.address | static_cast<uint64_t>(params.b_depth);
  for (uint32_t d = 0; d < params.matrix_rank; ++d) all |= static_cast<uint64_t>(params.b.strides[d]);
  return params.b_column == static_cast<int64_t>(bytes) && params.columns % BACKPLANE_SUMS_N == 0 &&
         all % (bytes * BACKPLANE_SUMS_N) == 0;
}

int64_t Product::enough_groups() const { return is_cpu_ ? kEnoughGroupsOfCpu : kEnoughGroups; }

Product::Tiling Product::tiling_of(const ProductParams& params) const {
  if (way_ == Way::kSubgroup)
    return {lies_side_by_side(params) ? kSideBySide : kProduct, BACKPLANE_SUMS_M, kLaneColumns};
  if (params.rows <= BACKPLANE_SUMS_M) return {kFewRows, BACKPLANE_SUMS_M, BACKPLANE_FEW_TILE_N};
  if (way_ != Way::kCooperative) return {kProduct, BACKPLANE_TILE_M, BACKPLANE_TILE_N};
  constexpr int64_t kLarge = BACKPLANE_MATRIX_LARGE_TILE;
  const int64_t large = ceil_div(params.rows, kLarge) * ceil_div(params.columns, kLarge) * params.matrices;
  if (large_matrices_ && std::min(params.rows, params.columns) > BACKPLANE_MATRIX_TILE && large >= enough_groups())
    return {kLargeTiles, kLarge, kLarge};
  return {kProduct, BACKPLANE_MATRIX_TILE, BACKPLANE_MATRIX_TILE};
}

int64_t Product::groups_of(const ProductParams& params) const {
  const Tiling tiling = tiling_of(params);
  const int64_t tiles = ceil_div(params.rows, tiling.rows) * ceil_div(params.columns, tiling.columns);
  return ceil_div(tiles * params.matrices, way_ == Way::kSubgroup ? kSubgroupsOfGroup : 1);
}

kit::Status Product::enqueue_block(Stream& stream, const Plan& plan, const kit::Call& call, ProductParams params,
                                   int64_t parts) const {
  VkPipeline const pipeline = plan.pipelines[tiling_of(params).pipeline];
  const double operations = operations_of_row(params) * params.rows * params.matrices / static_cast<double>(parts);
  const int64_t sums = sums_of(params), slots = std::min({parts, std::max<int64_t>(kRoom / sums, 1), kMostSteps});
  const auto fill = [&](ProductParams& block, uint64_t address) {
    block = params;
    for (uint32_t i = 0; i < call.inputs.size(); ++i) {
      uint64_t* const of_input = address_of_input(block, i);
      if (of_input == nullptr || !is_immediate(call.in(i))) continue;
      block.immediates[i] = call.in(i).immediate;
      *of_input = address + offsetof(ProductParams, immediates) + i * sizeof(uint64_t);
    }
  };
  if (parts == 1) {
    params.parts = 1;
    return stream.dispatch<ProductParams>(grid(pipeline, groups_of(params), accesses_of(call), operations), fill);
  }
  params.partial = stream.scratch();
  const Access scratch{params.partial, params.partial + static_cast<uint64_t>(sums * slots) * sizeof(float), true};
  const uint32_t flags = params.flags;
  Accesses reads_to_scratch{scratch};
  for (const kit::View& view : call.inputs) add_access(reads_to_scratch, view, false);
  kit::Status status;
  for (int64_t first = 0; status.ok() && first < parts; first += slots) {
    params.first_part = static_cast<uint32_t>(first);
    params.parts = static_cast<uint32_t>(std::min(slots, parts - first));
    params.flags = flags | ProductParams::kPartial | (first == 0 ? 0 : ProductParams::kContinue);
    status = stream.dispatch<ProductParams>(
        grid(pipeline, groups_of(params) * params.parts, reads_to_scratch, operations * params.parts), fill);
  }
  if (!status.ok()) return status;
  params.parts = static_cast<uint32_t>(slots), params.flags = flags;
  Accesses accesses = accesses_of(call);
  accesses.add({scratch.begin, scratch.end, false});
  return stream.dispatch<ProductParams>(
      {plan.pipelines[kSumOfParts], {groups_for(static_cast<uint64_t>(sums)), 1, 1}, accesses}, fill);
}

}  // namespace backplane::vulkan
