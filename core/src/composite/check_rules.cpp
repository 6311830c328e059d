// SPDX-License-Identifier: Apache-2.0
// What a signature cannot say: axes, groups, windows, blocks, packing.
#include <array>
#include <cmath>

#include "composite/check.hpp"
#include "layout.hpp"
#include "shape_text.hpp"

namespace bp::composite {

namespace {

void require_epsilon(const Bound& bound, float epsilon) {
  if (!(epsilon > 0)) bound.fail("epsilon is {}; it must be greater than 0", epsilon);
}

// Shapes of parameters and statistics of a normalisation over `axes`: those of operands `first` on.
void check_axes(const Bound& bound, uint32_t axes, uint32_t parameters, uint32_t first_parameter, uint32_t statistics,
                bool statistics_are_inputs) {
  const auto x = bound.list('*').span();
  if (axes == 0) bound.fail("axes is 0: there is nothing to normalise over; set a bit for each dimension");
  if (axes >> x.size() != 0) bound.fail("axes is {:#b}; the rank is {}", axes, x.size());
  std::array<int64_t, BP_MAX_RANK> inside{}, kept{};
  size_t count = 0;
  for (size_t d = 0; d < x.size(); ++d) {
    const bool in = (axes >> d & 1) != 0;
    if (in) inside[count++] = x[d];
    kept[d] = in ? 1 : x[d];
  }
  for (uint32_t i = 0; i < parameters; ++i) {
    bound.require_shape("input", first_parameter + i, {inside.data(), count}, "the extents of the axes");
    if (statistics_are_inputs) {
      bound.require_shape("output", 1, {inside.data(), count}, "the extents of the axes");
      bound.require_shape("output", 2, {inside.data(), count}, "the extents of the axes");
    }
  }
  for (uint32_t i = 0; i < 2; ++i) {
    bound.require_shape(statistics_are_inputs ? "input" : "output", statistics + i, {kept.data(), x.size()},
                        "x with extent 1 in the axes");
  }
}

void check_groups(const Bound& bound, uint32_t groups, int64_t channels, const char* what) {
  if (groups == 0) bound.fail("groups is 0; it must be at least 1");
  if (channels % groups != 0) bound.fail("{} groups do not divide the {} {}", groups, channels, what);
}

void check_norm_bwd(const Bound& bound) {
  const auto& attributes = bound.attributes<bp_norm_bwd_attributes>();
  require_epsilon(bound, attributes.epsilon);
  const bool by_axes = attributes.norm == BP_NORM_LAYER || attributes.norm == BP_NORM_RMS;
  const auto x = bound.list('*').span();
  if (attributes.norm != BP_NORM_GROUP && attributes.groups != 0) {
    bound.fail("groups is {}; only the backward of group_norm has any, set it to 0", attributes.groups);
  }
  if (attributes.norm == BP_NORM_RMS && bound.has_input(3)) {
    bound.fail("input 3, the mean, is there; rms_norm has none");
  }
  if (by_axes) return check_axes(bound, attributes.axes, 1, 2, 3, true);
  if (attributes.axes != 0)
    bound.fail("axes is {:#b}; only layer_norm and rms_norm have any, set it to 0", attributes.axes);
  if (x.size() < 2) bound.fail("x has rank {}; it must be [N,C,..]", x.size());
  const int64_t channels[] = {x[1]};
  const int64_t grouped[] = {x[0], attributes.groups};
  if (attributes.norm == BP_NORM_GROUP) check_groups(bound, attributes.groups, x[1], "channels");
  bound.require_shape("input", 2, channels, "the channels");
  for (uint32_t i = 1; i < 3; ++i) bound.require_shape("output", i, channels, "the channels");
  for (uint32_t i = 3; i < 5; ++i) {
    if (attributes.norm == BP_NORM_GROUP) bound.require_shape("input", i, grouped, "batch and groups");
    if (attributes.norm == BP_NORM_BATCH) bound.require_shape("input", i, channels, "the channels");
  }
}

// Windows of `kernel` over the image '*' have the places '-'.
template <class Attributes>
void check_windows(const Bound& bound, const Attributes& attributes, std::span<const int64_t> kernel) {
  const auto image = bound.list('*').span(), result = bound.list('-').span();
  const uint32_t rank = attributes.spatial_rank;
  if (image.size() != rank || kernel.size() != rank || result.size() != rank) {
    bound.fail("operands have {}, {} and {} spatial dimensions; spatial_rank is {}", image.size(), kernel.size(),
               result.size(), rank);
  }
  for (uint32_t d = 0; d < 3; ++d) {
    const int64_t stride = attributes.stride[d], dilation = attributes.dilation[d];
    const int64_t begin = attributes.pad_begin[d], end = attributes.pad_end[d];
    if (d >= rank) {
      if ((stride | dilation | begin | end) == 0) continue;
      bound.fail("attributes of spatial dimension {} are not 0; there are {} such dimensions", d, rank);
    }
    if (stride < 1 || dilation < 1) {
      bound.fail("stride {} and dilation {} of spatial dimension {}; both must be at least 1", stride, dilation, d);
    }
    if (kernel[d] < 1)
      bound.fail("the kernel has extent {} in spatial dimension {}; it must be at least 1", kernel[d], d);
    int64_t reach = 0, padded = 0;
    const bool far = __builtin_mul_overflow(dilation, kernel[d] - 1, &reach);
    if (__builtin_add_overflow(image[d], begin + end, &padded)) bound.fail("the padded extent {} does not fit", d);
    if (far || reach >= padded) {
      bound.fail("a kernel of {} with dilation {} is larger than the padded extent {} of spatial dimension {}",
                 kernel[d], dilation, padded, d);
    }
    const int64_t places = (padded - reach - 1) / stride + 1;
    if (result[d] != places) {
      bound.fail(
          "spatial dimension {}: {} windows fit (extent {}, padding {} and {}, kernel {}, stride {}, dilation {}), "
          "the operand has {}",
          d, places, image[d], begin, end, kernel[d], stride, dilation, result[d]);
    }
  }
}

void check_conv(const Bound& bound) {
  const auto& attributes = bound.attributes<bp_conv_attributes>();
  const int64_t channels = bound.extent('C'), outputs = bound.extent('O'), each = bound.extent('I');
  check_groups(bound, attributes.groups, outputs,
               bound.row.id == BP_OP_CONV_TRANSPOSE ? "input channels" : "output channels");
  check_groups(bound, attributes.groups, channels, "channels");
  if (channels / attributes.groups != each) {
    bound.fail("the weight has {} channels a group; {} channels in {} groups have {}", each, channels,
               attributes.groups, channels / attributes.groups);
  }
  if ((bound.row.id == BP_OP_CONV_BWD_INPUT || bound.row.id == BP_OP_CONV_BWD_WEIGHT) &&
      attributes.activation != BP_ACTIVATION_NONE) {
    bound.fail("activation is {}; a gradient has none", attributes.activation);
  }
  check_windows(bound, attributes, bound.list('+').span());
}

void check_pool(const Bound& bound) {
  const auto& attributes = bound.attributes<bp_pool_attributes>();
  for (uint32_t d = attributes.spatial_rank; d < 3; ++d) {
    if (attributes.kernel[d] != 0)
      bound.fail("the kernel has extent {} in spatial dimension {}, which is none", attributes.kernel[d], d);
  }
  check_windows(bound, attributes, {attributes.kernel, attributes.spatial_rank});
}

void check_attention(const Bound& bound) {
  const int64_t heads = bound.extent('H'), groups = bound.extent('G');
  if (groups == 0 ? heads != 0 : heads % groups != 0) {
    bound.fail("{} heads of the query are no multiple of {} heads of the key", heads, groups);
  }
}

void check_rope(const Bound& bound) {
  const auto& attributes = bound.attributes<bp_rope_attributes>();
  const int64_t depth = bound.extent('D');
  const int64_t rotated = attributes.rotary_extent == 0 ? depth : attributes.rotary_extent;
  if (!(attributes.base > 0)) bound.fail("base is {}; it must be greater than 0", attributes.base);
  if (rotated % 2 != 0) bound.fail("{} elements are rotated; their number must be even", rotated);
  if (rotated > depth) bound.fail("rotary_extent is {}; the last dimension has {}", rotated, depth);
}

void require_bits(const Bound& bound, uint32_t bits, const char* name) {
  if (bits != 4 && bits != 8) bound.fail("{} is {}; it is 4 or 8", name, bits);
}

void check_quantized(const Bound& bound) {
  const uint32_t bits = bound.attributes<bp_quantize_attributes>().bits;
  const bool forward = bound.row.id == BP_OP_QUANTIZE;
  require_bits(bound, bits, "bits");
  const auto whole = bound.list('*').span();
  std::array<int64_t, BP_MAX_RANK> packed{};
  std::copy(whole.begin(), whole.end(), packed.begin());
  if (bits == 4) {
    const bp_tensor_desc& view = forward ? bound.desc.outputs[0] : bound.desc.inputs[0];
    if (view.dtype != BP_U8) bound.fail("4-bit values are {}; they lie two to a u8", dtype_name(view.dtype));
    if (whole.empty()) bound.fail("4-bit values of rank 0: there is no last dimension to pack");
    packed[whole.size() - 1] = (packed[whole.size() - 1] + 1) / 2;
  }
  bound.require_shape(forward ? "output" : "input", 0, {packed.data(), whole.size()},
                      bits == 4 ? "two values to a byte of the last dimension" : "that of the floats");
}

void check_quantized_matmul(const Bound& bound) {
  const auto& attributes = bound.attributes<bp_quantized_matmul_attributes>();
  require_bits(bound, attributes.weight_bits, "weight_bits");
  const bool four = attributes.weight_bits == 4;
  const int64_t depth = bound.extent('K'), cols = bound.extent('N');
  const bp_tensor_desc* in = bound.desc.inputs;
  if (in[1].dtype != (four ? BP_U8 : BP_I8)) {
    bound.fail("input 1, of {} bits, is {}; it must be {}", attributes.weight_bits, dtype_name(in[1].dtype),
               four ? "u8" : "i8");
  }
  const int64_t weight[] = {cols, four ? (depth + 1) / 2 : depth};
  bound.require_shape("input", 1, weight, four ? "two values of a row to a byte" : "[N,K]");
  const int64_t blocks = attributes.block == 0 ? 1 : (depth + attributes.block - 1) / attributes.block;
  for (uint32_t i = 2; i < 4; ++i) {
    if (!bound.has_input(i) || element_count(in[i]) == 1) continue;
    const bool column = in[i].rank == 1 && in[i].shape[0] == cols;
    if (column || (in[i].rank == 2 && in[i].shape[0] == cols && in[i].shape[1] == blocks)) continue;
    bound.fail("input {} has shape {}; it must be one element, [{}] or [{},{}]", i, shape_text(in[i]).text, cols, cols,
               blocks);
  }
  const bool whole = in[0].dtype == BP_I8 || in[0].dtype == BP_U8;
  if (!whole && (bound.has_input(4) || bound.has_input(5))) {
    bound.fail("input 0 is {}; only an i8 or u8 one has a scale and a zero point", dtype_name(in[0].dtype));
  }
  if (whole && !bound.has_input(4))
    bound.fail("input 0 is {}; input 4, its scale, is missing", dtype_name(in[0].dtype));
  int64_t rows = 1;
  for (const int64_t extent : bound.list('*').span()) rows *= extent;
  for (uint32_t i = 4; i < 6; ++i) {
    if (!bound.has_input(i) || element_count(in[i]) == 1 || (in[i].rank == 1 && in[i].shape[0] == rows)) continue;
    bound.fail("input {} has shape {}; it must be one element or [{}], one for each row", i, shape_text(in[i]).text,
               rows);
  }
}

void check_topk(const Bound& bound) {
  const auto x = bound.list('*').span();
  const uint32_t axis = bound.attributes<bp_topk_attributes>().axis;
  if (axis >= x.size()) bound.fail("axis is {}; the rank is {}", axis, x.size());
  const bp_tensor_desc& values = bound.desc.outputs[0];
  std::array<int64_t, BP_MAX_RANK> shape{};
  std::copy(x.begin(), x.end(), shape.begin());
  shape[axis] = axis < values.rank ? values.shape[axis] : 0;
  if (shape[axis] > x[axis]) bound.fail("k is {}; axis {} has {} elements", shape[axis], axis, x[axis]);
  for (uint32_t i = 0; i < 2; ++i) {
    bound.require_shape("output", i, {shape.data(), x.size()}, "x with k elements along the axis");
  }
}

void check_cross_entropy(const Bound& bound) {
  const auto& attributes = bound.attributes<bp_cross_entropy_attributes>();
  const bp_tensor_desc& loss = bound.desc.outputs[0];
  if (bound.extent('C') == 0) bound.fail("there are no classes");
  const int64_t rows[] = {bound.extent('N')};
  if (attributes.reduction == BP_REDUCTION_NONE) return bound.require_shape("output", 0, rows, "the loss of each row");
  if (element_count(loss) != 1)
    bound.fail("output 0 has shape {}; a reduced loss is one element", shape_text(loss).text);
}

}  // namespace

void check_rules(const Bound& bound) {
  switch (bound.row.id) {
    case BP_OP_LAYER_NORM:
    case BP_OP_RMS_NORM: {
      const auto& attributes = bound.attributes<bp_norm_attributes>();
      require_epsilon(bound, attributes.epsilon);
      return check_axes(bound, attributes.axes, 2, 1, 1, false);
    }
    case BP_OP_GROUP_NORM: {
      const auto& attributes = bound.attributes<bp_group_norm_attributes>();
      require_epsilon(bound, attributes.epsilon);
      check_groups(bound, attributes.groups, bound.extent('C'), "channels");
      if (bound.extent('G') >= 0 && bound.extent('G') != attributes.groups) {
        bound.fail("the statistics have {} groups; groups is {}", bound.extent('G'), attributes.groups);
      }
      return;
    }
    case BP_OP_BATCH_NORM:
      return require_epsilon(bound, bound.attributes<bp_batch_norm_attributes>().epsilon);
    case BP_OP_NORM_BWD:
      return check_norm_bwd(bound);
    case BP_OP_CONV:
    case BP_OP_CONV_TRANSPOSE:
    case BP_OP_CONV_BWD_INPUT:
    case BP_OP_CONV_BWD_WEIGHT:
      return check_conv(bound);
    case BP_OP_MAX_POOL:
    case BP_OP_AVG_POOL:
      return check_pool(bound);
    case BP_OP_ATTENTION:
      return check_attention(bound);
    case BP_OP_ROPE:
      return check_rope(bound);
    case BP_OP_QUANTIZE:
    case BP_OP_DEQUANTIZE:
      return check_quantized(bound);
    case BP_OP_QUANTIZED_MATMUL:
      return check_quantized_matmul(bound);
    case BP_OP_TOPK:
      return check_topk(bound);
    case BP_OP_CROSS_ENTROPY:
      return check_cross_entropy(bound);
    default:
      return;
  }
}

}  // namespace bp::composite
