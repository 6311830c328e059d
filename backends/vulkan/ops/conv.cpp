// SPDX-License-Identifier: Apache-2.0
// Convolutions and their gradients as implicit GEMMs. Operand `b` of the GEMM consists of windows
// of an image, but the image is never unfolded in memory. shaders/gemm.glsl explains how kernels
// index `b`.
#include <numeric>

#include "ops/gemm.hpp"
#include "ops/operators.hpp"

namespace backplane::vulkan {

namespace {

// Maximum number of spatial dimensions, which are dimensions 1 to 3 of the shader's four
// dimensions. A missing dimension has extent 1.
constexpr uint32_t kSpatial = 3;
constexpr BSource kWindow{.window = 1}, kTransposedWindow{.window = 2};

// Returns the axis of a view for spatial dimension `d` of the shader, or 0 if the view lacks that
// dimension. The first two axes of a view are batch and channel.
uint32_t axis_of(uint32_t d, uint32_t spatial_rank) {
  return d + spatial_rank >= kSpatial + 1 ? d + spatial_rank - kSpatial + 1 : 0;
}

uint32_t extent_of(const View& view, uint32_t axis) { return axis == 0 ? 1 : static_cast<uint32_t>(view.shape[axis]); }
int64_t stride_of(const Strides& strides, uint32_t axis) { return axis == 0 ? 0 : strides[axis]; }

// Returns the element of `steps` for `axis`, or 1 if the axis is missing or has at most one
// position.
int32_t step_of(const int64_t (&steps)[kSpatial], uint32_t axis, uint32_t positions) {
  return axis == 0 || positions <= 1 ? 1 : static_cast<int32_t>(steps[axis - 2]);
}
int32_t padding_of(const bp_conv_attributes& attributes, uint32_t axis) {
  return axis == 0 ? 0 : static_cast<int32_t>(attributes.pad_begin[axis - 2]);
}

// Describes each group as one matrix of the GEMM, whose rows and terms of K are channels of the group. `to`, `a` and
// `b` are the distances in bytes between groups in the output, in operand `a` and in operand `b`.
void describe_groups(uint32_t groups, int64_t to, int64_t a, int64_t b, GemmParams& params) {
  params.matrices = params.matrix_shape[0] = groups;
  params.matrix_rank = 1;
  params.c.strides[0] = to, params.a.strides[0] = a, params.b.strides[0] = b;
  params.bias.strides[0] = params.bias_row * params.rows;
}

class Convolution : public Gemm {
 public:
  using Gemm::Gemm;

  // Returns UNSUPPORTED for padding of 2^28 or more, because kernels compute image positions in 32
  // bits.
  kit::Status prepare(const kit::CheckedDesc& checked, kit::PlanNeeds& needs) const override {
    constexpr int64_t kMaxPadding = int64_t{1} << 28;
    const auto& attributes = checked.attributes.as<bp_conv_attributes>();
    for (uint32_t i = 0; i < attributes.spatial_rank; ++i) {
      if (attributes.pad_begin[i] < kMaxPadding && attributes.pad_end[i] < kMaxPadding) continue;
      return kit::unsupported(checked.op->name, ": padding of 2^28 and more is not supported; let core decompose it");
    }
    return Gemm::prepare(checked, needs);
  }

 protected:
  uint32_t epilogue(const kit::PlanForm& plan) const override {
    return plan.attributes.as<bp_conv_attributes>().activation;
  }
  // Describes a GEMM in which columns are positions of the output, K runs over the input channels,
  // and segments are elements of the convolution kernel.
  static void describe_positions(const Call& call, GemmParams& params) {
    const auto& attributes = call.attributes<bp_conv_attributes>();
    const View &x = call.in(0), &w = call.in(1), &y = call.out();
    const Strides to(y), from(x), weight(w);
    params.column_shape[0] = params.columns = static_cast<uint32_t>(y.shape[0]);
    params.out_columns[0] = to[0];
    params.column_step[0] = 1, params.segment_shape[0] = 1;
    params.image[0] = from[0];
    for (uint32_t d = 1; d <= kSpatial; ++d) {
      const uint32_t axis = axis_of(d, attributes.spatial_rank);
      params.column_shape[d] = extent_of(y, axis), params.segment_shape[d] = extent_of(w, axis);
      params.columns *= params.column_shape[d], params.segments *= params.segment_shape[d];
      params.out_columns[d] = stride_of(to, axis), params.image[d] = stride_of(from, axis);
      params.a_segments[d] = stride_of(weight, axis);
      params.extent[d] = static_cast<int32_t>(extent_of(x, axis));
    }
    params.out_row = to[1], params.b_depth = from[1];
    if (const View* bias = given(call.inputs, 2); bias != nullptr) {
      params.flags |= GemmParams::kBias;
      params.bias_row = Strides(*bias)[0];
    }
  }
};

class Conv : public Convolution {
 public:
  using Convolution::Convolution;

 private:
  void describe(const Call& call, GemmParams& params) const override {
    const auto& attributes = call.attributes<bp_conv_attributes>();
    const Strides w(call.in(1));
    describe_positions(call, params);
    params.rows = static_cast<uint32_t>(call.in(1).shape[0]) / attributes.groups;
    params.depth = static_cast<uint32_t>(call.in(1).shape[1]);
    params.a_row = w[0], params.a_depth = w[1];
    for (uint32_t d = 1; d <= kSpatial; ++d) {
      const uint32_t axis = axis_of(d, attributes.spatial_rank);
      params.column_step[d] = step_of(attributes.stride, axis, params.column_shape[d]);
      params.segment_step[d] = step_of(attributes.dilation, axis, params.segment_shape[d]);
      params.offset[d] = -padding_of(attributes, axis);
    }
    describe_groups(attributes.groups, params.out_row * params.rows, params.a_row * params.rows,
                    params.b_depth * params.depth, params);
    if (params.segment_shape[kSpatial] > params.depth) put_k_along_image(params);
  }
  // Changes the description of the GEMM for convolutions with few channels and wide kernels. K then
  // runs along the last dimension of the image, and segments run over channels and over the other
  // dimensions of the convolution kernel.
  static void put_k_along_image(GemmParams& params) {
    constexpr uint32_t d = kSpatial;
    params.flags |= GemmParams::kKAlongImage;
    params.segments = params.segments / params.segment_shape[d] * params.depth;
    params.segment_shape[0] = params.depth;
    params.a_segments[0] = params.a_depth, params.b_segment = params.b_depth;
    params.depth = params.segment_shape[d], params.depth_step = params.segment_step[d];
    params.a_depth = params.a_segments[d], params.b_depth = params.image[d] * params.depth_step;
    params.segment_shape[d] = 1;
  }
};

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

// conv_transpose, which also computes the gradient of conv with respect to its input. Each output
// position is a sum over the elements of x whose windows contain that position. Positions whose
// distance is a multiple of the stride use the same elements of the convolution kernel. Such
// positions form one matrix, called a phase.
class ConvTranspose : public Convolution {
 public:
  using Convolution::Convolution;

 private:
  void describe(const Call& call, GemmParams& params) const override {
    const auto& attributes = call.attributes<bp_conv_attributes>();
    const Strides w(call.in(1));
    describe_positions(call, params);
    const Strides to(call.out());
    params.rows = static_cast<uint32_t>(call.in(1).shape[1]);
    params.depth = static_cast<uint32_t>(call.in(1).shape[0]) / attributes.groups;
    params.a_row = w[1], params.a_depth = w[0];
    describe_groups(attributes.groups, params.out_row * params.rows, params.a_depth * params.depth,
                    params.b_depth * params.depth, params);
    params.matrix_rank = 1 + kSpatial;  // one matrix per group and phase
    for (uint32_t d = 1; d <= kSpatial; ++d) {
      const uint32_t axis = axis_of(d, attributes.spatial_rank);
      const auto kernel = static_cast<int32_t>(params.segment_shape[d]);
      const auto positions = static_cast<int32_t>(params.column_shape[d]);
      const int32_t stride = step_of(attributes.stride, axis, static_cast<uint32_t>(params.extent[d]));
      const int32_t dilation = step_of(attributes.dilation, axis, params.segment_shape[d]);
      const int32_t common = std::gcd(stride, dilation), period = stride / common;
      params.stride[d] = stride, params.gcd[d] = common, params.period[d] = period;
      params.inverse[d] = inverse_modulo(dilation / common, period);
      params.kernel[d] = kernel, params.out_extent[d] = positions;
      params.column_step[d] = 1, params.segment_step[d] = -dilation / common;
      params.offset[d] = padding_of(attributes, axis);
      params.matrix_shape[d] = static_cast<uint32_t>(std::min(stride, positions));
      params.matrices =
          static_cast<uint32_t>(std::min<int64_t>(int64_t{params.matrices} * params.matrix_shape[d], UINT32_MAX));
      params.c.strides[d] = stride_of(to, axis), params.out_columns[d] = params.c.strides[d] * stride;
      params.column_shape[d] = static_cast<uint32_t>((positions + int64_t{stride} - 1) / stride);
      params.segment_shape[d] = static_cast<uint32_t>((kernel + int64_t{period} - 1) / period);
    }
    const auto product = [](const uint32_t(&shape)[4]) {
      return std::accumulate(shape, shape + 4, uint32_t{1}, std::multiplies<>());
    };
    params.columns = product(params.column_shape), params.segments = product(params.segment_shape);
  }
};

// The gradient of conv with respect to its weight. Rows are output channels, columns are the elements of one output
// channel's weight, segments are rows of dy, and K runs along a row of dy.
class ConvWeight : public Convolution {
 public:
  using Convolution::Convolution;

 private:
  void describe(const Call& call, GemmParams& params) const override {
    const auto& attributes = call.attributes<bp_conv_attributes>();
    const View &x = call.in(0), &dy = call.in(1), &dw = call.out();
    const Strides to(dw), image(x), gradient(dy);
    params.rows = static_cast<uint32_t>(dw.shape[0]) / attributes.groups;
    params.out_row = to[0], params.a_row = gradient[1];
    params.column_shape[0] = params.columns = static_cast<uint32_t>(dw.shape[1]);
    params.segment_shape[0] = params.segments = static_cast<uint32_t>(x.shape[0]);
    params.out_columns[0] = to[1];
    params.column_step[0] = 1;
    params.flags |= GemmParams::kKAlongImage;
    params.image[0] = image[1], params.b_segment = image[0], params.a_segments[0] = gradient[0];
    for (uint32_t d = 1; d <= kSpatial; ++d) {
      const uint32_t axis = axis_of(d, attributes.spatial_rank);
      const uint32_t positions = extent_of(dy, axis);
      const int32_t stride = step_of(attributes.stride, axis, positions);
      params.column_shape[d] = extent_of(dw, axis), params.columns *= params.column_shape[d];
      params.out_columns[d] = stride_of(to, axis), params.image[d] = stride_of(image, axis);
      params.extent[d] = static_cast<int32_t>(extent_of(x, axis));
      params.column_step[d] = step_of(attributes.dilation, axis, params.column_shape[d]);
      params.offset[d] = -padding_of(attributes, axis);
      if (d == kSpatial) {
        params.depth_step = stride;
        params.segment_shape[d] = 1;
        params.depth = positions;
        params.a_depth = stride_of(gradient, axis), params.b_depth = params.image[d] * stride;
      } else {
        params.segment_step[d] = stride;
        params.segment_shape[d] = positions, params.segments *= positions;
        params.a_segments[d] = stride_of(gradient, axis);
      }
    }
    describe_groups(attributes.groups, params.out_row * params.rows, params.a_row * params.rows,
                    params.image[0] * int64_t{params.column_shape[0]}, params);
  }
};

}  // namespace

void add_conv(Operators& operators, const PhysicalDevice& device, GemmAlgorithm algorithm) {
  for_dtypes(BP_SET_FLOATS & kComputed, [&](uint32_t dtype) {
    const OperatorEntry backward = entry_of<ConvTranspose>(dtype, algorithm, device, kTransposedWindow);
    operators.add(BP_OP_CONV, dtype, dtype, entry_of<Conv>(dtype, algorithm, device, kWindow));
    operators.add(BP_OP_CONV_TRANSPOSE, dtype, dtype, backward);
    operators.add(BP_OP_CONV_BWD_INPUT, dtype, dtype, backward);
    operators.add(BP_OP_CONV_BWD_WEIGHT, dtype, dtype, entry_of<ConvWeight>(dtype, algorithm, device, kWindow));
  });
}

}  // namespace backplane::vulkan
