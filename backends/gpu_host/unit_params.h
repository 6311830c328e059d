// SPDX-License-Identifier: Apache-2.0
// The parameters of kernels that compute matrix products on matrix units, which host and kernels share byte for byte.
// The including file defines u32, i64 and u64.
#pragma once

#define UNIT_OPERANDS 5
#define UNIT_DEPTH 64    // elements of k per step of a kernel
#define UNIT_COMBINED 4  // elements of a row that a thread combines at once, in a module with tensor maps
// A batch of matrix products: c[m,n] is the sum of a[m,k] * b[k,n] over k, plus bias[n]. Rows of c are contiguous. The
// name of a kernel states along which index the elements of a and b are contiguous. Strides are in elements.
struct UnitParams {
  u64 offsets[UNIT_OPERANDS];  // c, a, b, bias, and the sums of splits
  i64 batch_strides[3];        // strides of c, a and b between matrices
  i64 pitches[3];              // strides of c, a and b between lines of contiguous elements
  u32 rows, columns, depth, batches;
  u32 row_tiles, column_tiles;  // tiles of a matrix of c
  u32 splits, split_depth;      // splits of k, and elements per split, a multiple of UNIT_DEPTH
  u32 c_bytes;                  // bytes of an element of c: 4 for f32, otherwise 2
  u32 bias_bytes;               // bytes of an element of the bias, or 0 if there is no bias
  u32 activation;               // BP_ACTIVATION_*
  u32 reserved;
};
static_assert(sizeof(UnitParams) == 136, "host and kernels must agree on the layout");
