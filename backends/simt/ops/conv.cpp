// SPDX-License-Identifier: Apache-2.0
// Convolutions and their gradients as implicit GEMMs. params.h describes the GEMMs.
#include <numeric>

#include "ops/block.hpp"
#include "ops/kernels.hpp"
#include "ops/operators.hpp"

namespace backplane::simt {

namespace {

constexpr uint32_t kConvTileRows = 8, kConvTileSubgroups = 16, kConvMaxGroup = 256;  // as in device/conv.h
constexpr uint32_t kImageRank = 3;                 // dimensions 1 to 3 of ConvParams; a missing dimension has extent 1
constexpr double kMaxTransposedWeights = 1 << 17;  // maximum weights of a transposed convolution
constexpr uint64_t kPartialSumBytes = uint64_t{4} << 20;  // capacity in bytes for the partial sums of splits

// Returns the axis of an operand for dimension `d` of ConvParams, or 0 if the operand lacks that
// dimension.
uint32_t image_axis_of(uint32_t d, uint32_t spatial_rank) {
  return d + spatial_rank > kImageRank ? d + spatial_rank - kImageRank + 1 : 0;
}
int64_t image_extent_of(const View& view, uint32_t axis) { return axis == 0 ? 1 : view.shape[axis]; }
int64_t image_stride_of(const View& view, uint32_t axis) {
  return axis == 0 || view.is_immediate ? 0 : view.strides[axis];
}
int64_t stride_or_zero(const View& view, uint32_t axis) { return view.is_immediate ? 0 : view.strides[axis]; }

// Returns the element of `steps` for `axis`, or 1 if the axis is missing or has at most one
// position.
int32_t window_step_of(const int64_t (&steps)[kImageRank], uint32_t axis, int64_t positions) {
  return axis == 0 || positions <= 1 ? 1 : static_cast<int32_t>(steps[axis - 2]);
}

// Returns the inverse of `a` modulo `m` by the extended Euclidean algorithm. `a` and `m` must be
// coprime.
int32_t inverse_modulo(int64_t a, int64_t m) {
  int64_t x = 0, next = 1, remainder = m, divisor = a % m;
  while (divisor != 0) {
    const int64_t quotient = remainder / divisor;
    remainder = std::exchange(divisor, remainder - quotient * divisor);
    x = std::exchange(next, x - quotient * next);
  }
  return static_cast<int32_t>((x % m + m) % m);
}

// Returns the number of elements as a double, so that a large product is inexact instead of
// overflowing.
template <class Shaped>
double elements_of(const Shaped& view) {
  double elements = 1;
  for (uint32_t d = 0; d < view.rank; ++d) elements *= static_cast<double>(view.shape[d]);
  return elements;
}
template <class Shaped>
bool has_31_bit_indices(const Shaped& view) {
  return elements_of(view) <= double{Nest::kMaxCount};
}

// One dimension of the image, with the operands' axis for this dimension.
struct ImageDimension {
  uint32_t d, axis;
  int32_t padding;
};

class Convolution : public Operator {
 public:
  explicit Convolution(uint32_t dtype)
      : module_(module_name("conv", dtype)), blocks_(module_name("conv_block", dtype)) {}

  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override {
    return prepare(checked, needs, false);
  }
  kit::Status prepare_on(const Limits& limits, const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override {
    return prepare(checked, needs, has_blocks(limits));
  }
  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds& needs, bool blocks) const {
    constexpr int64_t kMaxPadding = int64_t{1} << 28;
    const auto& attributes = checked.attributes.as<bp_conv_attributes>();
    const bool is_weight = checked.desc.op == BP_OP_CONV_BWD_WEIGHT;
    const bp_tensor_desc& weight = is_weight ? checked.desc.outputs[0] : checked.desc.inputs[1];
    bool is_pointwise = true;
    for (uint32_t i = 0; i < attributes.spatial_rank; ++i) {
      is_pointwise = is_pointwise && weight.shape[2 + i] == 1 && attributes.stride[i] == 1 &&
                     attributes.pad_begin[i] == 0 && attributes.pad_end[i] == 0;
      if (attributes.pad_begin[i] < kMaxPadding && attributes.pad_end[i] < kMaxPadding) continue;
      return kit::unsupported(checked.op->name, ": padding of 2^28 and more is not supported, because kernels compute",
                              " positions in 32 bits; let core decompose it");
    }
    // The kernels for blocks compute a product of f32 in full precision as fast as a library, and also apply the bias
    // and the activation.
    const bool keeps_pointwise =
        blocks && checked.desc.op == BP_OP_CONV && weight.dtype == BP_F32 && attributes.precision == BP_PRECISION_FULL;
    if (is_pointwise && !keeps_pointwise) {
      return kit::unsupported(checked.op->name, ": a kernel of one element is not supported, because the",
                              " decomposition is a matmul without copies; let core decompose it");
    }
    const bool is_transposed = checked.desc.op == BP_OP_CONV_TRANSPOSE || checked.desc.op == BP_OP_CONV_BWD_INPUT;
    const int64_t rows = is_transposed ? weight.shape[1] : weight.shape[0] / attributes.groups;
    if (rows == 1 && attributes.groups > 1) {
      return kit::unsupported(checked.op->name, ": groups with one output channel are not supported, because they use",
                              " one of ", kConvTileRows, " rows of a tile; let core decompose it");
    }
    const int64_t line = checked.desc.outputs[0].shape[1 + attributes.spatial_rank];
    if (checked.desc.op == BP_OP_CONV && rows >= 512 && line < 8 && !blocks) {
      return kit::unsupported(
          checked.op->name, ": 512 and more output channels with lines of fewer than 8 positions are",
          " not supported, because each tile of channels would gather the windows again; let core", " decompose it");
    }
    if (is_transposed && elements_of(weight) > kMaxTransposedWeights) {
      return kit::unsupported(checked.op->name, ": kernels of more than 2^17 elements are not supported, because each",
                              " tile of positions would read the kernel again in short runs; let core decompose it");
    }
    for (const auto& views : {std::span(checked.desc.inputs, checked.desc.input_count),
                              std::span(checked.desc.outputs, checked.desc.output_count)}) {
      for (const bp_tensor_desc& view : views) {
        if (view.dtype == 0 || has_31_bit_indices(view)) continue;
        return kit::unsupported(checked.op->name, ": operands of more than 2^30 elements are not supported, because",
                                " kernels have 32-bit indices; let core decompose it");
      }
    }
    needs.workspace_bytes = blocks ? kBlockWorkspaceBytes : kPartialSumBytes;
    return {};
  }
  KernelNames kernels(const kit::PlanForm&) const override {
    KernelNames out;
    out[kMultiply] = {module_, "conv"};
    out[kCombine] = {module_, "conv_combine"};
    return out;
  }
  KernelNames kernels_on(const Limits& limits, const kit::PlanForm& plan) const override {
    KernelNames out = kernels(plan);
    if (!has_blocks(limits)) return out;
    out[kLargeBlocks] = {blocks_, "conv_block128"};
    out[kSmallBlocks] = {blocks_, "conv_block64"};
    return out;
  }
  kit::Status enqueue(Launcher& launcher, const Program& program, const Call& call) const override {
    if (call.out().elements() == 0) return {};
    for (const std::span<const View> views : {call.inputs, call.outputs}) {
      for (const View& view : views) {
        if (view.dtype == 0 || has_31_bit_indices(view)) continue;
        return kit::invalid_argument(call.op->name, ": an operand exceeds 2^30 elements; divide the batch");
      }
    }
    std::array<Place, 5> places;
    ConvParams params = describe_operands(call, places);
    describe(call, params);
    find_runs(params);
    const Limits& limits = launcher.limits();
    if (has_blocks(limits) && fits_blocks(call)) return enqueue_blocks(launcher, program, call, places, params);
    const auto tiles_with = [&](uint32_t subgroups) {
      const auto tiles_of = [](uint32_t extent, uint32_t tile) { return (uint64_t{extent} + tile - 1) / tile; };
      return tiles_of(params.rows, subgroups * kConvTileRows) * tiles_of(params.columns, 2 * limits.width) *
             params.matrices;
    };
    const uint32_t most = std::min({kConvTileSubgroups, kConvMaxGroup / limits.width});
    uint32_t subgroups = 1;
    while (2 * subgroups <= most && subgroups * kConvTileRows < params.rows &&
           (subgroups < 8 || tiles_with(2 * subgroups) >= uint64_t{limits.compute_units} * 2))
      subgroups *= 2;
    const uint64_t tiles = tiles_with(subgroups);
    divide_depth(limits, tiles, params);
    if (tiles * params.splits > uint64_t{Nest::kMaxCount}) {
      return kit::invalid_argument(call.op->name, ": the output exceeds 2^30 tiles; divide the batch");
    }
    return enqueue_splits(launcher, program, kMultiply, tiles * params.splits, subgroups * limits.width, places,
                          params);
  }

 protected:
  // A matrix of the GEMM. Its row index runs along axis `row` of the view, and `row` is 0 or 1. Its
  // column index runs along the other one of the axes 0 and 1.
  struct Matrix {
    const View& view;
    uint32_t row;
    int64_t row_stride() const { return stride_or_zero(view, row); }
    int64_t column_stride() const { return stride_or_zero(view, 1 - row); }
  };
  // Sets the row strides and column strides of c, a and b, except the strides along the image.
  static void set_strides(ConvParams& params, const Matrix& c, const Matrix& a, const Matrix& b) {
    params.row_strides[0] = c.row_stride();
    params.row_strides[1] = a.row_stride();
    params.c_columns[0] = c.column_stride();
    params.a_depths[0] = a.column_stride();
    params.b_depth = b.row_stride();
    params.b_column = b.column_stride();
  }
  // Sets the dimensions of windows over the image `x`. Adjacent columns of c are `column_steps`
  // positions apart in the image. Adjacent rows of b are `depth_steps` positions apart.
  static void set_windows(ConvParams& params, const bp_conv_attributes& attributes, const int64_t (&column_steps)[3],
                          const int64_t (&depth_steps)[3], const View& c, const View& a, const View& x) {
    for_dimensions(attributes, [&](const ImageDimension& each) {
      const uint32_t d = each.d;
      params.c_columns[d] = image_stride_of(c, each.axis);
      params.a_depths[d] = image_stride_of(a, each.axis);
      params.image[d] = image_stride_of(x, each.axis);
      params.column_step[d] = window_step_of(column_steps, each.axis, params.c_extent[d]);
      params.depth_step[d] = window_step_of(depth_steps, each.axis, params.taps[d]);
      params.origin[d] = -each.padding;
      params.extent[d] = static_cast<int32_t>(image_extent_of(x, each.axis));
    });
  }

  // Sets the parameters of the GEMMs that depend on the operator.
  virtual void describe(const Call& call, ConvParams& params) const = 0;

  // Calls `body` for each dimension of the image.
  template <class Body>
  static void for_dimensions(const bp_conv_attributes& attributes, const Body& body) {
    for (uint32_t d = 1; d <= kImageRank; ++d) {
      const uint32_t axis = image_axis_of(d, attributes.spatial_rank);
      body(ImageDimension{d, axis, axis == 0 ? 0 : static_cast<int32_t>(attributes.pad_begin[axis - 2])});
    }
  }
  // Sets the extents of the column index and of k. Their first dimensions have the extents `columns`
  // and `depth`.
  static void set_extents(ConvParams& params, const View& column_view, int64_t columns, const View& depth_view,
                          int64_t depth, const bp_conv_attributes& attributes) {
    params.column_shape[0] = divisor_params(columns);
    params.depth_shape[0] = divisor_params(depth);
    int64_t all_columns = columns, all_depth = depth;
    for_dimensions(attributes, [&](const ImageDimension& each) {
      const int64_t column = image_extent_of(column_view, each.axis), term = image_extent_of(depth_view, each.axis);
      all_columns *= column;
      all_depth *= term;
      params.column_shape[each.d] = divisor_params(column);
      params.depth_shape[each.d] = divisor_params(term);
      params.c_extent[each.d] = static_cast<int32_t>(column);
      params.taps[each.d] = static_cast<int32_t>(term);
    });
    params.columns = static_cast<uint32_t>(all_columns);
    params.depth = static_cast<uint32_t>(all_depth);
  }
  // Sets the number of GEMMs, and the strides from one group of channels to the next. These strides of
  // operands a and b are `a` and `b`.
  static void set_groups(ConvParams& params, uint32_t groups, int64_t a, int64_t b) {
    params.matrices = groups;
    params.group_strides[0] = params.row_strides[0] * params.rows;
    params.group_strides[1] = a;
    params.group_strides[2] = b;
    params.group_strides[3] = params.row_strides[3] * params.rows;
  }

 private:
  enum Kernel : uint32_t { kMultiply, kCombine, kLargeBlocks, kSmallBlocks };

  // Returns whether the kernels of device/conv_block.h accept the operands a and b.
  static bool fits_blocks(const Call& call) {
    return std::ranges::all_of(std::array{&call.in(0), &call.in(1)}, [](const View* view) {
      double distance = 0;
      for (uint32_t d = 0; d < view->rank; ++d) {
        distance += std::abs(static_cast<double>(view->strides[d])) * static_cast<double>(view->shape[d] - 1);
      }
      return !view->is_immediate && distance < 0x1p31;
    });
  }
  static kit::Status enqueue_blocks(Launcher& launcher, const Program& program, const Call& call,
                                    const std::array<Place, 5>& places, ConvParams& params) {
    const BlockPlan plan = plan_blocks(launcher.limits(), {params.rows, params.columns, params.depth, params.matrices},
                                       call.workspace_bytes);
    params.splits = plan.splits;
    params.split_depth = plan.split_depth;
    if (plan.groups > uint64_t{Nest::kMaxCount}) {
      return kit::invalid_argument(call.op->name, ": the output exceeds 2^30 tiles; divide the batch");
    }
    return enqueue_splits(launcher, program, plan.is_large() ? kLargeBlocks : kSmallBlocks, plan.groups,
                          plan.group_size(), places, params);
  }
  // Enqueues `groups` groups of a kernel, and then the kernel that adds the partial sums, if there are splits.
  static kit::Status enqueue_splits(Launcher& launcher, const Program& program, Kernel kernel, uint64_t groups,
                                    uint32_t group_size, const std::array<Place, 5>& places, ConvParams& params) {
    kit::Status status = launch(launcher, program.kernels[kernel], groups_for(groups, 1), group_size, places, params);
    if (!status.ok() || params.splits == 1) return status;
    const uint32_t group = stream_group(launcher.limits());
    const uint64_t elements = uint64_t{params.matrices} * params.rows * params.columns;
    return launch(launcher, program.kernels[kCombine], groups_for(elements, group), group, places, params);
  }

  static ConvParams describe_operands(const Call& call, std::array<Place, 5>& places) {
    ConvParams out{};
    const View* const bias = given(call.inputs, 2);
    const View* const views[] = {&call.out(), &call.in(1), &call.in(0), bias};
    for (uint32_t i = 0; i < 4; ++i) {
      if (views[i] == nullptr) continue;
      places[i] = views[i]->place;
      if (!views[i]->is_immediate) continue;
      out.immediate |= 1u << i;
      out.immediates[i] = views[i]->immediate;
    }
    places[4] = call.workspace;
    out.activation = call.attributes<bp_conv_attributes>().activation;
    if (bias != nullptr) {
      out.bias_bytes = kit::dtype_bytes(bias->dtype);
      out.row_strides[3] = stride_or_zero(*bias, 0);
    }
    for (uint32_t d = 0; d < 4; ++d) {
      out.stride[d] = out.common[d] = out.period[d] = 1;
      out.phases[d] = 1;
    }
    return out;
  }
  static void find_runs(ConvParams& params) {
    params.a_run = 1;
    for (uint32_t d = 4; d-- > 0;) {
      if (params.depth_shape[d].divisor == 1) continue;
      if (params.a_depths[d] != params.a_run) break;
      params.a_run *= params.depth_shape[d].divisor;
    }
    const bool dense = params.image[kImageRank] == 1;
    params.column_run = dense && params.column_step[kImageRank] == 1 ? params.column_shape[kImageRank].divisor : 1;
    params.term_run = dense && params.depth_step[kImageRank] == 1 ? params.depth_shape[kImageRank].divisor : 1;
    params.b_by_term = params.term_run > params.column_run ? 1 : 0;
    bool a_has_quads = params.a_run % 4 == 0 && params.depth % 4 == 0 && params.row_strides[1] % 4 == 0;
    uint32_t run = 1;
    for (uint32_t d = 4; d-- > 0;) {
      run *= params.depth_shape[d].divisor;
      a_has_quads &= params.depth_shape[d].divisor == 1 || run <= params.a_run || params.a_depths[d] % 4 == 0;
    }
    bool b_is_plain = true;
    for (uint32_t d = 1; d <= kImageRank; ++d) {
      const int64_t last = params.column_step[d] * (int64_t{params.column_shape[d].divisor} - 1) + params.origin[d];
      b_is_plain &= params.depth_shape[d].divisor == 1 && params.phases[d] == 1 && params.origin[d] >= 0 &&
                    last < params.extent[d];
    }
    params.layout = (a_has_quads ? CONV_A_QUADS : 0) | (b_is_plain ? CONV_B_PLAIN : 0);
  }
  // Divides k into splits if there are too few tiles to occupy the device.
  static void divide_depth(const Limits& limits, uint64_t tiles, ConvParams& params) {
    const uint64_t wanted = uint64_t{limits.compute_units} * (limits.is_cpu ? 2 : 4) / tiles;
    const uint64_t room = kPartialSumBytes / (sizeof(float) * params.matrices * params.rows * params.columns);
    const uint64_t splits = std::max<uint64_t>(std::min({wanted, room, uint64_t{params.depth / 512}}), 1);
    constexpr uint32_t kStep = 32;
    params.split_depth = static_cast<uint32_t>(((params.depth + splits - 1) / splits + kStep - 1) / kStep * kStep);
    params.splits = params.depth == 0 ? 1 : (params.depth + params.split_depth - 1) / params.split_depth;
  }

  const std::string module_, blocks_;
};

// Columns are positions in y. k runs over channels of the group and elements of the kernel.
class Conv : public Convolution {
 public:
  using Convolution::Convolution;

 private:
  void describe(const Call& call, ConvParams& params) const override {
    const auto& attributes = call.attributes<bp_conv_attributes>();
    const View &x = call.in(0), &w = call.in(1), &y = call.out();
    set_extents(params, y, y.shape[0], w, w.shape[1], attributes);
    params.rows = static_cast<uint32_t>(w.shape[0] / attributes.groups);
    set_strides(params, {y, 1}, {w, 0}, {x, 1});
    set_windows(params, attributes, attributes.stride, attributes.dilation, y, w, x);
    set_groups(params, attributes.groups, params.row_strides[1] * params.rows, params.b_depth * w.shape[1]);
  }
};

// conv_transpose, which also computes the gradient of conv with respect to its input. Columns are
// positions of a phase in y, and k runs over channels of the group and elements of the kernel.
class ConvTranspose : public Convolution {
 public:
  using Convolution::Convolution;

 private:
  void describe(const Call& call, ConvParams& params) const override {
    const auto& attributes = call.attributes<bp_conv_attributes>();
    const View &x = call.in(0), &w = call.in(1), &y = call.out();
    const int64_t channels = w.shape[0] / attributes.groups;
    set_extents(params, y, y.shape[0], w, channels, attributes);
    params.rows = static_cast<uint32_t>(w.shape[1]);
    set_strides(params, {y, 1}, {w, 1}, {x, 1});
    set_groups(params, attributes.groups, params.a_depths[0] * channels, params.b_depth * channels);
    params.columns = static_cast<uint32_t>(y.shape[0]);
    params.depth = static_cast<uint32_t>(channels);
    for_dimensions(attributes, [&](const ImageDimension& each) {
      const uint32_t d = each.d;
      const int64_t positions = params.c_extent[d], image = image_extent_of(x, each.axis);
      const int32_t stride = window_step_of(attributes.stride, each.axis, image);
      const int32_t dilation = window_step_of(attributes.dilation, each.axis, params.taps[d]);
      const int32_t common = std::gcd(stride, dilation), period = stride / common;
      params.stride[d] = stride;
      params.common[d] = common;
      params.period[d] = period;
      params.inverse[d] = inverse_modulo(dilation / common, period);
      params.phases[d] = static_cast<uint32_t>(std::min<int64_t>(stride, positions));
      params.matrices *= params.phases[d];
      params.c_positions[d] = image_stride_of(y, each.axis);
      params.c_columns[d] = params.c_positions[d] * stride;
      params.a_taps[d] = image_stride_of(w, each.axis);
      params.a_depths[d] = params.a_taps[d] * period;
      params.image[d] = image_stride_of(x, each.axis);
      params.column_step[d] = 1;
      params.depth_step[d] = -dilation / common;
      params.origin[d] = each.padding;
      params.extent[d] = static_cast<int32_t>(image);
      const int64_t phase_positions = (positions + stride - 1) / stride;
      const int64_t phase_taps = (params.taps[d] + int64_t{period} - 1) / period;
      params.column_shape[d] = divisor_params(phase_positions);
      params.depth_shape[d] = divisor_params(phase_taps);
      params.columns *= static_cast<uint32_t>(phase_positions);
      params.depth *= static_cast<uint32_t>(phase_taps);
    });
  }
};

// The gradient of conv with respect to its weight. Columns are channels of the group and elements
// of the kernel, and k runs over positions in dy.
class ConvWeight : public Convolution {
 public:
  using Convolution::Convolution;

 private:
  void describe(const Call& call, ConvParams& params) const override {
    const auto& attributes = call.attributes<bp_conv_attributes>();
    const View &x = call.in(0), &dy = call.in(1), &dw = call.out();
    set_extents(params, dw, dw.shape[1], dy, dy.shape[0], attributes);
    params.rows = static_cast<uint32_t>(dw.shape[0] / attributes.groups);
    set_strides(params, {dw, 0}, {dy, 1}, {x, 0});
    set_windows(params, attributes, attributes.dilation, attributes.stride, dw, dy, x);
    set_groups(params, attributes.groups, params.row_strides[1] * params.rows, params.b_column * dw.shape[1]);
  }
};

}  // namespace

void add_conv(Operators& operators) {
  for_dtypes(BP_SET_FLOATS & kComputed, [&](uint32_t dtype) {
    const auto add = [&](uint32_t op, OperatorEntry entry) {
      entry.mixed = rules::kMixedParameters;  // affects only operators with a bias, which may be f32
      operators.add(op, dtype, std::move(entry));
    };
    add(BP_OP_CONV, entry_of<Conv>(dtype));
    add(BP_OP_CONV_TRANSPOSE, entry_of<ConvTranspose>(dtype));
    add(BP_OP_CONV_BWD_INPUT, entry_of<ConvTranspose>(dtype));
    add(BP_OP_CONV_BWD_WEIGHT, entry_of<ConvWeight>(dtype));
  });
}

}  // namespace backplane::simt
