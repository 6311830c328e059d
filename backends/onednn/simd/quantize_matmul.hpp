// SPDX-License-Identifier: Apache-2.0
// Vectorised kernels of quantized_matmul: products of a few rows of activations with quantized
// weights, and the conversion of weights to panels of a GEMM. A weight w of block b stands for the
// number (w - zero[b]) * scale[b] + minimum[b].
#pragma once

#include <cstddef>
#include <cstdint>

namespace backplane::onednn {

// The kernels read a column of weights in chunks of this many bytes: 64 weights of 8 bits, or 128
// weights of 4 bits. The low half of a byte is the weight with the lower index.
inline constexpr int64_t kChunkBytes = 64;
constexpr int64_t chunk_weights(uint32_t bits) { return kChunkBytes * 8 / bits; }

// ---- Products of few rows

// Maximum number of rows of a call, and the exact number of columns of each call.
inline constexpr int64_t kDotRows = 4, kDotColumns = 4;
// Kernels read whole vectors of parameters, so at least this many finite numbers must follow the parameters of
// the last block.
inline constexpr int64_t kParameterPadding = 16;

struct QuantizedDots {
  const float* a;  // rows of activations, in the order that QuantizedDotsKernels::arrange writes
  int64_t a_stride;
  const std::byte* w[kDotColumns];  // the first chunk of each column
  int64_t chunk_bytes;              // the distance between chunks of a column
  int64_t prefetch_bytes;           // the distance in bytes from a chunk to the chunk that is prefetched with it
  bool padded;                      // whether the last chunk of a column has kChunkBytes bytes
  int64_t depth, block;             // number of weights of a column, and number of weights of a block
  // Parameters as [column][parameter_stride]. zeros and minima may be null.
  const float *scales, *zeros, *minima;
  // a_sums[r * parameter_stride + b] is the sum of the activations of row r in block b. Kernels read a_sums
  // only if minima is not null.
  const float* a_sums;
  int64_t parameter_stride;
  float* out;
  int64_t out_stride;
};

// Computes out[r * out_stride + c] = sum over k of a[r, k] * W[c, k], where W[c, k] is the number for
// which weight k of column c stands.
using QuantizedDotsKernel = void (*)(const QuantizedDots& dots);

// The properties of a problem for which a kernel is compiled.
struct QuantizedForm {
  uint32_t bits;  // 8 or 4
  int64_t depth, block;
  bool zeros;          // whether there are zero points
  bool uniform_zeros;  // whether the zero points of a column are equal
};

struct QuantizedDotsKernels {
  // Returns the kernel for 1 to kDotRows rows, or null if no kernel supports blocks of this size.
  QuantizedDotsKernel (*find)(const QuantizedForm& form, int64_t rows);
  // Copies `depth` activations to the order in which kernels read them. Zeros fill the last chunk.
  // Returns whether the magnitude of each activation is at most `limit`.
  bool (*arrange)(uint32_t bits, const float* from, int64_t depth, float limit, float* to);
};

// ---- Panels

struct QuantizedPanel {
  const std::byte* w;  // the first chunk of the first column
  // The distances between groups of kDotColumns columns, between the columns of a group, and between the
  // chunks of a column.
  int64_t group_bytes, column_bytes, chunk_bytes;
  int64_t columns;           // number of columns, at most `width`
  int64_t depth;             // number of weights of a column
  int64_t block, block_end;  // weights per block; end of the first block, counted from the panel's first weight
  // Parameters as [block][width]. zeros and minima may be null.
  const float *scales, *zeros, *minima;
  int64_t width;      // a multiple of 4 and of the number of lanes
  float* out;         // [depth][width]; the kernel writes arbitrary finite numbers to columns past `columns`
  uint32_t* scratch;  // panel_scratch(width) words
};
constexpr int64_t panel_scratch(int64_t width) { return kChunkBytes / 4 * width; }

using QuantizedPanelKernel = void (*)(const QuantizedPanel& panel);

// These functions return kernels that are compiled for this processor. The kernels are null on
// targets without vectors.
QuantizedDotsKernels quantized_dots();
QuantizedPanelKernel quantized_panel(uint32_t bits);

}  // namespace backplane::onednn
