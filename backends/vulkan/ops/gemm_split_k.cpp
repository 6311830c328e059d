// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm_split_k.hpp"

#include <algorithm>
#include <limits>

namespace backplane::vulkan {

namespace {

constexpr int64_t kMaxThreadDepth = kMaxSteps;  // maximum number of terms that a thread adds
constexpr int64_t kMinSplitDepth = 256;         // minimum terms per split if sums are split for occupancy
constexpr int64_t kSplitAlign = 64;             // splits of a single segment begin at multiples of kSplitAlign terms
constexpr int64_t kTileRows = BACKPLANE_MATRIX_LARGE_TILE,
                  kTileColumns = BACKPLANE_SKINNY_TILE_N;  // multiples of the rows and columns of every tile size

// Returns the product of the extents, saturated at the maximum of int64_t.
int64_t volume_of(std::span<const int64_t> shape) {
  int64_t volume = 1;
  for (const int64_t extent : shape) {
    if (extent == 0) return 0;
    if (__builtin_mul_overflow(volume, extent, &volume)) return std::numeric_limits<int64_t>::max();
  }
  return volume;
}
// Returns the saturated product of all extents except the extent of `dimension`.
int64_t volume_without(std::span<const int64_t> shape, std::size_t dimension) {
  const int64_t before = volume_of(shape.first(dimension)), after = volume_of(shape.subspan(dimension + 1));
  return volume_of(std::array{before, after});
}

bool in_index_limits(uint32_t op, std::span<const int64_t> second, std::span<const int64_t> out) {
  switch (op) {
    case BP_OP_CONV_TRANSPOSE:
    case BP_OP_CONV_BWD_INPUT:
      if (volume_of(out.subspan(1)) >= kMaxCount) return false;  // one matrix per group and phase
      [[fallthrough]];
    case BP_OP_CONV:
      // The first volume is the number of output positions, and the second volume is the number of
      // terms of a sum.
      return volume_without(out, 1) < kMaxCount && volume_without(second, 1) < kMaxCount;
    case BP_OP_CONV_BWD_WEIGHT:
      return volume_of(out.subspan(1)) < kMaxCount && volume_without(second, 1) < kMaxCount;
    default:
      return out.size() < 2 || volume_of(out.first(out.size() - 2)) < kMaxCount;
  }
}

template <class View>
std::span<const int64_t> shape_of(const View& view) {
  return {view.shape, view.shape + view.rank};
}

template <class View>
kit::Status check(const kit::OpInfo& op, std::span<const View> inputs, const View& out) {
  const auto fits = [](const View& view) {
    return std::ranges::all_of(shape_of(view), [](int64_t extent) { return extent < kMaxCount; });
  };
  if (fits(out) && std::ranges::all_of(inputs, fits) && in_index_limits(op.id, shape_of(inputs[1]), shape_of(out)))
    return {};
  return kit::unsupported(op.name, ": this plugin supports fewer than ", kMaxCount,
                          " matrices, rows, columns and terms of a sum; divide the operands");
}

}  // namespace

int64_t choose_split_k(GemmParams& params, int64_t wanted) {
  const int64_t terms = int64_t{params.depth} * params.segments;
  int64_t depth = params.depth, segments = params.segments;
  if (terms != 0) {
    const int64_t each = std::max(ceil_div(terms, wanted), kMinSplitDepth);
    depth = std::min(depth, kMaxThreadDepth);
    if (segments == 1) depth = std::min(depth, ceil_div(each, kSplitAlign) * kSplitAlign);
    segments =
        std::min({segments, std::max<int64_t>(each / depth, 1), std::max<int64_t>(kMaxThreadDepth / (depth + 4), 1)});
  }
  params.split_depth = static_cast<uint32_t>(depth);
  params.split_segments = static_cast<uint32_t>(segments);
  params.depth_splits = terms == 0 ? 1 : static_cast<uint32_t>(ceil_div(params.depth, depth));
  return terms == 0 ? 1 : params.depth_splits * ceil_div(params.segments, segments);
}

DispatchExtent dispatch_extent(const GemmParams& params, int64_t splits, double operations) {
  const double in_time = operations * static_cast<double>(splits) / std::max(operations_per_output(params), 1.0);
  const int64_t room = splits == 1 ? kMaxCount * kMaxCount / 2 : kMaxPartialSums;
  const int64_t outputs = in_time < static_cast<double>(room) ? static_cast<int64_t>(in_time) : room;
  const int64_t rows = params.rows, columns = params.columns, matrix = rows * columns;
  if (matrix <= outputs) return {std::min<int64_t>(params.matrices, outputs / matrix), rows, columns};
  if (columns * kTileRows <= outputs || columns <= kTileColumns)
    return {1, std::clamp(outputs / columns / kTileRows * kTileRows, std::min(kTileRows, rows), rows), columns};
  const int64_t some = std::min(kTileRows, rows);
  return {1, some, std::clamp(outputs / some / kTileColumns * kTileColumns, kTileColumns, columns)};
}

GemmParams slice_of(const GemmParams& params, const DispatchExtent& extent, int64_t matrix, int64_t row,
                    int64_t column) {
  GemmParams slice = params;
  const auto move = [&](uint64_t& address, int64_t stride) { address += static_cast<uint64_t>(stride * row); };
  move(slice.c.address, slice.out_row);
  move(slice.a.address, slice.a_row);
  move(slice.bias.address, slice.bias_row);
  move(slice.a_scale, slice.a_scale_row);
  move(slice.a_zero, slice.a_zero_row);
  slice.first_matrix = static_cast<uint32_t>(matrix);
  slice.first_column = static_cast<uint32_t>(column);
  slice.matrices = static_cast<uint32_t>(std::min(extent.matrices, params.matrices - matrix));
  slice.rows = static_cast<uint32_t>(std::min(extent.rows, params.rows - row));
  slice.columns = static_cast<uint32_t>(std::min(extent.columns, params.columns - column));
  return slice;
}

kit::Status check_index_limits(const kit::CheckedDesc& checked) {
  const bp_op_desc& desc = checked.desc;
  return check<bp_tensor_desc>(*checked.op, {desc.inputs, desc.input_count}, desc.outputs[0]);
}
kit::Status check_index_limits(const Call& call) { return check<View>(*call.op, call.inputs, call.out()); }

}  // namespace backplane::vulkan
