// SPDX-License-Identifier: Apache-2.0
// Batched matrix products with a bias and an activation. There are three kernels:
// - tiles: A sub-group computes 8 rows and 2 columns per lane. Up to 16 sub-groups of a group
//   compute different rows of the same columns. Local memory contains tiles of both operands.
// - rows: A sub-group computes 1 or 8 rows, and 16 / rows columns per lane, without tiles.
// - dots: A sub-group computes 8 or 16 elements of c, and distributes k over its lanes.
// With split-K, a second launch adds the partial sums of the splits.
#pragma once
#include "patch.h"

#define GEMM_ROWS 8            // rows of a sub-group with `tiles`
#define GEMM_OUTPUTS 16        // elements of c per lane with `tiles` and `rows`
#define GEMM_DEPTH 32          // elements of k per step with `tiles`
#define GEMM_BARRIER_DEPTH 64  // elements of k between barriers with `rows`
#define GEMM_MAX_GROUP 256     // threads
// Elements of local memory with `tiles`. A group has at most 128 rows, and rows * width is at most
// 2048.
#define GEMM_LOCAL 5152

// The operands in memory. `own` contains further operands, which each family of kernels defines.
struct GemmPointers {
  Pointer c, a, b, bias, own[4];
};

// A tile of c in one split of one batch index.
struct Tile {
  i64 c, a, b;      // positions of the batch index's matrices, in elements
  u32 matrix;       // split * batches + batch
  u32 begin, end;   // the split's range of k
  u32 row, column;  // the first row and column
};
SIMT_FN u32 gemm_tiles(const GemmParams& p, u32 tile_rows, u32 tile_columns) {
  return (p.rows + tile_rows - 1) / tile_rows * ((p.columns + tile_columns - 1) / tile_columns) * p.batches * p.splits;
}
SIMT_FN void locate_matrix(const GemmParams& p, u32 batch, Tile& tile) {
  tile.c = tile.a = tile.b = 0;
  for (u32 d = p.batch_rank; d-- > 0;) {
    const u32 quotient = batch / p.batch_shape[d], coordinate = batch - quotient * p.batch_shape[d];
    batch = quotient;
    tile.c += p.batch_strides[0][d] * coordinate;
    tile.a += p.batch_strides[1][d] * coordinate;
    tile.b += p.batch_strides[2][d] * coordinate;
  }
}
SIMT_FN Tile tile_of(const GemmParams& p, u32 index, u32 tile_rows, u32 tile_columns) {
  Tile out;
  const u32 row_tiles = (p.rows + tile_rows - 1) / tile_rows;
  const u32 column_tiles = (p.columns + tile_columns - 1) / tile_columns;
  const u32 rest = index / row_tiles;
  out.row = (index - rest * row_tiles) * tile_rows;
  out.matrix = rest / column_tiles;
  out.column = (rest - out.matrix * column_tiles) * tile_columns;
  const u32 split = out.matrix / p.batches;
  locate_matrix(p, out.matrix - split * p.batches, out);
  out.begin = split * p.split_depth;
  out.end = smaller(out.begin + p.split_depth, p.depth);
  return out;
}

template <class T>
SIMT_FN void put_bits(Pointer line, i64 stride, u32 offset, bool inside, T bits) {
  SIMT_GLOBAL T* to = (SIMT_GLOBAL T*)line;
  if (stride == 1) {
    if (inside) to[offset] = bits;
  } else {
    if (inside) to[stride * offset] = bits;
  }
}
#if SIMT_IS_FLOAT
// Returns the bias of a column, in f32.
SIMT_FN float bias_at(const GemmParams& p, Pointer bias, i64 column) {
  typedef SIMT_T::Bits Bits;
  if ((p.immediate >> 3 & 1u) != 0) {
    return p.bias_bytes == 4 ? float_of_bits((u32)p.immediates[3]) : SIMT_T::value((Bits)p.immediates[3]);
  }
  if (p.bias_bytes == 4) return float_of_bits(at_offset<u32>(bias, p.offsets[3])[p.bias_stride * column]);
  return SIMT_T::value(at_offset<Bits>(bias, p.offsets[3])[p.bias_stride * column]);
}
#endif
// Stores in c the result that Product::finish() computes from `sum`. With split-K, stores `sum` in the workspace
// instead. `column` + `offset` is the column of the sum. The class `Product` describes the operator.
template <class Product>
SIMT_FN void store_sum(const typename Product::Params& params, const GemmPointers& at, const Tile& tile, u32 row,
                       u32 column, u32 offset, bool inside, Number sum) {
  const GemmParams& p = Product::gemm(params);
  if (p.splits == 1) {
    Product::finish(params, at, tile, row, column, offset, inside, sum);
  } else {
    const u64 to = ((u64)tile.matrix * p.rows + row) * p.columns + column;
    put_bits<u32>(at.c + p.offsets[0] + 4 * to, 1, offset, inside, number_bits(sum));
  }
}
// Adds the partial sums of each element of c. A sub-group processes four elements per lane.
template <class Product>
SIMT_FN void gemm_combine(const typename Product::Params& params, const GemmPointers& at) {
  const GemmParams& p = Product::gemm(params);
  const u64 count = (u64)p.batches * p.rows * p.columns;
  const u32 chunks = (p.columns + 4 * width() - 1) / (4 * width()), items = chunks * p.batches * p.rows;
  for (u32 item = group_id() * subgroups() + subgroup(); item < items; item += group_count() * subgroups()) {
    const u32 line = item / chunks, batch = line / p.rows, first = (item - line * chunks) * 4 * width();
    Tile tile;
    tile.matrix = batch;
    locate_matrix(p, batch, tile);
    SIMT_GLOBAL const Number* from = at_offset<Number>(at.a, p.offsets[1]) + (u64)line * p.columns;
    for (u32 i = 0; i < 4; ++i) {
      const u32 column = first + i * width();
      const bool in_row = column + lane() < p.columns;
      Number sum = 0;
      for (u32 s = 0; s < p.splits; ++s) {
        if (in_row) sum += (from + count * s + column)[lane()];
      }
      Product::finish(params, at, tile, line - batch * p.rows, column, lane(), in_row, sum);
    }
  }
}

// ---- tiles --------------------------------------------------------------------------------------

template <class Type>
SIMT_FN Patch<Type> patch_of(const GemmParams& p, Pointer base, int operand, i64 at) {
  Patch<Type> out;
  out.from = at_offset<typename Type::Bits>(base, p.offsets[operand]) + at;
  out.immediate = (p.immediate >> operand & 1u) != 0;
  out.value = (typename Type::Bits)p.immediates[operand];
  return out;
}
SIMT_FN u32 inside(u32 first, u32 end) { return first < end ? end - first : 0; }

// Copies `tile_rows` rows and GEMM_DEPTH columns of a to local memory. There, rows vary fastest if `by_k`
// is true, and k varies fastest otherwise.
template <class Type>
SIMT_FN void load_matrix_a(const GemmParams& p, Pointer a, const Tile& tile, u32 k, u32 tile_rows, bool by_k,
                           SIMT_LOCAL Number* to) {
  const i64 by_row = p.row_strides[1], by_column = p.column_strides[1];
  Patch<Type> patch = patch_of<Type>(p, a, 1, tile.a + by_row * tile.row + by_column * k);
  const u32 rows = smaller(inside(tile.row, p.rows), tile_rows), depth = inside(k, tile.end);
  patch.line_stride = by_k ? by_column : by_row;
  patch.stride = by_k ? by_row : by_column;
  patch.lines = by_k ? GEMM_DEPTH : tile_rows;
  patch.length = by_k ? tile_rows : GEMM_DEPTH;
  patch.inside_lines = by_k ? depth : rows;
  patch.inside_length = by_k ? rows : depth;
  if (patch.stride == 1) {
    load_patch<true>(patch, to, patch.length, 1);
  } else {
    load_patch<false>(patch, to, patch.length, 1);
  }
}
// Copies GEMM_DEPTH rows and `tile_columns` columns of b to local memory. There, columns vary fastest,
// and rows are `pitch` apart. If `pitch` is not `tile_columns`, b is transposed: each of its columns is
// contiguous in global memory.
template <class Type>
SIMT_FN void load_matrix_b(const GemmParams& p, Pointer b, const Tile& tile, u32 k, u32 tile_columns, u32 pitch,
                           SIMT_LOCAL Number* to) {
  const i64 by_row = p.row_strides[2], by_column = p.column_strides[2];
  Patch<Type> patch = patch_of<Type>(p, b, 2, tile.b + by_row * k + by_column * tile.column);
  const bool by_columns = pitch != tile_columns;
  const u32 depth = inside(k, tile.end), columns = smaller(inside(tile.column, p.columns), tile_columns);
  patch.line_stride = by_columns ? by_column : by_row;
  patch.stride = by_columns ? by_row : by_column;
  patch.lines = by_columns ? tile_columns : GEMM_DEPTH;
  patch.length = by_columns ? GEMM_DEPTH : tile_columns;
  patch.inside_lines = by_columns ? columns : depth;
  patch.inside_length = by_columns ? depth : columns;
  if (by_columns) {
    load_patch<true>(patch, to, 1, pitch);
  } else if (patch.stride == 1) {
    load_patch<true>(patch, to, pitch, 1);
  } else {
    load_patch<false>(patch, to, pitch, 1);
  }
}

struct Sums {
  Number first[GEMM_ROWS], second[GEMM_ROWS];
};
// Multiplies `depth` columns of a by as many rows of b, and adds the products to `sums`.
template <bool by_k>
SIMT_FN void multiply_tiles(Sums& sums, SIMT_LOCAL const Number* from_a, u32 pitch_a, SIMT_LOCAL const Number* from_b,
                            u32 pitch_b, u32 depth) {
  for (u32 i = 0; i < depth; ++i) {
    const Number x = from_b[lane()], y = (from_b + width())[lane()];
    SIMT_UNROLL for (int r = 0; r < GEMM_ROWS; ++r) {
      const Number factor = from_a[by_k ? r : r * GEMM_DEPTH];
      sums.first[r] = multiply_to(factor, x, sums.first[r]);
      sums.second[r] = multiply_to(factor, y, sums.second[r]);
    }
    from_a += by_k ? pitch_a : 1;
    from_b += pitch_b;
  }
}

template <class Product>
SIMT_FN void gemm_by_tiles(const typename Product::Params& params, const GemmPointers& at, SIMT_LOCAL Number* tiles) {
  const GemmParams& p = Product::gemm(params);
  const u32 tile_rows = GEMM_ROWS * subgroups(), tile_columns = 2 * width();
  const bool by_k = p.row_strides[1] == 1 && p.column_strides[1] != 1;
  // The odd pitch avoids bank conflicts when lanes store the columns of a transposed b.
  const u32 pitch_b = tile_columns + (Product::transposed_b(params) ? 1 : 0);
  SIMT_LOCAL Number* tile_b = tiles + tile_rows * GEMM_DEPTH;
  const u32 count = gemm_tiles(p, tile_rows, tile_columns);
  for (u32 index = group_id(); index < count; index += group_count()) {
    const Tile tile = tile_of(p, index, tile_rows, tile_columns);
    Sums sums;
    SIMT_UNROLL for (int r = 0; r < GEMM_ROWS; ++r) sums.first[r] = sums.second[r] = 0;
    for (u32 k = tile.begin; k < tile.end; k += GEMM_DEPTH) {
      Product::load_a(params, at, tile, k, tile_rows, by_k, tiles);
      Product::load_b(params, at, tile, k, tile_columns, pitch_b, tile_b);
      group_barrier();
      const u32 depth = smaller(tile.end - k, (u32)GEMM_DEPTH), row = subgroup() * GEMM_ROWS;
      if (by_k) {
        multiply_tiles<true>(sums, tiles + row, tile_rows, tile_b, pitch_b, depth);
      } else {
        multiply_tiles<false>(sums, tiles + row * GEMM_DEPTH, 1, tile_b, pitch_b, depth);
      }
      group_barrier();
    }
    // A loop over sums in local memory stores the results, so that the kernel contains the activation's code only once.
    SIMT_LOCAL Number* own = tiles + subgroup() * GEMM_OUTPUTS * width();
    SIMT_UNROLL for (int r = 0; r < GEMM_ROWS; ++r) {
      (own + 2 * r * width())[lane()] = sums.first[r];
      (own + (2 * r + 1) * width())[lane()] = sums.second[r];
    }
    for (u32 i = 0; i < GEMM_OUTPUTS; ++i) {
      const u32 row = tile.row + subgroup() * GEMM_ROWS + i / 2, column = tile.column + i % 2 * width();
      if (row >= p.rows) continue;
      store_sum<Product>(params, at, tile, row, column, lane(), column + lane() < p.columns,
                         (own + i * width())[lane()]);
    }
    group_barrier();
  }
}

// ---- rows ---------------------------------------------------------------------------------------

// The sums of a lane, and pointers to a and b at the next k.
template <class TypeA, class TypeB, int rows>
struct RowSums {
  Number sums[GEMM_OUTPUTS];
  SIMT_GLOBAL const typename TypeA::Bits* from_a[rows];
  SIMT_GLOBAL const typename TypeB::Bits* from_b;
};
// Adds products for `depth` values of k. If `whole` is true, all columns exist. Otherwise, only the
// first `inside` columns exist.
template <bool whole, class TypeA, class TypeB, int rows>
SIMT_FN void multiply_rows(RowSums<TypeA, TypeB, rows>& sums, i64 step_a, i64 step_b, u32 depth, u32 inside) {
  for (u32 k = 0; k < depth; ++k) {
    Number x[rows];
    SIMT_UNROLL for (int r = 0; r < rows; ++r) {
      x[r] = TypeA::value(*sums.from_a[r]);
      sums.from_a[r] += step_a;
    }
    SIMT_UNROLL for (u32 i = 0; i < GEMM_OUTPUTS / rows; ++i) {
      Number y = 0;
      if (whole || i * width() + lane() < inside) y = TypeB::value((sums.from_b + i * width())[lane()]);
      SIMT_UNROLL for (int r = 0; r < rows; ++r) {
        sums.sums[i * rows + r] = multiply_to(x[r], y, sums.sums[i * rows + r]);
      }
    }
    sums.from_b += step_b;
  }
}
// Each row of b must be contiguous, because adjacent lanes load adjacent columns. The sub-groups of a
// group process adjacent ranges of columns. A barrier after every GEMM_BARRIER_DEPTH rows of b keeps
// the sub-groups at about the same rows, so that they access the same pages of memory.
template <class Product, int rows>
SIMT_FN void gemm_by_rows(const typename Product::Params& params, const GemmPointers& at, SIMT_LOCAL Number* results) {
  typedef typename Product::A TypeA;
  typedef typename Product::B TypeB;
  typedef typename TypeA::Bits BitsA;
  typedef typename TypeB::Bits BitsB;
  const GemmParams& p = Product::gemm(params);
  const u32 columns = GEMM_OUTPUTS / rows * width(), group_columns = columns * subgroups();
  const i64 by_k = p.column_strides[1], by_row = p.row_strides[2];
  const u32 count = gemm_tiles(p, rows, group_columns);
  for (u32 index = group_id(); index < count; index += group_count()) {
    Tile tile = tile_of(p, index, rows, group_columns);
    tile.column += subgroup() * columns;
    RowSums<TypeA, TypeB, rows> sums;
    SIMT_UNROLL for (int r = 0; r < rows; ++r) {
      sums.from_a[r] = at_offset<BitsA>(at.a, p.offsets[1]) + tile.a +
                       p.row_strides[1] * smaller(tile.row + r, p.rows - 1) + by_k * tile.begin;
    }
    sums.from_b = at_offset<BitsB>(at.b, p.offsets[2]) + tile.b + by_row * tile.begin + tile.column;
    SIMT_UNROLL for (int i = 0; i < GEMM_OUTPUTS; ++i) sums.sums[i] = 0;
    const u32 inside_columns = inside(tile.column, p.columns);
    for (u32 k = tile.begin; k < tile.end; k += GEMM_BARRIER_DEPTH) {
      const u32 depth = smaller(tile.end - k, (u32)GEMM_BARRIER_DEPTH);
      if (inside_columns >= columns) {
        multiply_rows<true>(sums, by_k, by_row, depth, inside_columns);
      } else if (inside_columns != 0) {
        multiply_rows<false>(sums, by_k, by_row, depth, inside_columns);
      }
      group_barrier();
    }
    SIMT_LOCAL Number* own = results + subgroup() * GEMM_OUTPUTS * width();
    SIMT_UNROLL for (int i = 0; i < GEMM_OUTPUTS; ++i)(own + i * width())[lane()] = sums.sums[i];
    for (u32 i = 0; i < GEMM_OUTPUTS; ++i) {
      const u32 row = tile.row + i % rows, column = tile.column + i / rows * width();
      if (row >= p.rows) continue;
      store_sum<Product>(params, at, tile, row, column, lane(), column + lane() < p.columns,
                         (own + i * width())[lane()]);
    }
  }
}

// ---- dots ---------------------------------------------------------------------------------------

SIMT_FN Number shuffled(Number x, u32 mask) {
#if SIMT_IS_FLOAT
  return float_of_bits(shuffle_xor(bits_of_float(x), mask));
#else
  return (i32)shuffle_xor((u32)x, mask);
#endif
}
// Each lane has 2 * count values. Adds the values of each pair of lanes whose indices differ in the
// bit `mask`. The lane with this bit keeps the upper `count` sums, and the other lane keeps the
// lower `count` sums.
template <int count>
SIMT_FN void add_pairs(Number* sums, u32 mask) {
  const bool upper = (lane() & mask) != 0;
  SIMT_UNROLL for (int i = 0; i < count; ++i) {
    const Number kept = upper ? sums[i + count] : sums[i], sent = upper ? sums[i] : sums[i + count];
    sums[i] = kept + shuffled(sent, mask);
  }
}
// Each lane has `count` values. Sums each value over all lanes. Afterwards, sums[i] of lane l, for i
// below count / 8, is the sum of value l / (width / 8) * (count / 8) + i.
template <int count>
SIMT_FN void add_lanes(Number* sums) {
  add_pairs<count / 2>(sums, width() / 2);
  add_pairs<count / 4>(sums, width() / 4);
  add_pairs<count / 8>(sums, width() / 8);
  for (u32 mask = width() / 16; mask > 0; mask /= 2) {
    SIMT_UNROLL for (int i = 0; i < count / 8; ++i) sums[i] += shuffled(sums[i], mask);
  }
}

// row_of_a() and column_of_b() return pointers to the first element (k = 0) of a tile's row `r` of a, and
// of its column `i` of b. An index past the end of the matrix selects the last row or column.
template <class Type>
SIMT_FN SIMT_GLOBAL const typename Type::Bits* row_of_a(const GemmParams& p, const GemmPointers& at, const Tile& tile,
                                                        u32 r) {
  return at_offset<typename Type::Bits>(at.a, p.offsets[1]) + tile.a +
         p.row_strides[1] * smaller(tile.row + r, p.rows - 1);
}
template <class Type>
SIMT_FN SIMT_GLOBAL const typename Type::Bits* column_of_b(const GemmParams& p, const GemmPointers& at,
                                                           const Tile& tile, u32 i) {
  return at_offset<typename Type::Bits>(at.b, p.offsets[2]) + tile.b +
         p.column_strides[2] * smaller(tile.column + i, p.columns - 1);
}
// Adds the sums of all lanes and stores the results.
template <class Product, int rows, int columns>
SIMT_FN void store_dots(const typename Product::Params& params, const GemmPointers& at, const Tile& tile,
                        Number* sums) {
  const GemmParams& p = Product::gemm(params);
  add_lanes<rows * columns>(sums);
  const u32 lanes = width() / 8, each = rows * columns / 8;
  SIMT_UNROLL for (u32 i = 0; i < each; ++i) {
    const u32 own = lane() / lanes * each + i, row = tile.row + own % rows, column = tile.column + own / rows;
    const bool is_inside = lane() % lanes == 0 && row < p.rows && column < p.columns;
    store_sum<Product>(params, at, tile, is_inside ? row : 0, 0, is_inside ? column : 0, is_inside, sums[i]);
  }
}
// Rows of a and columns of b must be contiguous along k.
template <class Product, int rows, int columns>
SIMT_FN void gemm_by_dots(const typename Product::Params& params, const GemmPointers& at) {
  typedef typename Product::A TypeA;
  typedef typename Product::B TypeB;
  typedef typename TypeA::Bits BitsA;
  typedef typename TypeB::Bits BitsB;
  const GemmParams& p = Product::gemm(params);
  const u32 count = gemm_tiles(p, rows, columns);
  for (u32 index = group_id() * subgroups() + subgroup(); index < count; index += group_count() * subgroups()) {
    const Tile tile = tile_of(p, index, rows, columns);
    SIMT_GLOBAL const BitsA* from_a[rows];
    SIMT_GLOBAL const BitsB* from_b[columns];
    SIMT_UNROLL for (int r = 0; r < rows; ++r) from_a[r] = row_of_a<TypeA>(p, at, tile, r);
    SIMT_UNROLL for (int i = 0; i < columns; ++i) from_b[i] = column_of_b<TypeB>(p, at, tile, i);
    Number sums[rows * columns];
    SIMT_UNROLL for (int i = 0; i < rows * columns; ++i) sums[i] = 0;
    u32 k = tile.begin;
    for (; k + width() <= tile.end; k += width()) {
      Number x[rows];
      SIMT_UNROLL for (int r = 0; r < rows; ++r) x[r] = TypeA::value((from_a[r] + k)[lane()]);
      SIMT_UNROLL for (int i = 0; i < columns; ++i) {
        const Number y = TypeB::value((from_b[i] + k)[lane()]);
        SIMT_UNROLL for (int r = 0; r < rows; ++r) sums[i * rows + r] = multiply_to(x[r], y, sums[i * rows + r]);
      }
    }
    if (k + lane() < tile.end) {
      SIMT_UNROLL for (int i = 0; i < columns; ++i) {
        const Number y = TypeB::value((from_b[i] + k)[lane()]);
        SIMT_UNROLL for (int r = 0; r < rows; ++r) {
          sums[i * rows + r] = multiply_to(TypeA::value((from_a[r] + k)[lane()]), y, sums[i * rows + r]);
        }
      }
    }
    store_dots<Product, rows, columns>(params, at, tile, sums);
  }
}
