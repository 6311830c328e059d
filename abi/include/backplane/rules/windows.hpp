// SPDX-License-Identifier: Apache-2.0
// Shape checks of convolutions and pooling. The checks compute the number of windows that fit into
// the input.
#pragma once

#include <backplane/rules/norms.hpp>

namespace backplane::rules::detail {

// Checks the spatial dimensions of the image ('*' in the signature) and of the result ('-'). Throws
// if an extent of the result differs from the number of windows of extent `kernel` that fit into
// the padded image.
template <class Attributes>
void check_windows(const Bound& bound, const Attributes& attributes, std::span<const int64_t> kernel) {
  const auto image = bound.list('*').span(), result = bound.list('-').span();
  const uint32_t rank = attributes.spatial_rank;
  if (image.size() != rank || kernel.size() != rank || result.size() != rank) {
    Bound::fail("operands have ", image.size(), ", ", kernel.size(), " and ", result.size(),
                " spatial dimensions; spatial_rank is ", rank);
  }
  for (uint32_t d = 0; d < 3; ++d) {
    const int64_t stride = attributes.stride[d], dilation = attributes.dilation[d];
    const int64_t begin = attributes.pad_begin[d], end = attributes.pad_end[d];
    if (d >= rank) {
      if ((stride | dilation | begin | end) == 0) continue;
      Bound::refuse("attributes of spatial dimension ", d, " are not 0; there are ", rank, " such dimensions");
    }
    if (stride < 1 || dilation < 1) {
      Bound::refuse("stride ", stride, " and dilation ", dilation, " of spatial dimension ", d,
                    "; both must be at least 1");
    }
    if (kernel[d] < 1) {
      Bound::refuse("the kernel has extent ", kernel[d], " in spatial dimension ", d, "; it must be at least 1");
    }
    int64_t reach = 0, padded = 0;
    const bool far = __builtin_mul_overflow(dilation, kernel[d] - 1, &reach);
    if (__builtin_add_overflow(image[d], begin + end, &padded)) {
      Bound::refuse("the padded extent of spatial dimension ", d, " does not fit 63 bits");
    }
    if (far || reach >= padded) {
      Bound::fail("a kernel of ", kernel[d], " with dilation ", dilation, " is larger than the padded extent ", padded,
                  " of spatial dimension ", d);
    }
    const int64_t places = (padded - reach - 1) / stride + 1;
    if (result[d] != places) {
      Bound::fail("spatial dimension ", d, ": ", places, " windows fit (extent ", image[d], ", padding ", begin,
                  " and ", end, ", kernel ", kernel[d], ", stride ", stride, ", dilation ", dilation,
                  "), the operand has ", result[d]);
    }
  }
}

inline void check_conv(const Bound& bound) {
  const auto& attributes = bound.attributes<bp_conv_attributes>();
  const int64_t channels = bound.extent('C'), outputs = bound.extent('O'), each = bound.extent('I');
  const uint32_t op = bound.desc.op;
  require_groups(attributes.groups, outputs, op == BP_OP_CONV_TRANSPOSE ? "input channels" : "output channels");
  require_groups(attributes.groups, channels, "channels");
  if (channels / attributes.groups != each) {
    Bound::fail("the weight has ", each, " channels a group; ", channels, " channels in ", attributes.groups,
                " groups have ", channels / attributes.groups);
  }
  if ((op == BP_OP_CONV_BWD_INPUT || op == BP_OP_CONV_BWD_WEIGHT) && attributes.activation != BP_ACTIVATION_NONE) {
    Bound::refuse("activation is ", attributes.activation, "; a gradient has none");
  }
  check_windows(bound, attributes, bound.list('+').span());
}

inline void check_pool(const Bound& bound) {
  const auto& attributes = bound.attributes<bp_pool_attributes>();
  for (uint32_t d = attributes.spatial_rank; d < 3; ++d) {
    if (attributes.kernel[d] != 0) {
      Bound::refuse("the kernel has extent ", attributes.kernel[d], " in spatial dimension ", d, ", which is none");
    }
  }
  check_windows(bound, attributes, {attributes.kernel, attributes.spatial_rank});
}

}  // namespace backplane::rules::detail
