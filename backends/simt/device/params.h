// SPDX-License-Identifier: Apache-2.0
// The parameter structs of kernels, which host and kernels share byte for byte. The including file
// defines i32, u32, i64 and u64. The struct of each kernel begins with `offsets`, the byte offsets of
// the operands. A field that is a mask has bit i set if its description is true of operand i.
#pragma once

// Bytes that a lane of a GPU loads or stores at once.
#define SIMT_PACK_BYTES 16

// The maximum number of dimensions of a kernel's loops, and the maximum number of operands in the
// loops. All strides in this file are in elements.
#define SIMT_RANK 8
#define SIMT_OPERANDS 4

// Loops over the elements of operands with any strides.
struct NestParams {
  u64 offsets[SIMT_OPERANDS];
  u64 immediates[SIMT_OPERANDS];  // entry i is the value of operand i if the mask `immediate` contains i
  i64 strides[SIMT_OPERANDS][SIMT_RANK];
  u32 shape[SIMT_RANK];
  u32 rank;       // at least 1
  u32 count;      // number of elements
  u32 immediate;  // mask: the operand's value is in `immediates`
  u32 option;     // a number whose meaning the kernel defines
  i64 extra[6];   // numbers whose meaning the kernel defines
};
static_assert(sizeof(NestParams) == 416, "host and kernels must agree on the layout");

// Loops over rows. In each operand, the elements of a row are contiguous, or the row has one value.
// A group or a team of a group processes a chunk of a row at a time.
struct RowParams {
  u64 offsets[SIMT_OPERANDS];
  u64 immediates[SIMT_OPERANDS];
  i64 strides[SIMT_OPERANDS][SIMT_RANK];  // strides of the dimensions before the last
  u32 shape[SIMT_RANK];                   // extents of the dimensions before the last
  u32 rank;                               // number of dimensions before the last
  u32 columns;                            // extent of the last dimension
  u32 chunk, row_chunks, chunks;          // elements per chunk, chunks per row, chunks in total
  u32 immediate;
  u32 broadcast;  // mask: the operand has one value per row
  u32 option;
  u32 team;  // threads per chunk with SIMT_PACKS_ROWS; otherwise a whole group processes a chunk
  u32 reserved;
};
static_assert(sizeof(RowParams) == 392, "host and kernels must agree on the layout");

// Threads per group of the kernels that transpose blocks or tiles.
#define SIMT_BLOCK_THREADS 256

// Reductions of rows. `shape` and `strides` contain first the dimensions that enumerate rows, and then
// the dimensions within a row. If rows are divided into splits, a last launch combines the partial
// results of the splits. A tile consists of adjacent rows, whose indices differ only in the last
// dimension that enumerates rows.
struct ReduceParams {
  u64 offsets[3];             // output, input, partial results
  u64 immediate;              // the input's value, if `is_immediate` is not 0
  i64 strides[2][SIMT_RANK];  // strides of the output and of the input
  u32 shape[SIMT_RANK];
  u32 outer_rank, inner_rank;    // number of dimensions that enumerate rows, and within a row (at least 1)
  u32 rows, extent;              // number of rows, and elements of each row that the launch reads
  u32 splits, split_length;      // splits per row in this launch, elements per split
  u32 first_split, row_splits;   // index of the launch's first split, and splits per row in all launches
  u32 first_element;             // the index, within a row, of the first element that the launch reads
  u32 out_bytes;                 // bytes of an element of the output
  u32 is_immediate, is_partial;  // is_partial is not 0 if the launch stores partial results
  u32 tile;                      // rows per tile, a power of two
  u32 reserved;
};
static_assert(sizeof(ReduceParams) == 248, "host and kernels must agree on the layout");

#define SCAN_ITEMS 16  // adjacent elements that a thread scans at a time in the kernels that scan tiles
#define SCAN_SUMS 2u   // bit of `option`: the launch stores only the sums of splits

#define SIMT_BATCH_RANK 6
#define SIMT_GEMM_OPERANDS 8
// A batch of matrix products: c[m,n] is the sum of a[m,k] * b[k,n] over k, plus bias[n]. With
// split-K, operand c is the workspace. Its matrix `split * batches + batch` contains the partial sums
// of one split of one batch index. The kernel that combines the splits reads the workspace as operand a.
struct GemmParams {
  u64 offsets[SIMT_GEMM_OPERANDS];  // c, a, b, bias, and the operands `own` of gemm.h
  u64 immediates[SIMT_GEMM_OPERANDS];
  i64 batch_strides[3][SIMT_BATCH_RANK];  // strides of c, a and b
  i64 row_strides[3], column_strides[3];
  i64 bias_stride;
  u32 batch_shape[SIMT_BATCH_RANK];
  u32 batch_rank, batches;
  u32 rows, columns, depth;
  u32 immediate;            // mask: the operand's value is in `immediates`
  u32 out_bytes;            // bytes of an element of c
  u32 bias_bytes;           // bytes of an element of the bias, or 0 if there is no bias
  u32 activation;           // BP_ACTIVATION_*
  u32 splits, split_depth;  // splits of k, and elements per split
  u32 slices;               // in kernels for few rows, the sub-groups of a group that divide k among them
};
static_assert(sizeof(GemmParams) == 400, "host and kernels must agree on the layout");

// One step of adamw. The operands are the parameter, the first moment, the second moment and the
// gradient. Loops is NestParams or RowParams, whose `offsets` are unused.
template <class Loops>
struct AdamwParams {
  u64 offsets[7];  // the four operands, then the three scalars
  u32 scalars[3];  // f32 bits of the learning rate and of the corrections of both moments
  u32 immediate;   // bit i is set if the value of scalar i is in `scalars`, not in device memory
  float beta1, complement1, beta2, complement2;  // a complement is 1 - beta
  float epsilon, weight_decay;
  Loops loops;
};
static_assert(sizeof(AdamwParams<NestParams>) == 512, "host and kernels must agree on the layout");
static_assert(sizeof(AdamwParams<RowParams>) == 488, "host and kernels must agree on the layout");

// The rotations of `rope`. `rows` contains the loops over rows of y, x and position. These loops omit
// one dimension, along which positions are equal. The extent of this dimension is `repeats`.
struct RopeParams {
  NestParams rows;
  // Entry 31 is 1 / (2 pi), and entry b is base^(-2^b / pairs), in units of 2^-64.
  u64 powers[32];
  i64 repeat_strides[2];  // strides of y and x along the omitted dimension
  i64 strides[2];         // strides of y and x along the last dimension
  u32 repeats, repeat_chunk, repeat_chunks;
  u32 row_chunk, row_chunks;
  u32 pairs, depth;  // number of pairs, extent of the last dimension
  u32 interleaved;
  u32 wide;  // not 0 if positions are i64
  u32 reserved;
};
static_assert(sizeof(RopeParams) == 744, "host and kernels must agree on the layout");

// Copies of whole rows that an index selects. Operands: out, index and x.
struct GatherRowsParams {
  RowParams rows;
  i64 extent, stride;  // extent and stride of x along the axis
};
static_assert(sizeof(GatherRowsParams) == 408, "host and kernels must agree on the layout");

// Windows over images of three dimensions. If an image has fewer dimensions, the first dimensions
// have extent 1. Loops is NestParams or RowParams. A plane is the image of one batch index and
// channel. The operands are y, indices, the first element of a plane of x, and a counter. The counter
// has no memory: its offset plus its position is the index of a window within its plane.
template <class Loops>
struct PoolParams {
  Loops loops;
  i64 strides[3];  // strides of x along the image
  i32 image[3], window[3], stride[3], dilation[3], begin[3];
  u32 rows, columns;  // the last two extents of y
  u32 count_padding;  // not 0 if padding counts in the divisor of avg_pool
  u32 index_bytes;    // bytes of an index, or 0 if there are no indices
  u32 reserved;
};
static_assert(sizeof(PoolParams<NestParams>) == 520, "host and kernels must agree on the layout");
static_assert(sizeof(PoolParams<RowParams>) == 496, "host and kernels must agree on the layout");

// A matrix product in which b contains quantized weights. The operands `own` are the weights'
// scale, the weights' zero point, a third operand, and the zero point of a. The third operand is
// the weights' minimum if a is float, and the scale of a if a is integer.
struct QuantizedParams {
  GemmParams gemm;
  i64 column_strides[3], block_strides[3];  // strides of the weights' scale, zero point and minimum
  i64 row_strides[2];                       // strides of the scale and the zero point of a
  u32 bits;                                 // bits per weight
  u32 block;                                // elements of k that share a scale
  u32 given;                                // bit i is set if operand i of `own` is present
  u32 types[4];                             // dtypes of c, bias, scale and the third operand; 0: f32, 1: f16, 2: bf16
  u32 block_multiplier, block_shift;        // k / block is (k * block_multiplier) >> block_shift
};
static_assert(sizeof(QuantizedParams) == 504, "host and kernels must agree on the layout");

// An exact division of numbers below 2^31: x / divisor is (x * multiplier) >> shift, in 64 bits.
struct DivisorParams {
  u32 divisor, multiplier, shift, reserved;
};
static_assert(sizeof(DivisorParams) == 16, "host and kernels must agree on the layout");

// Bits of ConvParams::layout.
#define CONV_A_QUADS 1u  // four adjacent terms of a are contiguous, and begin at multiples of 4 elements
#define CONV_B_PLAIN 2u  // k has no dimensions along the image, and all positions are inside the image
// Convolutions and their gradients as GEMMs whose operand b consists of windows of an image: c[m,n]
// is the sum of a[m,k] * b[k,n] over k. The column index n combines n[0], a channel or batch index,
// with n[1] to n[3], indices along the image. k also combines k[0], a channel or batch index, with
// k[1] to k[3]. A term is one value of k. The position of b[k,n] along dimension d of the image is
// column_step[d] * n[d] + depth_step[d] * k[d] + origin[d]. Elements outside the image are 0.
//
// A transposed convolution with the stride s divides the positions of c into phases, and has one GEMM
// per phase. The positions of a phase are s apart. They use the elements (taps) of the convolution
// kernel that are s / gcd(s, dilation) apart. Other convolutions have one phase, and s is 1.
struct ConvParams {
  u64 offsets[5];                 // byte offsets of c, a, b, bias and the partial sums
  u64 immediates[4];              // values of c, a, b and bias; c is never an immediate
  i64 group_strides[4];           // strides between groups, of c, a, b and bias
  i64 row_strides[4];             // strides along m: of c, of a, unused, of bias
  i64 c_columns[4], a_depths[4];  // strides of c along the column index n, and strides of a along k
  i64 c_positions[4], a_taps[4];  // strides of c between phases, and strides of a between taps
  i64 b_column, b_depth;          // strides of b along n[0] and along k[0]
  i64 image[4];                   // strides of b along the image, which has dimensions 1 to 3
  DivisorParams column_shape[4], depth_shape[4];
  i32 column_step[4], depth_step[4], origin[4], extent[4];
  i32 stride[4], common[4], period[4];  // s, gcd(s, dilation), s / gcd
  i32 inverse[4];                       // the inverse of dilation / gcd modulo s / gcd
  i32 taps[4], c_extent[4];             // extents of the convolution kernel and of c
  u32 phases[4];                        // number of phases per dimension
  u32 rows, columns, depth;             // extents of one GEMM
  u32 matrices;                         // number of GEMMs: groups of channels * phases of all dimensions
  u32 splits, split_depth;              // splits of k, terms per split
  u32 immediate;                        // mask: the operand's value is in `immediates`
  u32 activation;                       // BP_ACTIVATION_*
  u32 bias_bytes;                       // bytes of an element of the bias; 0 if the bias is absent
  // The numbers of adjacent terms of a, adjacent columns of b, and adjacent terms of b that are contiguous in memory.
  u32 a_run, column_run, term_run;
  u32 b_by_term;  // not 0 if adjacent lanes load adjacent terms of b instead of adjacent columns
  u32 layout;     // a combination of CONV_*
};
static_assert(sizeof(ConvParams) == 672, "host and kernels must agree on the layout");
