// SPDX-License-Identifier: Apache-2.0
// Products with few rows. A lane loads 16 bytes of b at once, and the kernels read b once per tile of
// rows of a:
// - chunks: b is contiguous along k. A chunk is 16 bytes of a column of b, and adjacent lanes load
//   adjacent chunks. Local memory contains the rows of a.
// - packs: b is contiguous along its rows. A pack is 16 bytes of a row of b, and adjacent lanes load
//   adjacent packs.
// The sub-groups of a group divide k. With split-K, groups divide k too.
#pragma once
#include "few_rows_params.h"
#include "gemm.h"

SIMT_FN bool on_boundary(SIMT_GLOBAL const u8* at, i64 stride) { return (((u64)at | (u64)stride) & 15u) == 0; }
// Loads the first `count` units of 16 bytes, which need not begin at a boundary. The other bytes of the result are 0.
template <class Unit>
SIMT_FN Words load_units(SIMT_GLOBAL const u8* from, u32 count) {
  SIMT_GLOBAL const Unit* units = (SIMT_GLOBAL const Unit*)from;
  const u32 per_word = 4 / sizeof(Unit);
  Words out;
  SIMT_UNROLL for (u32 w = 0; w < 4; ++w) {
    out.at[w] = 0;
    for (u32 i = w * per_word; i < smaller((w + 1) * per_word, count); ++i) {
      out.at[w] |= (u32)units[i] << (8 * sizeof(Unit) * (i % per_word));
    }
  }
  return out;
}
// Returns element `i` of 16 bytes.
template <class Type>
SIMT_FN typename Type::Bits bits_in(const Words& words, u32 i) {
  const u32 per_word = 32 / Type::kBits;
  return (typename Type::Bits)(words.at[i / per_word] >> (Type::kBits * (i % per_word)));
}
SIMT_FN Number number_of_bits(u32 bits) {
#if SIMT_IS_FLOAT
  return float_of_bits(bits);
#else
  return (Number)bits;
#endif
}
// Stores `sum` as the element in row `r` and column `i` of a tile. Stores nothing if the element is outside of the
// matrix.
template <class Product>
SIMT_FN void store_few(const typename Product::Params& params, const GemmPointers& at, const Tile& tile, u32 r, u32 i,
                       Number sum) {
  const GemmParams& p = Product::gemm(params);
  const bool is_inside = tile.row + r < p.rows && tile.column + i < p.columns;
  store_sum<Product>(params, at, tile, is_inside ? tile.row + r : 0, 0, is_inside ? tile.column + i : 0, is_inside,
                     sum);
}

// ---- chunks -------------------------------------------------------------------------------------

// Copies elements of `a` to local memory, for the range of k of chunks `first` to `end` - 1. Subtracts the zero point
// of `a`. Stores 0 for k past the end of the tile.
template <class Product, int rows>
SIMT_FN void load_chunks_of_a(const typename Product::Params& params, const GemmPointers& at, const Tile& tile,
                              u32 first, u32 end, SIMT_LOCAL Words* to) {
  typedef typename Product::A Type;
  typedef typename Type::Bits Bits;
  const GemmParams& p = Product::gemm(params);
  const u32 elements = Product::kChunk, quads = elements / 4, pitch = few_pitch(elements);
  const u32 begin = tile.begin + first * elements;
  const i64 by_k = p.column_strides[1];
  SIMT_UNROLL for (u32 r = 0; r < rows; ++r) {
    const u32 row = smaller(tile.row + r, p.rows - 1);
    SIMT_GLOBAL const Bits* from = at_offset<Bits>(at.a, p.offsets[1]) + tile.a + p.row_strides[1] * row + by_k * begin;
    const bool packed = by_k == 1 && (u64)from % (4 * sizeof(Bits)) == 0;
    const Number zero = Product::zero_of_a(params, at, tile, row);
    for (u32 q = local_id(); q < (end - first) * quads; q += group_size()) {
      const u32 k = begin + 4 * q;
      Quad<Bits> quad;
      if (packed && k + 4 <= tile.end) {
        quad = load_quad(from + 4 * q);
      } else {
        SIMT_UNROLL for (u32 i = 0; i < 4; ++i) {
          quad.at[i] = 0;
          if (k + i < tile.end) quad.at[i] = from[by_k * (4 * q + i)];
        }
      }
      Words words;
      SIMT_UNROLL for (u32 i = 0; i < 4; ++i) {
        words.at[i] = k + i < tile.end ? number_bits((Number)Type::value(quad.at[i]) - zero) : 0;
      }
      store_local(to + (r * few_piece(elements, rows) + q / quads) * pitch + q % quads, words);
    }
  }
}

// `Product` defines the elements of a chunk, the columns of b, and the products of a chunk. The chunks of a column are
// divided among p.slices sub-groups of the group.
template <class Product, int rows>
SIMT_FN void gemm_by_chunks(const typename Product::Params& params, const GemmPointers& at,
                            SIMT_LOCAL Words* rows_of_a) {
  typedef typename Product::Column Column;
  typedef typename Product::Chunk Chunk;
  const GemmParams& p = Product::gemm(params);
  const u32 elements = Product::kChunk, pitch = few_pitch(elements), piece = few_piece(elements, rows);
  enum { kColumns = few_columns(Product::kChunk, rows), kSteps = few_steps(rows) };
  const u32 slices = p.slices, slice = subgroup() % slices;
  const u32 lines = width() / FEW_LANES, own_columns = kColumns * lines;
  const u32 group_columns = own_columns * (subgroups() / slices);
  const u32 own_column = subgroup() / slices * own_columns + lane() / FEW_LANES;
  const u32 stride = slices * FEW_LANES;
  const u32 count = gemm_tiles(p, rows, group_columns);
  for (u32 index = group_id(); index < count; index += group_count()) {
    const Tile tile = tile_of(p, index, rows, group_columns);
    const u32 chunks = (tile.end - tile.begin + elements - 1) / elements;
    Column columns[kColumns];
    Number sums[kColumns * rows];
    Chunk next[kColumns * kSteps];
    u32 chunk = slice * FEW_LANES + lane() % FEW_LANES;
    SIMT_UNROLL for (u32 i = 0; i < kColumns; ++i) {
      columns[i] = Product::column_of(params, at, tile, smaller(tile.column + own_column + i * lines, p.columns - 1));
    }
    SIMT_UNROLL for (u32 i = 0; i < kColumns * rows; ++i) sums[i] = 0;
    // With one row, a lane loads chunks one round ahead, so that loads overlap with products and barriers. With more
    // rows, it does not, because products take longer and registers are scarce.
    if (rows == 1) {
      SIMT_UNROLL for (u32 s = 0; s < kSteps; ++s) {
        SIMT_UNROLL for (u32 i = 0; i < kColumns; ++i) {
          Product::load_chunk(params, at, columns[i], tile, chunk + s * stride, next[s * kColumns + i]);
        }
      }
    }
    for (u32 first = 0; first < chunks; first += piece) {
      const u32 end = smaller(first + piece, chunks);
      group_barrier();
      load_chunks_of_a<Product, rows>(params, at, tile, first, end, rows_of_a);
      group_barrier();
      for (; chunk < end; chunk += kSteps * stride) {
        SIMT_UNROLL_LONG for (u32 s = 0; s < kSteps; ++s) {
          const u32 own = chunk + s * stride;
          Chunk now[kColumns];
          SIMT_UNROLL for (u32 i = 0; i < kColumns; ++i) {
            if (rows == 1) {
              now[i] = next[s * kColumns + i];
              Product::load_chunk(params, at, columns[i], tile, own + kSteps * stride, next[s * kColumns + i]);
            } else {
              Product::load_chunk(params, at, columns[i], tile, own, now[i]);
            }
          }
          if (own >= end) continue;
          Product::template multiply<rows, kColumns>(params, at, columns, tile, own, now,
                                                     rows_of_a + (own - first) * pitch, piece * pitch, sums);
        }
      }
    }
    for (u32 mask = FEW_LANES / 2; mask > 0; mask /= 2) {
      SIMT_UNROLL for (u32 i = 0; i < kColumns * rows; ++i) sums[i] += shuffled(sums[i], mask);
    }
    // From here on, local memory holds a sum for each slice, row and column.
    group_barrier();
    SIMT_LOCAL Number* parts = (SIMT_LOCAL Number*)rows_of_a;
    if (lane() % FEW_LANES == 0) {
      SIMT_UNROLL for (u32 i = 0; i < kColumns; ++i) {
        SIMT_UNROLL for (u32 r = 0; r < rows; ++r) {
          parts[(slice * rows + r) * group_columns + own_column + i * lines] = sums[i * rows + r];
        }
      }
    }
    group_barrier();
    for (u32 i = local_id(); i < rows * group_columns; i += group_size()) {
      Number sum = parts[i];
      for (u32 s = 1; s < slices; ++s) sum += parts[s * rows * group_columns + i];
      store_few<Product>(params, at, tile, i / group_columns, i % group_columns, sum);
    }
  }
}

// ---- packs --------------------------------------------------------------------------------------

// Multiplies a pack of row k of b by element k of each row of a, and adds the products to `sums`.
template <class Type, int rows>
SIMT_FN void multiply_pack(const Words& words, const Number* x, Number* sums) {
  const u32 elements = 128 / Type::kBits;
  SIMT_UNROLL for (u32 i = 0; i < elements; ++i) {
    const Number y = Type::value(bits_in<Type>(words, i));
    SIMT_UNROLL for (u32 r = 0; r < rows; ++r) sums[r * elements + i] = multiply_to(x[r], y, sums[r * elements + i]);
  }
}
template <class Product, int rows>
SIMT_FN void gemm_by_packs(const typename Product::Params& params, const GemmPointers& at, SIMT_LOCAL Number* parts) {
  typedef typename Product::A TypeA;
  typedef typename Product::B TypeB;
  typedef typename TypeA::Bits BitsA;
  typedef typename TypeB::Bits BitsB;
  const GemmParams& p = Product::gemm(params);
  enum { kSteps = few_packs(rows) };
  const u32 elements = 128 / TypeB::kBits, group_columns = FEW_PACK_LANES * elements;
  const u32 lines = width() / FEW_PACK_LANES, stride = lines * subgroups();  // rows of b
  const i64 by_k = p.row_strides[2] * (i64)sizeof(BitsB);
  const u32 count = gemm_tiles(p, rows, group_columns);
  for (u32 index = group_id(); index < count; index += group_count()) {
    const Tile tile = tile_of(p, index, rows, group_columns);
    const u32 own_column = lane() % FEW_PACK_LANES * elements;
    const u32 columns = smaller(inside(tile.column + own_column, p.columns), elements);
    SIMT_GLOBAL const u8* from_b =
        (SIMT_GLOBAL const u8*)(at_offset<BitsB>(at.b, p.offsets[2]) + tile.b + tile.column + own_column);
    SIMT_GLOBAL const BitsA* from_a[rows];
    SIMT_UNROLL for (u32 r = 0; r < rows; ++r) from_a[r] = row_of_a<TypeA>(p, at, tile, r);
    const bool whole = columns == elements && on_boundary(from_b, by_k);
    Number sums[rows * elements];
    SIMT_UNROLL for (u32 i = 0; i < rows * elements; ++i) sums[i] = 0;
    u32 k = tile.begin + subgroup() * lines + lane() / FEW_PACK_LANES;
    for (; whole && k + (kSteps - 1) * stride < tile.end; k += kSteps * stride) {
      Words words[kSteps];
      Number x[kSteps * rows];
      SIMT_UNROLL for (u32 s = 0; s < kSteps; ++s) {
        const u32 own = k + s * stride;
        words[s] = load_words(from_b + by_k * own);
        SIMT_UNROLL for (u32 r = 0; r < rows; ++r) x[s * rows + r] = TypeA::value(from_a[r][p.column_strides[1] * own]);
      }
      SIMT_UNROLL_LONG for (u32 s = 0; s < kSteps; ++s) multiply_pack<TypeB, rows>(words[s], x + s * rows, sums);
    }
    for (; k < tile.end; k += stride) {
      SIMT_GLOBAL const u8* from = from_b + by_k * k;
      const Words words = whole ? load_words(from) : load_units<BitsB>(from, columns);
      Number x[rows];
      SIMT_UNROLL for (u32 r = 0; r < rows; ++r) x[r] = TypeA::value(from_a[r][p.column_strides[1] * k]);
      multiply_pack<TypeB, rows>(words, x, sums);
    }
    for (u32 mask = width() / 2; mask >= FEW_PACK_LANES; mask /= 2) {
      SIMT_UNROLL for (u32 i = 0; i < rows * elements; ++i) sums[i] += shuffled(sums[i], mask);
    }
    SIMT_UNROLL for (u32 r = 0; r < rows; ++r) {
      if (lane() < FEW_PACK_LANES) {
        SIMT_UNROLL for (u32 i = 0; i < elements; ++i) {
          parts[subgroup() * group_columns + own_column + i] = sums[r * elements + i];
        }
      }
      group_barrier();
      for (u32 i = local_id(); i < group_columns; i += group_size()) {
        Number sum = parts[i];
        for (u32 s = 1; s < subgroups(); ++s) sum += parts[s * group_columns + i];
        store_few<Product>(params, at, tile, r, i, sum);
      }
      group_barrier();
    }
  }
}
