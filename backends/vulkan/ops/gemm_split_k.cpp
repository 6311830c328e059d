// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm_split_k.hpp"

#include <algorithm>
#include <limits>

#include "shaders/sizes.h"

namespace backplane::vulkan {

namespace {

constexpr int64_t kMostDepth = kMostSteps;  // products that a thread adds up
constexpr int64_t kLeastDepth = 256;        // of a part that is made to busy more of the device
constexpr int64_t kPartAlign = 64;          // so that parts start where operands are aligned as they are
constexpr int64_t kTileRows = BACKPLANE_MATRIX_LARGE_TILE,
                  kTileColumns = BACKPLANE_FEW_TILE_N;  // multiples of every tile's

// Of extents, or the greatest number where that is less.
int64_t product_of(std::span<const int64_t> shape) {
  int64_t product = 1;
  for (const int64_t extent : shape) {
    if (extent == 0) return 0;
    if (__builtin_mul_overflow(product, extent, &product)) return std::numeric_limits<int64_t>::max();
  }
  return product;
}
// Of all dimensions but one.
int64_t product_without(std::span<const int64_t> shape, std::size_t dimension) {
  const int64_t before = product_of(shape.first(dimension)), behind = product_of(shape.subspan(dimension + 1));
  return product_of(std::array{before, behind});
}

bool can_count(uint32_t op, std::span<const int64_t> second, std::span<const int64_t> out) {
  switch (op) {
    case BP_OP_CONV_TRANSPOSE:
    case BP_OP_CONV_BWD_INPUT:
      if (product_of(out.subspan(1)) >= kMostCount) return false;  // groups and phases
      [[fallthrough]];
    case BP_OP_CONV:
      return product_without(out, 1) < kMostCount && product_without(second, 1) < kMostCount;  // places, terms
    case BP_OP_CONV_BWD_WEIGHT:
      return product_of(out.subspan(1)) < kMostCount && product_without(second, 1) < kMostCount;
    default:
      return out.size() < 2 || product_of(out.first(out.size() - 2)) < kMostCount;
  }
}

template <class View>
std::span<const int64_t> shape_of(const View& view) {
  return {view.shape, view.shape + view.rank};
}

template <class View>
kit::Status check(const kit::OpInfo& op, std::span<const View> inputs, const View& out) {
  const auto fits = [](const View& view) {
    return std::ranges::all_of(shape_of(view), [](int64_t extent) { return extent < kMostCount; });
  };
  if (fits(out) && std::ranges::all_of(inputs, fits) && can_count(op.id, shape_of(inputs[1]), shape_of(out))) return {};
  return kit::unsupported(op.name, ": ", kMostCount,
                          " matrices, rows, columns or terms of a sum are beyond this plugin; divide the operands");
}

}  // namespace

int64_t divide_depth(ProductParams& params, int64_t wanted) {
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

Extent extent_in_time(const ProductParams& params, int64_t parts, double operations) {
  const double in_time = operations * static_cast<double>(parts) / std::max(operations_of_sum(params), 1.0);
  const int64_t room = parts == 1 ? kMostCount * kMostCount / 2 : kRoomForSums;
  const int64_t sums = in_time < static_cast<double>(room) ? static_cast<int64_t>(in_time) : room;
  const int64_t rows = params.rows, columns = params.columns, matrix = rows * columns;
  if (matrix <= sums) return {std::min<int64_t>(params.matrices, sums / matrix), rows, columns};
  if (columns * kTileRows <= sums || columns <= kTileColumns)
    return {1, std::clamp(sums / columns / kTileRows * kTileRows, std::min(kTileRows, rows), rows), columns};
  const int64_t some = std::min(kTileRows, rows);
  return {1, some, std::clamp(sums / some / kTileColumns * kTileColumns, kTileColumns, columns)};
}

ProductParams part_of(const ProductParams& params, const Extent& extent, int64_t matrix, int64_t row, int64_t column) {
  ProductParams part = params;
  const auto move = [&](uint64_t& address, int64_t stride) { address += static_cast<uint64_t>(stride * row); };
  move(part.to.address, part.out_row);
  move(part.a.address, part.a_row);
  move(part.bias.address, part.bias_row);
  move(part.a_scale, part.a_scale_row);
  move(part.a_zero, part.a_zero_row);
  part.first_matrix = static_cast<uint32_t>(matrix);
  part.first_column = static_cast<uint32_t>(column);
  part.matrices = static_cast<uint32_t>(std::min(extent.matrices, params.matrices - matrix));
  part.rows = static_cast<uint32_t>(std::min(extent.rows, params.rows - row));
  part.columns = static_cast<uint32_t>(std::min(extent.columns, params.columns - column));
  return part;
}

kit::Status check_counts(const kit::CheckedDesc& checked) {
  const bp_op_desc& desc = checked.desc;
  return check<bp_tensor_desc>(*checked.op, {desc.inputs, desc.input_count}, desc.outputs[0]);
}
kit::Status check_counts(const Call& call) { return check<View>(*call.op, call.inputs, call.out()); }

}  // namespace backplane::vulkan
