// SPDX-License-Identifier: Apache-2.0
// The parameters of a GEMM, the addresses of its columns, and the epilogue of its sums. The
// struct Gemm has the fields of GemmParams in ops/gemm_params.hpp.
//
// For each matrix of a batch, a GEMM computes c[m,n] as the sum of a[m,s,k] * b[s,k,n] over all
// segments s and all k. A plain matrix multiplication has one segment.
//
// WINDOW 1 means a convolution or one of its gradients. Columns are positions in an image, or elements of the weight.
// Each segment shifts all columns by an offset in the image. Segments run over elements of the convolution kernel, and
// k runs over channels. With FLAG_K_ALONG_IMAGE, k runs along the last dimension of the image instead, and segments run
// over all other terms. Elements outside the image count as 0.
//
// WINDOW 2 means a transposed convolution. Let s be the stride along a dimension, and g the greatest common divisor of
// s and the dilation. Output positions that are s apart use the same elements of the convolution kernel, and these
// elements are s / g apart. Such positions form a separate matrix, called a phase.
//
// With QUANTIZED, `b` holds weights of WEIGHT_BITS bits. With float activations, a segment is a
// block of k that shares a scale and a zero point. The last block may be shorter. With integer
// activations, there is one segment, and the exact sums are scaled at the end.
#include "memory.glsl"
#include "dtype.glsl"
#include "activation.glsl"

// OP is the activation function. For integer activations, bits 0 and 1 of OP say whether `a` and
// `b` have zero points. VARIANT is the output's dtype, and MODE is the algorithm.
#ifdef QUANTIZED
#define WINDOW 0
#define WEIGHT_BITS LAYOUT
#if IS_FLOAT
#define FLOAT_ACTIVATIONS
#else
#define INTEGER_ACTIVATIONS
#define ZERO_OF_A ((OP & 1u) != 0u)
#define ZERO_OF_B ((OP & 2u) != 0u)
#endif
#else
#define WINDOW LAYOUT
#endif

struct Matrices {
  uint64_t address;
  int64_t strides[8];
};
struct Gemm {
  uint rows, columns, depth, segments;
  uint matrices, matrix_rank;
  uint matrix_shape[8];
  uint split_depth, split_segments;  // depth and segments per split
  uint depth_splits;                 // splits per segment
  uint first_split, splits;          // the dispatch's first split and number of splits
  uint flags;
  int depth_step;                   // distance along the image from one k to the next
  uint first_matrix, first_column;  // the dispatch's first matrix and column
  uint all_rows;                    // rows of a whole matrix
  Matrices c, a, b, bias;
  int64_t out_row, out_column, a_row, a_depth, b_depth, b_column, bias_row, bias_column;
  uint64_t partials;  // address of the partial sums [split of the dispatch][matrix][row][column]
  uint64_t immediates[7];
  // The fields of convolutions. Dimensions 1 to 3 are spatial, and the last dimension varies fastest.
  uvec4 column_shape, segment_shape;
  ivec4 column_step, segment_step, offset, extent;
  i64vec4 out_columns, image, a_segments;
  int64_t b_segment;  // stride of the first dimension of segments in `b`
  // The fields of WINDOW 2. stride: s. gcd: g. period: s / g. inverse: the inverse of dilation / g
  // modulo s / g. kernel: extents of the convolution kernel. out_extent: extents of the output.
  ivec4 stride, gcd, period, inverse, kernel, out_extent;
  // The fields of quantized weights. a_block and b_block are strides between blocks. b_byte is the
  // stride between bytes of a column of 4-bit weights. all_depth is the depth of a row of `a`, over
  // all blocks. scale and zero are the addresses of scales and zero points.
  int64_t a_block, b_block, b_byte;
  uint all_depth, padding;
  uint64_t scale, zero;  // `zero` may be null
  int64_t scale_column, scale_block, zero_column, zero_block;
  uint64_t a_scale, a_zero;  // only for integer activations; index: matrix * all_rows + row
  int64_t a_scale_row, a_zero_row;
};
#define FLAG_PARTIAL 1u     // stores raw sums to `partials`
#define FLAG_ACCUMULATE 2u  // adds to the sums in `partials`
#define FLAG_BIAS 4u
#define FLAG_K_ALONG_IMAGE 8u
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Block { Gemm gemm; };
layout(push_constant, scalar) uniform Push { Block block; };
#ifdef PARAMS_IN_PLACE
// Kernels for GPUs read the parameters in place, because their loops do not use the parameters. The compiler would have
// to place a copy in memory, because some parameters have a dynamic index.
#define gemm block.gemm
void read_params() {}
#else
// A copy of the parameters, which main() reads once per thread. Without the copy, loops would load parameters
// repeatedly, because compilers do not move these loads out of loops. Mesa's CPU driver executes each load separately
// for each thread.
Gemm gemm;
void read_params() { gemm = block.gemm; }
#endif

#if IS_FLOAT
#define ACCUMULATOR float
#define FROM_BITS uintBitsToFloat
#define TO_BITS floatBitsToUint
#else
#define ACCUMULATOR int
#define FROM_BITS int
#define TO_BITS uint
#endif

// Returns the address of matrix `index` of the dispatch.
uint64_t matrix_at(Matrices of, uint index) {
  uint64_t at = of.address;
  index += gemm.first_matrix;
  for (uint d = gemm.matrix_rank; d-- > 0;) {
    const uint extent = gemm.matrix_shape[d];
    at += uint64_t(of.strides[d] * int64_t(index % extent));
    index /= extent;
  }
  return at;
}

uvec4 split(uint index, uvec4 shape) {
  uvec4 at;
  at.w = index % shape[3];
  index /= shape[3];
  at.z = index % shape[2];
  index /= shape[2];
  at.y = index % shape[1];
  at.x = index / shape[1];
  return at;
}

// ---- phases -------------------------------------------------------------------------------------
struct Phase {
  ivec3 at;     // the phase's first position
  // The first element of the convolution kernel that the phase's positions use, or the extent of
  // the convolution kernel if there is none.
  ivec3 tap;
  ivec3 shift;  // offset from a position's index in the phase to the image position of the tap
};
Phase phase;  // the phase of the current matrix
void begin_matrix(uint matrix) {
  if (WINDOW != 2) return;
  const uvec4 shape = uvec4(1, gemm.matrix_shape[1], gemm.matrix_shape[2], gemm.matrix_shape[3]);
  phase.at = ivec3(split(gemm.first_matrix + matrix, shape).yzw);
  [[unroll]] for (uint i = 0; i < 3; ++i) {
    const uint d = i + 1;
    const int x = phase.at[i] + gemm.offset[d], period = gemm.period[d];
    const int y = (x / gemm.gcd[d] % period + period) % period;
    const bool divisible = x % gemm.gcd[d] == 0;
    phase.tap[i] = divisible ? int(uint64_t(y) * uint64_t(gemm.inverse[d]) % uint64_t(period)) : gemm.kernel[d];
    phase.shift[i] = (x + gemm.segment_step[d] * gemm.gcd[d] * phase.tap[i]) / gemm.stride[d];
  }
}

// ---- segments -----------------------------------------------------------------------------------
struct Segment {
  uint64_t a, b;   // byte offsets of the segment in a row of `a` and in a column of `b`
  ivec3 position;  // offset of the segment from a column's position, in dimensions 1 to 3
  bool none;       // whether the segment contributes nothing
#ifdef FLOAT_ACTIVATIONS
  uint block;
  int depth;
#endif
};
Segment segment_at(uvec4 index) {
#ifdef FLOAT_ACTIVATIONS
  const uint first = index.w * gemm.depth;
  return Segment(uint64_t(gemm.a_block * int64_t(index.w)), uint64_t(gemm.b_block * int64_t(index.w)), ivec3(0), false,
                 index.w, int(min(gemm.depth, gemm.all_depth - first)));
#else
  Segment segment = Segment(0ul, 0ul, ivec3(0), false);
  if (WINDOW == 0) return segment;
  ivec4 element = ivec4(index);
  if (WINDOW == 2) {
    element.yzw = phase.tap + gemm.period.yzw * element.yzw;
    segment.none = any(greaterThanEqual(element.yzw, gemm.kernel.yzw));
  }
  segment.position = gemm.segment_step.yzw * ivec3(index.yzw);
  segment.b = uint64_t(gemm.b_segment * int64_t(index.x));
  [[unroll]] for (uint d = 0; d < 4; ++d) {
    segment.a += uint64_t(gemm.a_segments[d] * int64_t(element[d]));
    if (d > 0) segment.b += uint64_t(gemm.image[d] * int64_t(segment.position[d - 1]));
  }
  return segment;
#endif
}
#ifdef FLOAT_ACTIVATIONS
uvec4 first_segment(uint s) { return uvec4(0, 0, 0, s); }
#else
uvec4 first_segment(uint s) { return WINDOW == 0 ? uvec4(0) : split(s, gemm.segment_shape); }
#endif
// Increments the index without a division, because CPUs have no vector division.
uvec4 next_segment(uvec4 index) {
  [[unroll]] for (uint d = 3; d > 0; --d) {
    index[d] += 1u;
    if (index[d] != gemm.segment_shape[d]) return index;
    index[d] = 0u;
  }
  index[0] += 1u;
  return index;
}

// ---- columns ------------------------------------------------------------------------------------
// Returns the index of the dispatch's column `n` among all columns or, with a WINDOW, in
// `column_shape`. A column past the end gets the last column's index.
uvec4 column_index(uint n) {
  n = min(n, gemm.columns - 1u) + gemm.first_column;
  return WINDOW == 0 ? uvec4(n) : split(n, gemm.column_shape);
}

const int64_t kNoColumn = int64_t(0x8000000000000000ul);
// Returns the byte offset of a column in c, or kNoColumn if the phase does not contain the column.
int64_t out_column_at(uvec4 index) {
  if (WINDOW == 0) return gemm.out_column * int64_t(index.x);
  if (WINDOW == 2 && any(greaterThanEqual(phase.at + gemm.stride.yzw * ivec3(index.yzw), gemm.out_extent.yzw)))
    return kNoColumn;
  int64_t offset = 0l;
  [[unroll]] for (uint d = 0; d < 4; ++d) offset += gemm.out_columns[d] * int64_t(index[d]);
  return offset;
}

// The part of a column of `b` that does not depend on the segment.
struct ColumnBase {
  uint64_t at;     // address of the element at k = 0, which must not be read if it is outside the image
  ivec3 position;  // position in the image's dimensions 1 to 3
  int first, end;  // elements exist for k from `first` to `end` - 1
#ifdef FLOAT_ACTIVATIONS
  uint column;
#endif
};
ColumnBase column_base_at(uint64_t b, uvec4 index) {
#ifdef FLOAT_ACTIVATIONS
  return ColumnBase(b + uint64_t(gemm.b_column * int64_t(index.x)), ivec3(0), 0, 0x7FFFFFFF, index.x);
#else
  ColumnBase base = ColumnBase(b, ivec3(0), 0, 0x7FFFFFFF);
  if (WINDOW == 0) {
    base.at += uint64_t(gemm.b_column * int64_t(index.x));
    return base;
  }
  ivec4 position = gemm.column_step * ivec4(index);
  if (WINDOW == 2) position.yzw += phase.shift; else position += gemm.offset;
  [[unroll]] for (uint d = 0; d < 4; ++d) base.at += uint64_t(gemm.image[d] * int64_t(position[d]));
  if ((gemm.flags & FLAG_K_ALONG_IMAGE) != 0u) {
    const int by = gemm.depth_step, x = position.w, extent = gemm.extent[3];
    base.first = x < 0 ? (by - 1 - x) / by : 0;
    base.end = x >= extent ? 0 : (extent - x + by - 1) / by;
    position.w = 0;
  }
  base.position = position.yzw;
  return base;
#endif
}

// A column of `b` in a segment.
struct Column {
  uint64_t at;     // address of the element at k = 0
  int first, end;  // elements exist for k from `first` to `end` - 1
#ifdef FLOAT_ACTIVATIONS
  float scale, zero;
  uint first_of_block;  // the first k of the block
#endif
};
#ifdef QUANTIZED
// Returns the value of a weight or zero point. The byte is i8 if weights have 8 bits, else u8.
int whole(uint byte_) { return WEIGHT_BITS == 8 ? int(byte_ << 24) >> 24 : int(byte_); }
uint64_t byte_of_4_bits(uint64_t column, uint k) { return column + uint64_t(gemm.b_byte * int64_t(k >> 1)); }
uint value_of_4_bits(uint byte_, uint k) { return byte_ >> ((k & 1u) * 4u) & 15u; }
#endif
#ifdef FLOAT_ACTIVATIONS
Column column_at(ColumnBase base, Segment segment) {
  const int64_t n = int64_t(base.column), s = int64_t(segment.block);
  const float scale = value_of(load_bits(gemm.scale + uint64_t(gemm.scale_column * n + gemm.scale_block * s)));
  float zero = 0.0;
  if (gemm.zero != 0ul) zero = float(whole(load8(gemm.zero + uint64_t(gemm.zero_column * n + gemm.zero_block * s))));
  return Column(base.at + segment.b, 0, 0x7FFFFFFF, scale, zero, segment.block * gemm.depth);
}

float weight_at(Column column, int k) {
  if (WEIGHT_BITS == 8) return (float(whole(load8(column.at))) - column.zero) * column.scale;
  const uint of_row = column.first_of_block + uint(k);
  const uint byte_ = load8(byte_of_4_bits(column.at, of_row));
  return (float(value_of_4_bits(byte_, of_row)) - column.zero) * column.scale;
}
#else
Column column_at(ColumnBase base, Segment segment) {
  Column column = Column(base.at + segment.b, base.first, base.end);
  if (WINDOW != 0) {
    // The conversion to unsigned makes negative positions large, so that they exceed the extent.
    const uvec3 position = uvec3(base.position + segment.position);
    if (any(greaterThanEqual(position, uvec3(gemm.extent.yzw)))) column.end = 0;
  }
  return column;
}
#endif

#ifdef INTEGER_ACTIVATIONS
float number_at(uint64_t at) {  // loads a number of the output's dtype
  if (VARIANT == T_F32) return uintBitsToFloat(load32(at));
  const uint bits = load16(at);
  return uintBitsToFloat(VARIANT == T_F16 ? f32_of_f16(bits) : bits << 16);
}
// Returns the index of row m of the dispatch's matrix `matrix` among the rows of all matrices.
int64_t row_of_all(uint matrix, uint m) {
  return int64_t(gemm.first_matrix + matrix) * int64_t(gemm.all_rows) + int64_t(m);
}
int zero_of_row(uint matrix, uint m) {
  return ZERO_OF_A ? int(value_of(load_bits(gemm.a_zero + uint64_t(gemm.a_zero_row * row_of_all(matrix, m))))) : 0;
}
int zero_of_column(uint n) {
  return ZERO_OF_B ? whole(load8(gemm.zero + uint64_t(gemm.zero_column * int64_t(gemm.first_column + n)))) : 0;
}

void put(uint64_t to, ACCUMULATOR sum, uint64_t bias, uint matrix, uint m, uint n) {
  precise float y = number_at(gemm.a_scale + uint64_t(gemm.a_scale_row * row_of_all(matrix, m))) *
                    number_at(gemm.scale + uint64_t(gemm.scale_column * int64_t(gemm.first_column + n)));
  y *= float(sum);
  if ((gemm.flags & FLAG_BIAS) != 0u) y += number_at(bias);
  const uint bits = floatBitsToUint(y);
  if (VARIANT == T_F32) store32(to, bits); else store16(to, VARIANT == T_F16 ? f16_of_f32(bits) : bf16_of_f32(bits));
}
#else
// Values of BP_ACTIVATION_* in ops.h.
const uint BP_ACTIVATION_RELU = 1, BP_ACTIVATION_GELU_ERF = 2, BP_ACTIVATION_GELU_TANH = 3, BP_ACTIVATION_SILU = 4,
           BP_ACTIVATION_SIGMOID = 5;

float activated(float x) {
  switch (OP) {
    case BP_ACTIVATION_RELU: return nan_bits(floatBitsToUint(x)) || x > 0.0 ? x : 0.0;
    case BP_ACTIVATION_GELU_ERF: return gelu_erf_f32(x);
    case BP_ACTIVATION_GELU_TANH: return gelu_tanh_f32(x);
    case BP_ACTIVATION_SILU: return silu_f32(x);
    case BP_ACTIVATION_SIGMOID: return sigmoid_f32(x);
  }
  return x;
}

void put(uint64_t to, ACCUMULATOR sum, uint64_t bias, uint matrix, uint m, uint n) {
#if IS_FLOAT
  if ((gemm.flags & FLAG_BIAS) != 0u) sum += value_of(load_bits(bias));
  sum = activated(sum);
  if (VARIANT == T_F32) store32(to, floatBitsToUint(sum)); else store_bits(to, bits_of(sum));
#else
  store32(to, uint(sum));
#endif
}
#endif

uint64_t bias_at(uint64_t bias, uint m, uint n) {
  return bias + uint64_t(int64_t(m) * gemm.bias_row + int64_t(gemm.first_column + n) * gemm.bias_column);
}

// The destination of a matrix's sums.
struct Target {
  uint64_t at, bias;
  uint matrix;
};
Target target_at(uint matrix, uint split) {
  Target target;
  target.matrix = matrix;
  if ((gemm.flags & FLAG_PARTIAL) != 0u) {
    const uint64_t matrix_elements = uint64_t(gemm.rows) * gemm.columns;
    target.at = gemm.partials + (uint64_t(split) * gemm.matrices + matrix) * matrix_elements * 4ul;
    target.bias = 0ul;
  } else {
    target.at = matrix_at(gemm.c, matrix);
    target.bias = matrix_at(gemm.bias, matrix);
  }
  return target;
}
uint64_t partial_at(Target target, uint m, uint n) {
  return target.at + (uint64_t(m) * gemm.columns + n) * 4ul;
}
ACCUMULATOR load_accumulator(Target target, uint m, uint n) {
  if ((gemm.flags & FLAG_ACCUMULATE) == 0u || m >= gemm.rows || n >= gemm.columns) return ACCUMULATOR(0);
  return FROM_BITS(load32(partial_at(target, m, n)));
}
// `column` is the result of out_column_at for column n.
void store_result(Target target, uint m, uint n, int64_t column, ACCUMULATOR sum) {
  if (m >= gemm.rows || n >= gemm.columns) return;
  if ((gemm.flags & FLAG_PARTIAL) != 0u) {
    store32(partial_at(target, m, n), TO_BITS(sum));
    return;
  }
  if (WINDOW == 2 && column == kNoColumn) return;
  put(target.at + uint64_t(int64_t(m) * gemm.out_row + column), sum, bias_at(target.bias, m, n), target.matrix, m, n);
}
