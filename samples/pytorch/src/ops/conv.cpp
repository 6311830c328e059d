// SPDX-License-Identifier: Apache-2.0
// Convolutions with 1, 2 or 3 spatial dimensions.
#include "../call.hpp"
#include "../overloads.hpp"

namespace backplane_torch {
namespace {

using ConvAttributes = bp_conv_attributes;

struct Geometry {
  at::IntArrayRef stride, padding, dilation;
};

ConvAttributes conv_attributes(const at::Tensor& weight, const Geometry& geometry, int64_t groups) {
  const auto rank = static_cast<size_t>(weight.dim() - 2);
  TORCH_CHECK_NOT_IMPLEMENTED(rank >= 1 && rank <= 3, message_prefix(), "the weight has ", weight.dim(),
                              " dimensions; a convolution has 1 to 3 spatial dimensions");
  auto attrs = attributes<BP_OP_CONV>();
  attrs.spatial_rank = static_cast<uint32_t>(rank);
  attrs.groups = static_cast<uint32_t>(groups);
  // PyTorch passes either one number for all dimensions, or one number for each dimension.
  const auto at_dim = [](at::IntArrayRef values, size_t i) { return values.size() == 1 ? values[0] : values[i]; };
  for (size_t i = 0; i < rank; ++i) {
    attrs.stride[i] = at_dim(geometry.stride, i);
    attrs.dilation[i] = at_dim(geometry.dilation, i);
    attrs.pad_begin[i] = attrs.pad_end[i] = at_dim(geometry.padding, i);
  }
  return attrs;
}

c10::DimVector conv_shape(const at::Tensor& input, const at::Tensor& weight, const ConvAttributes& attrs,
                          bool transposed, at::IntArrayRef output_padding) {
  c10::DimVector shape{input.size(0), transposed ? weight.size(1) * attrs.groups : weight.size(0)};
  for (uint32_t i = 0; i < attrs.spatial_rank; ++i) {
    const int64_t kernel = attrs.dilation[i] * (weight.size(2 + i) - 1) + 1;
    const int64_t padding = attrs.pad_begin[i] + attrs.pad_end[i], extent = input.size(2 + i);
    const int64_t extra = output_padding.size() == 1 ? output_padding[0] : transposed ? output_padding[i] : 0;
    shape.push_back(transposed ? (extent - 1) * attrs.stride[i] - padding + kernel + extra
                               : (extent + padding - kernel) / attrs.stride[i] + 1);
  }
  return shape;
}

// Sets `pad_end` of a transposed convolution. Returns the part of the output to which the kernel contributes.
// The output padding lengthens the output at its end, so it reduces the padding at the end. If the output
// padding is larger than this padding, `pad_end` is 0, and the last elements of the output contain only the
// bias.
at::Tensor reached_part(const at::Tensor& out, const at::Tensor& input, const at::Tensor& weight,
                        ConvAttributes& attrs) {
  at::Tensor part = out;
  for (uint32_t i = 0; i < attrs.spatial_rank; ++i) {
    const int64_t dim = 2 + static_cast<int64_t>(i), kernel = attrs.dilation[i] * (weight.size(dim) - 1) + 1;
    const int64_t whole = (input.size(dim) - 1) * attrs.stride[i] + kernel;
    attrs.pad_end[i] = std::max<int64_t>(whole - attrs.pad_begin[i] - out.size(dim), 0);
    const int64_t reach = whole - attrs.pad_begin[i] - attrs.pad_end[i];
    if (reach < out.size(dim)) part = part.narrow(dim, 0, reach);
  }
  return part;
}

// Returns the shape [1, C, 1, ..]. A vector of one value per channel with this shape can be broadcast to
// `like`.
c10::DimVector channel_shape(const at::Tensor& like) {
  c10::DimVector shape(static_cast<size_t>(like.dim()), 1);
  shape[1] = like.size(1);
  return shape;
}

at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                       at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef output_padding, int64_t groups) {
  ConvAttributes attrs = conv_attributes(weight, {stride, padding, dilation}, groups);
  at::Tensor out = at::empty(conv_shape(input, weight, attrs, transposed, output_padding), input.options());
  const bool biased = bias && bias->defined();
  const at::Tensor reached = transposed ? reached_part(out, input, weight, attrs) : out;
  if (!reached.is_same(out)) {
    if (biased) {
      out.copy_(bias->view(channel_shape(out)).expand_as(out));
    } else {
      out.zero_();
    }
  }
  Call call(transposed ? BP_OP_CONV_TRANSPOSE : BP_OP_CONV, reached);
  call.in(input).in(weight);
  if (biased) call.in(*bias);
  call.attributes(attrs).out(reached).run();
  return out;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(const at::Tensor& grad, const at::Tensor& input,
                                                                    const at::Tensor& weight, at::IntArrayRef stride,
                                                                    at::IntArrayRef padding, at::IntArrayRef dilation,
                                                                    bool transposed, at::IntArrayRef, int64_t groups,
                                                                    std::array<bool, 3> wanted) {
  ConvAttributes attrs = conv_attributes(weight, {stride, padding, dilation}, groups);
  const at::Tensor reached = transposed ? reached_part(grad, input, weight, attrs) : grad;
  at::Tensor grad_input, grad_weight, grad_bias;
  if (wanted[0]) {
    grad_input = at::empty(input.sizes(), input.options());
    const uint32_t op = transposed ? BP_OP_CONV : BP_OP_CONV_BWD_INPUT;
    Call(op, grad_input).in(reached).in(weight).attributes(attrs).out(grad_input).run();
  }
  if (wanted[1]) {
    grad_weight = at::empty(weight.sizes(), weight.options());
    Call(BP_OP_CONV_BWD_WEIGHT, grad_weight)
        .in(transposed ? reached : input)
        .in(transposed ? input : reached)
        .attributes(attrs)
        .out(grad_weight)
        .run();
  }
  if (wanted[2]) {
    c10::DimVector dims{0};
    for (int64_t dim = 2; dim < grad.dim(); ++dim) dims.push_back(dim);
    grad_bias = at::sum(grad, dims);
  }
  return {grad_input, grad_weight, grad_bias};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  Family family(library, "conv");
  family.add<"convolution_overrideable", convolution>();
  family.add<"convolution_backward_overrideable", convolution_backward>();
}

}  // namespace
}  // namespace backplane_torch
