// SPDX-License-Identifier: Apache-2.0
// What a product is told, where its columns lie, and what becomes of its sums. Mirrors product.hpp.
//
// A product is sums[m,n] = sum over segments s and k of a[m,s,k] * b[s,k,n], for each matrix of a batch. A matrix product has one
// segment. A convolution (WINDOW 1; 3: transposed) has one for each element of its kernel: columns are places of the image that
// is written, k runs over channels. Its gradient by the weight (WINDOW 2) has one for each row of places: columns are elements
// of the weight, and k runs along the row, where b ends at the edges of the image.
#include "memory.glsl"
#include "dtype.glsl"
#include "activation.glsl"

#define WINDOW PACKED  // the first specialisation constant; OP is the activation, VARIANT the output's dtype, MODE the way

struct Matrices {
  uint64_t address;
  int64_t strides[8];
};
struct Product {
  uint rows, columns, depth, segments;
  uint matrices, matrix_rank;
  uint matrix_shape[8];
  uint depth_part, segment_part;  // of a part
  uint depth_parts;               // that a segment has
  uint first_part, parts;         // of this dispatch
  uint flags;
  uint padding[2];
  Matrices to, a, b, bias;
  int64_t out_row, out_column, a_row, a_depth, b_depth, b_column, bias_row, bias_column;
  uint64_t partial;  // sums of parts: part of the dispatch, matrix, row, column
  uint64_t immediates[3];
  // Convolutions only; the last dimension runs fastest.
  uvec4 column_shape, segment_shape;
  ivec4 column_step, segment_step, offset, divisor, extent;
  i64vec4 out_columns, image, a_segments;
  int64_t b_segment;  // of the first dimension
};
#define FLAG_PARTIAL 1u   // sums go to `partial` as they are
#define FLAG_CONTINUE 2u  // what is there is added to
#define FLAG_BIAS 4u
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Block { Product product; };
layout(push_constant, scalar) uniform Push { Block block; };
// Read once, by main: a load in a loop is not moved out of it, and Mesa's CPU driver loads lane by lane.
Product product;
void read_product() { product = block.product; }

#if IS_FLOAT
#define SUM float
#define FROM_BITS uintBitsToFloat
#define TO_BITS floatBitsToUint
#else
#define SUM int
#define FROM_BITS int
#define TO_BITS uint
#endif

uint64_t matrix_at(Matrices of, uint index) {
  uint64_t at = of.address;
  if (product.matrices == 1u) return at;
  for (uint d = product.matrix_rank; d-- > 0;) {
    const uint extent = product.matrix_shape[d];
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

// What a column is: of a window its place in `column_shape`. Past the end it is the last one.
uvec4 place_of(uint n) {
  n = min(n, product.columns - 1u);
  return WINDOW == 0 ? uvec4(n) : split(n, product.column_shape);
}

int64_t out_column_at(uvec4 at) {
  if (WINDOW == 0) return product.out_column * int64_t(at.x);
  int64_t offset = 0l;
  [[unroll]] for (uint d = 0; d < 4; ++d) offset += product.out_columns[d] * int64_t(at[d]);
  return offset;
}

// Column n of b in a segment.
struct Column {
  uint64_t at;    // of k = 0; where that is outside, of what may be read in its place
  uint64_t safe;  // may be read
  int first, end; // k for which there is something
};
Column column_at(uint64_t b, uvec4 place, uvec4 segment) {
  Column column;
  column.first = 0;
  column.end = 0x7FFFFFFF;
  column.safe = b;
  if (WINDOW == 0) {
    column.at = b + uint64_t(product.b_column * int64_t(place.x));
    return column;
  }
  int64_t offset = product.b_segment * int64_t(segment.x);
  bool inside = true;
  [[unroll]] for (uint d = 0; d < 4; ++d) {
    const int step = product.column_step[d] * int(place[d]) + product.segment_step[d] * int(segment[d]) + product.offset[d];
    if (WINDOW == 2 && d == 3) {
      // b_depth is this dimension's, times its stride.
      const int by = product.divisor[3];
      column.first = step < 0 ? (by - 1 - step) / by : 0;
      column.end = step >= product.extent[3] ? 0 : (product.extent[3] - step + by - 1) / by;
      offset += product.image[3] * int64_t(step);
      continue;
    }
    const int at = WINDOW == 3 ? step / product.divisor[d] : step;
    inside = inside && step >= 0 && at < product.extent[d] && (WINDOW != 3 || at * product.divisor[d] == step);
    offset += product.image[d] * int64_t(clamp(at, 0, product.extent[d] - 1));
  }
  column.at = b + uint64_t(offset);
  if (!inside) column.end = 0;
  return column;
}

// BP_ACTIVATION_* of ops.h.
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

void put(uint64_t to, SUM sum, uint64_t bias) {
#if IS_FLOAT
  if ((product.flags & FLAG_BIAS) != 0u) sum += value_of(load_bits(bias));
  sum = activated(sum);
  if (VARIANT == T_F32) store32(to, floatBitsToUint(sum)); else store_bits(to, bits_of(sum));
#else
  store32(to, uint(sum));
#endif
}

// Where a matrix's sums lie, and what goes there.
struct Target {
  uint64_t at, bias;
};
Target target_at(uint matrix, uint part) {
  Target target;
  if ((product.flags & FLAG_PARTIAL) != 0u) {
    const uint64_t matrix_elements = uint64_t(product.rows) * product.columns;
    target.at = product.partial + (uint64_t(part) * product.matrices + matrix) * matrix_elements * 4ul;
    target.bias = 0ul;
  } else {
    target.at = matrix_at(product.to, matrix);
    target.bias = matrix_at(product.bias, matrix);
  }
  return target;
}
uint64_t partial_at(Target target, uint m, uint n) {
  return target.at + (uint64_t(m) * product.columns + n) * 4ul;
}
SUM begin_sum(Target target, uint m, uint n) {
  if ((product.flags & FLAG_CONTINUE) == 0u || m >= product.rows || n >= product.columns) return SUM(0);
  return FROM_BITS(load32(partial_at(target, m, n)));
}
// `column` is out_column_at its place.
void end_sum(Target target, uint m, uint n, int64_t column, SUM sum) {
  if (m >= product.rows || n >= product.columns) return;
  if ((product.flags & FLAG_PARTIAL) != 0u) {
    store32(partial_at(target, m, n), TO_BITS(sum));
    return;
  }
  put(target.at + uint64_t(int64_t(m) * product.out_row + column), sum,
      target.bias + uint64_t(int64_t(m) * product.bias_row + int64_t(n) * product.bias_column));
}
