// SPDX-License-Identifier: Apache-2.0
// A direct convolution for batches of small images in the layout channels-last. The kernel computes one
// position of several images at once, so it skips exactly the taps in the padding.
#pragma once

#include <cstdint>

namespace backplane::onednn {

// The extents and the window of a convolution. `channels` and `outputs` are the numbers of input and output
// channels. Each array contains the value for rows, then the value for columns.
struct DirectConvShape {
  int64_t channels, outputs;
  int64_t image[2], result[2];
  int64_t kernel[2], stride[2], dilation[2], pad[2];

  // Number of output channels, rounded up to a multiple of the 16 lanes of the widest vector.
  int64_t padded_outputs() const { return (outputs + 15) / 16 * 16; }
  int64_t weights() const { return kernel[0] * kernel[1] * channels * padded_outputs(); }
};

// Convolves `images` images. `weights` is an array [row][column][channel][padded_outputs()]. `bias` may be
// null. If `relu` is set, negative results become 0.
using DirectConvKernel = void (*)(const DirectConvShape& shape, const float* x, const float* weights, const float* bias,
                                  bool relu, float* y, int64_t images);
// Returns the kernel that is compiled for this processor, or null if the target has no vectors.
DirectConvKernel direct_conv_kernel();

}  // namespace backplane::onednn
