// SPDX-License-Identifier: Apache-2.0
// The kernels of quantized_matmul. Weights have 8 or 4 bits. If the input a is a float tensor,
// products multiply dequantized weights. If it is an integer tensor, sums are exact integers, which
// the kernel scales at the end.
#include "exact.h"
#include "few_rows.h"

// Indices of the operands `own`. The third is the minimum if a is float, and the scale of a if a is
// integer.
#define QUANTIZED_SCALE 0
#define QUANTIZED_ZERO 1
#define QUANTIZED_MINIMUM 2
#define QUANTIZED_A_SCALE 2
#define QUANTIZED_A_ZERO 3

SIMT_FN bool has_own(const QuantizedParams& p, int own) { return (p.given >> own & 1u) != 0; }
// Loads a number whose `type` is an entry of QuantizedParams::types. If the operand is an
// immediate, returns its value.
SIMT_FN float load_number(const GemmParams& p, Pointer base, int operand, u32 type, i64 at) {
  const bool immediate = (p.immediate >> operand & 1u) != 0;
  const u64 value = p.immediates[operand];
  if (type == 0) return float_of_bits(immediate ? (u32)value : at_offset<u32>(base, p.offsets[operand])[at]);
  const u32 bits = immediate ? (u16)value : at_offset<u16>(base, p.offsets[operand])[at];
  return float_of_bits(type == 1 ? f32_of_f16(bits) : bits << 16);
}
SIMT_FN float own_number(const QuantizedParams& p, const GemmPointers& at, int own, i64 position) {
  return load_number(p.gemm, at.own[own], 4 + own, p.types[2 + own / 2], position);
}
SIMT_FN u32 own_byte(const QuantizedParams& p, const GemmPointers& at, int own, i64 position) {
  if ((p.gemm.immediate >> (4 + own) & 1u) != 0) return (u8)p.gemm.immediates[4 + own];
  return at_offset<u8>(at.own[own], p.gemm.offsets[4 + own])[position];
}

// The quantization parameters of one block of weights in one column.
struct Scale {
  float scale, minimum;
  i32 zero;
};

template <int kBits>
struct QuantizedProduct {
  typedef QuantizedParams Params;
  typedef SIMT_T A;
  enum { kPerByte = 8 / kBits };
  SIMT_FN static const GemmParams& gemm(const Params& p) { return p.gemm; }
  SIMT_FN static bool transposed_b(const Params&) { return true; }

  // Returns weight `i` of a byte.
  SIMT_FN static i32 weight_in(u32 byte, u32 i) {
    return kBits == 8 ? (i32)(byte << 24) >> 24 : (i32)(byte >> (4 * i) & 15u);
  }
  SIMT_FN static i32 zero_of(const Params& p, const GemmPointers& at, i64 position) {
    const u32 byte = own_byte(p, at, QUANTIZED_ZERO, position);
    return kBits == 8 ? (i32)(byte << 24) >> 24 : (i32)byte;
  }
  SIMT_FN static i64 parameter_at(const Params& p, int which, u32 column, u32 block) {
    return p.column_strides[which] * column + p.block_strides[which] * block;
  }
  SIMT_FN static Scale scale_of(const Params& p, const GemmPointers& at, u32 column, u32 block) {
    Scale out;
    out.scale = 1.0f;
    out.minimum = 0.0f;
    out.zero = 0;
#if SIMT_IS_FLOAT
    out.scale = own_number(p, at, QUANTIZED_SCALE, parameter_at(p, 0, column, block));
    if (has_own(p, QUANTIZED_MINIMUM)) {
      out.minimum = own_number(p, at, QUANTIZED_MINIMUM, parameter_at(p, 2, column, block));
    }
#endif
    if (has_own(p, QUANTIZED_ZERO)) out.zero = zero_of(p, at, parameter_at(p, 1, column, block));
    return out;
  }
  // Returns the factor by which elements of a are multiplied. The factor is the dequantized weight
  // or, if a is an integer tensor, the weight minus its zero point.
  SIMT_FN static Number factor(const Params& p, const Scale& scale, i32 weight) {
#if SIMT_IS_FLOAT
    const float product = (float)(weight - scale.zero) * scale.scale;
    return has_own(p, QUANTIZED_MINIMUM) ? product + scale.minimum : product;
#else
    (void)p;
    return weight - scale.zero;
#endif
  }

  SIMT_FN static void load_a(const Params& p, const GemmPointers& at, const Tile& tile, u32 k, u32 tile_rows, bool by_k,
                             SIMT_LOCAL Number* to) {
    load_matrix_a<A>(p.gemm, at.a, tile, k, tile_rows, by_k, to);
#if !SIMT_IS_FLOAT
    if (!has_own(p, QUANTIZED_A_ZERO)) return;
    // Subtracts the zero points in place. No barrier is necessary, because a thread processes the elements that it
    // stored.
    const u32 depth = inside(k, tile.end), rows = inside(tile.row, p.gemm.rows);
    const u32 lines = by_k ? GEMM_DEPTH : tile_rows, length = by_k ? tile_rows : GEMM_DEPTH;
    for (u32 l = subgroup(); l < lines; l += subgroups()) {
      for (u32 i = lane(); i < length; i += width()) {
        const u32 row = by_k ? i : l;
        if (row < rows && (by_k ? l : i) < depth) to[l * length + i] -= a_zero(p, at, tile, tile.row + row);
      }
    }
#endif
  }
  SIMT_FN static void load_b(const Params& p, const GemmPointers& at, const Tile& tile, u32 k, u32 tile_columns,
                             u32 pitch, SIMT_LOCAL Number* to) {
    const u32 columns = inside(tile.column, p.gemm.columns), last = smaller(k + GEMM_DEPTH, tile.end) - 1;
    const u32 first_block = k / p.block;
    const bool one_block = first_block == last / p.block;
    const i64 stride = p.gemm.row_strides[2];  // bytes
    for (u32 c = subgroup(); c < tile_columns; c += subgroups()) {
      const u32 column = smaller(tile.column + c, p.gemm.columns - 1);
      SIMT_GLOBAL const u8* line =
          at_offset<u8>(at.b, p.gemm.offsets[2]) + p.gemm.column_strides[2] * column + stride * (k / kPerByte);
      const Scale shared = scale_of(p, at, column, first_block);
      for (u32 i = 0; i < GEMM_DEPTH / kPerByte; i += width()) {
        const u32 byte = i + lane(), first = kPerByte * byte;  // k + first is the index of the byte's first weight
        if (byte >= GEMM_DEPTH / kPerByte) continue;
        const bool is_inside = c < columns && k + first <= last;
        u32 value = 0;
        if (is_inside) value = weights_at(p, line, stride, i);
        SIMT_UNROLL for (u32 w = 0; w < kPerByte; ++w) {
          Number x = 0;
          if (one_block) {
            x = factor(p, shared, weight_in(value, w));
          } else if (is_inside && k + first + w <= last) {
            x = factor(p, scale_of(p, at, column, (k + first + w) / p.block), weight_in(value, w));
          }
          to[(first + w) * pitch + c] = is_inside && k + first + w <= last ? x : 0;
        }
      }
    }
  }
  // Returns byte i + lane() of a line.
  SIMT_FN static u32 weights_at(const Params& p, SIMT_GLOBAL const u8* line, i64 stride, u32 i) {
    if ((p.gemm.immediate >> 2 & 1u) != 0) return (u8)p.gemm.immediates[2];
    if (stride == 1) return (line + i)[lane()];
    return line[stride * (i + lane())];
  }

  // Returns the index of a tile's row among the rows of all matrices of the batch.
  SIMT_FN static i64 row_of_all(const Params& p, const Tile& tile, u32 row) {
    return (i64)(tile.matrix % p.gemm.batches) * p.gemm.rows + row;
  }
  SIMT_FN static i32 a_zero(const Params& p, const GemmPointers& at, const Tile& tile, u32 row) {
    return (i32)A::value(
        (typename A::Bits)own_byte(p, at, QUANTIZED_A_ZERO, p.row_strides[1] * row_of_all(p, tile, row)));
  }
  SIMT_FN static void finish(const Params& p, const GemmPointers& at, const Tile& tile, u32 row, u32 column, u32 offset,
                             bool is_inside, Number sum) {
    const i64 own = is_inside ? (i64)column + offset : 0;
#if SIMT_IS_FLOAT
    float y = sum;
#else
    const float a_scale = own_number(p, at, QUANTIZED_A_SCALE, p.row_strides[0] * row_of_all(p, tile, row));
    const float scale = own_number(p, at, QUANTIZED_SCALE, p.column_strides[0] * own);
    float y = a_scale * scale * (float)sum;
#endif
    if (p.gemm.bias_bytes != 0) y += load_number(p.gemm, at.bias, 3, p.types[1], p.gemm.bias_stride * own);
    const i64 stride = p.gemm.column_strides[0];
    Pointer line =
        at.c + p.gemm.offsets[0] + (tile.c + p.gemm.row_strides[0] * row + stride * column) * p.gemm.out_bytes;
    const u32 bits = bits_of_float(y);
    if (p.types[0] == 0) {
      put_bits<u32>(line, stride, offset, is_inside, bits);
    } else {
      put_bits<u16>(line, stride, offset, is_inside, (u16)(p.types[0] == 1 ? f16_of_f32(bits) : bf16_of_f32(bits)));
    }
  }
};

#if SIMT_IS_FLOAT
// Each lane loads one byte of each column. Converts the weights in these bytes, multiplies them by
// the matching elements of each row of a, and adds the products to `sums`.
template <bool whole, int bits, int rows, int columns>
SIMT_FN void multiply_weights(const QuantizedParams& p, float* sums, SIMT_GLOBAL const SIMT_T::Bits* const* from_a,
                              SIMT_GLOBAL const u8* const* from_b, const Scale* scales, u32 k, u32 end) {
  typedef QuantizedProduct<bits> Product;
  const u32 per_byte = 8 / bits;
  u32 bytes[columns];
  SIMT_UNROLL for (int i = 0; i < columns; ++i) {
    bytes[i] = 0;
    if (whole || k + lane() * per_byte < end) bytes[i] = (from_b[i] + k / per_byte)[lane()];
  }
  SIMT_UNROLL for (u32 w = 0; w < per_byte; ++w) {
    const bool is_inside = whole || k + lane() * per_byte + w < end;
    float x[rows];
    SIMT_UNROLL for (int r = 0; r < rows; ++r) {
      x[r] = 0;
      if (is_inside) x[r] = SIMT_T::value((from_a[r] + k + w)[lane() * per_byte]);
    }
    SIMT_UNROLL for (int i = 0; i < columns; ++i) {
      const float factor = Product::factor(p, scales[i], Product::weight_in(bytes[i], w)), y = is_inside ? factor : 0;
      SIMT_UNROLL for (int r = 0; r < rows; ++r) { sums[i * rows + r] = multiply_add(x[r], y, sums[i * rows + r]); }
    }
  }
}
// Like gemm_by_dots, for quantized weights. The weights that a sub-group loads from a column at once must belong to the
// same block.
template <int bits, int rows, int columns>
SIMT_FN void quantized_by_dots(const QuantizedParams& params, const GemmPointers& at) {
  typedef QuantizedProduct<bits> Product;
  const GemmParams& p = params.gemm;
  const u32 count = gemm_tiles(p, rows, columns), step = width() * (8 / bits);
  for (u32 index = group_id() * subgroups() + subgroup(); index < count; index += group_count() * subgroups()) {
    const Tile tile = tile_of(p, index, rows, columns);
    SIMT_GLOBAL const SIMT_T::Bits* from_a[rows];
    SIMT_GLOBAL const u8* from_b[columns];
    SIMT_UNROLL for (int r = 0; r < rows; ++r) from_a[r] = row_of_a<SIMT_T>(p, at, tile, r);
    SIMT_UNROLL for (int i = 0; i < columns; ++i) from_b[i] = column_of_b<U8>(p, at, tile, i);
    float sums[rows * columns];
    SIMT_UNROLL for (int i = 0; i < rows * columns; ++i) sums[i] = 0;
    Scale scales[columns];
    u32 block = 0xFFFFFFFFu;
    for (u32 k = tile.begin; k < tile.end; k += step) {
      if (k / params.block != block) {
        block = k / params.block;
        SIMT_UNROLL for (u32 i = 0; i < columns; ++i) {
          scales[i] = Product::scale_of(params, at, smaller(tile.column + i, p.columns - 1), block);
        }
      }
      if (k + step <= tile.end) {
        multiply_weights<true, bits, rows, columns>(params, sums, from_a, from_b, scales, k, tile.end);
      } else {
        multiply_weights<false, bits, rows, columns>(params, sums, from_a, from_b, scales, k, tile.end);
      }
    }
    store_dots<Product, rows, columns>(params, at, tile, sums);
  }
}
#endif

// The `Product` of gemm_by_chunks for quantized weights. A chunk also contains the quantization parameters of its first
// weight. If all weights of the chunk are in one block, these are the parameters of all of them.
template <int kBits>
struct ChunkedWeights : QuantizedProduct<kBits> {
  typedef QuantizedProduct<kBits> Base;
  typedef QuantizedParams Params;
  enum { kChunk = 128 / kBits, kPerWord = 32 / kBits };
  struct Column {
    SIMT_GLOBAL const u8* from;
    u32 column;
    Scale scale;  // the parameters of block 0
  };
  struct Chunk {
    Words words;
    Scale scale;
  };
  SIMT_FN static Number zero_of_a(const Params& p, const GemmPointers& at, const Tile& tile, u32 row) {
#if SIMT_IS_FLOAT
    (void)p, (void)at, (void)tile, (void)row;
    return 0;
#else
    return has_own(p, QUANTIZED_A_ZERO) ? Base::a_zero(p, at, tile, row) : 0;
#endif
  }
  SIMT_FN static Column column_of(const Params& p, const GemmPointers& at, const Tile& tile, u32 column) {
    Column out;
    out.from = at_offset<u8>(at.b, p.gemm.offsets[2]) + p.gemm.column_strides[2] * column + tile.begin / (8 / kBits);
    out.column = column;
    out.scale = Base::scale_of(p, at, column, 0);
    return out;
  }
  // Returns whether the weights of each chunk are in one block.
  SIMT_FN static bool has_whole_blocks(const Params& p) { return p.block >= p.gemm.depth || p.block % kChunk == 0; }
  SIMT_FN static u32 block_of(const Params& p, u32 k) { return (u32)((u64)k * p.block_multiplier >> p.block_shift); }
  SIMT_FN static bool is_whole(const Tile& tile, u32 chunk, const Column& column) {
    return tile.begin + (chunk + 1) * kChunk <= tile.end && on_boundary(column.from, 0);
  }
  SIMT_FN static void load_chunk(const Params& p, const GemmPointers& at, const Column& column, const Tile& tile,
                                 u32 chunk, Chunk& out) {
    (void)p, (void)at;
    const u32 k = tile.begin + chunk * kChunk;
    if (is_whole(tile, chunk, column)) out.words = load_words(column.from + 16 * (u64)chunk);
    if (k >= tile.end) return;
    out.scale = column.scale;
#if SIMT_IS_FLOAT
    const u32 block = block_of(p, k);
    if (p.block_strides[0] != 0)
      out.scale.scale = own_number(p, at, QUANTIZED_SCALE, Base::parameter_at(p, 0, column.column, block));
    if (p.block_strides[1] != 0) out.scale.zero = Base::zero_of(p, at, Base::parameter_at(p, 1, column.column, block));
    if (p.block_strides[2] != 0)
      out.scale.minimum = own_number(p, at, QUANTIZED_MINIMUM, Base::parameter_at(p, 2, column.column, block));
#endif
  }
  // weight_of() returns weight `i` of a word minus the zero point, where `offset` is offset_of() of the zero point. The
  // f32 number 2^23 + w, for a small integer w >= 0, has w in its lowest bits. weight_of() constructs this number and
  // subtracts 2^23 plus the zero point from it. The difference is exact.
  SIMT_FN static float offset_of(i32 zero) { return 8388608.0f + (float)(kBits == 8 ? zero + 128 : zero); }
  SIMT_FN static float weight_of(u32 word, u32 i, float offset) {
    if (kBits == 8) word ^= 0x80808080u;
    return float_of_bits((word >> (kBits * i) & ((1u << kBits) - 1u)) | 0x4B000000u) - offset;
  }
  template <int rows, int columns>
  SIMT_FN static void multiply(const Params& p, const GemmPointers& at, const Column* from, const Tile& tile, u32 chunk,
                               Chunk* chunks, SIMT_LOCAL const Words* x, u32 row_pitch, Number* sums) {
    const u32 k = tile.begin + chunk * kChunk;
    SIMT_UNROLL for (u32 i = 0; i < columns; ++i) {
      if (is_whole(tile, chunk, from[i])) continue;
      const u32 weights = smaller(tile.end - k, (u32)kChunk);
      chunks[i].words = load_units<u8>(from[i].from + 16 * (u64)chunk, (weights + 8 / kBits - 1) / (8 / kBits));
    }
#if SIMT_IS_FLOAT
    u32 rest = 0;  // bit i is set if column i still needs the product of each weight and its scale
    if (k + kChunk > tile.end || !has_whole_blocks(p)) {
      rest = (1u << columns) - 1u;
    } else if (rows > 1 || has_own(p, QUANTIZED_MINIMUM)) {
      multiply_weights_of<rows, columns>(chunks, x, row_pitch, sums);
    } else {
      rest = multiply_row<columns>(chunks, x, sums);
    }
    for (u32 own = 0; rest != 0; ++own, rest >>= 1) {
      if ((rest & 1u) == 0) continue;
      Column column = from[0];
      SIMT_UNROLL for (u32 i = 1; i < columns; ++i) {
        if (i == own) column = from[i];
      }
      float parts[rows];
      SIMT_UNROLL for (u32 r = 0; r < rows; ++r) parts[r] = 0;
      multiply_each<rows>(p, at, column, tile, chunk, x, row_pitch, parts);
      SIMT_UNROLL for (u32 i = 0; i < columns; ++i) {
        SIMT_UNROLL for (u32 r = 0; r < rows; ++r) {
          if (i == own) sums[i * rows + r] += parts[r];
        }
      }
    }
#else
    (void)p, (void)at;
    SIMT_UNROLL_LONG for (u32 q = 0; q < kChunk / 4; ++q) {
      SIMT_UNROLL for (u32 r = 0; r < rows; ++r) {
        const Words quad = load_local(x + r * row_pitch + q);
        SIMT_UNROLL for (u32 i = 0; i < columns; ++i) {
          SIMT_UNROLL for (u32 j = 0; j < 4; ++j) {
            const u32 w = 4 * q + j;
            const u32 word = chunks[i].words.at[w / kPerWord] >> (kBits * (w % kPerWord));
            const i32 weight = kBits == 8 ? (i32)(word << 24) >> 24 : (i32)(word & 15u);
            sums[i * rows + r] = multiply_to((Number)quad.at[j], weight - chunks[i].scale.zero, sums[i * rows + r]);
          }
        }
      }
    }
#endif
  }
#if SIMT_IS_FLOAT
  // Multiplies one row of a by weights minus their zero point, and adds the sum times the scale to `sums`. If a
  // column's sum or scale is not finite, adds nothing for this column. The column's result then needs the product of
  // each weight and the scale. Returns a mask of these columns.
  template <int columns>
  SIMT_FN static u32 multiply_row(const Chunk* chunks, SIMT_LOCAL const Words* x, float* sums) {
    float parts[columns], offsets[columns];
    SIMT_UNROLL for (u32 i = 0; i < columns; ++i) {
      parts[i] = 0;
      offsets[i] = offset_of(chunks[i].scale.zero);
    }
    SIMT_UNROLL_LONG for (u32 q = 0; q < kChunk / 4; ++q) {
      const Words quad = load_local(x + q);
      SIMT_UNROLL for (u32 i = 0; i < columns; ++i) {
        SIMT_UNROLL for (u32 j = 0; j < 4; ++j) {
          const u32 w = 4 * q + j;
          const float weight = weight_of(chunks[i].words.at[w / kPerWord], w % kPerWord, offsets[i]);
          parts[i] = multiply_add(float_of_bits(quad.at[j]), weight, parts[i]);
        }
      }
    }
    u32 rest = 0;
    SIMT_UNROLL for (u32 i = 0; i < columns; ++i) {
      const bool is_finite = magnitude(parts[i]) < 3.0e38f && magnitude(chunks[i].scale.scale) < 3.0e38f;
      sums[i] += is_finite ? parts[i] * chunks[i].scale.scale : 0.0f;
      rest |= is_finite ? 0u : 1u << i;
    }
    return rest;
  }
  // Multiplies rows of a by dequantized weights. The minimum is 0 if it is absent.
  template <int rows, int columns>
  SIMT_FN static void multiply_weights_of(const Chunk* chunks, SIMT_LOCAL const Words* x, u32 row_pitch, float* sums) {
    float offsets[columns];
    SIMT_UNROLL for (u32 i = 0; i < columns; ++i) offsets[i] = offset_of(chunks[i].scale.zero);
    SIMT_UNROLL_LONG for (u32 q = 0; q < kChunk / 4; ++q) {
      float weights[columns * 4];
      SIMT_UNROLL for (u32 i = 0; i < columns; ++i) {
        SIMT_UNROLL for (u32 j = 0; j < 4; ++j) {
          const u32 w = 4 * q + j;
          const float weight = weight_of(chunks[i].words.at[w / kPerWord], w % kPerWord, offsets[i]);
          weights[i * 4 + j] = weight * chunks[i].scale.scale + chunks[i].scale.minimum;
        }
      }
      SIMT_UNROLL for (u32 r = 0; r < rows; ++r) {
        const Words quad = load_local(x + r * row_pitch + q);
        SIMT_UNROLL for (u32 i = 0; i < columns; ++i) {
          SIMT_UNROLL for (u32 j = 0; j < 4; ++j) {
            sums[i * rows + r] = multiply_add(float_of_bits(quad.at[j]), weights[i * 4 + j], sums[i * rows + r]);
          }
        }
      }
    }
  }
  // Multiplies a chunk whose weights may be in several blocks. Loads the weights again, byte by byte.
  template <int rows>
  SIMT_FN static void multiply_each(const Params& p, const GemmPointers& at, const Column& column, const Tile& tile,
                                    u32 chunk, SIMT_LOCAL const Words* x, u32 row_pitch, float* sums) {
    SIMT_LOCAL const float* numbers = (SIMT_LOCAL const float*)x;
    const u32 first = chunk * kChunk, count = smaller(tile.end - tile.begin - first, (u32)kChunk);
    u32 block = 0xFFFFFFFFu;
    Scale scale = column.scale;
    for (u32 i = 0; i < count; ++i) {
      const u32 k = first + i;
      if (block_of(p, tile.begin + k) != block) {
        block = block_of(p, tile.begin + k);
        scale = Base::scale_of(p, at, column.column, block);
      }
      const u32 byte = column.from[k / (8 / kBits)];
      const float weight = Base::factor(p, scale, Base::weight_in(byte, k % (8 / kBits)));
      SIMT_UNROLL for (u32 r = 0; r < rows; ++r) sums[r] =
          multiply_add(numbers[4 * r * row_pitch + i], weight, sums[r]);
    }
  }
#endif
};

#define QUANTIZED_OPERANDS                                                                               \
  Pointer c, Pointer a, Pointer b, Pointer bias, Pointer own0, Pointer own1, Pointer own2, Pointer own3, \
      QuantizedParams p
#define QUANTIZED_POINTERS const GemmPointers at = {c, a, b, bias, {own0, own1, own2, own3}}
#define QUANTIZED(bits)                                        \
  SIMT_KERNEL(quantized##bits##_tiles)(QUANTIZED_OPERANDS) {   \
    SIMT_SHARED(Number, tiles, GEMM_LOCAL);                    \
    QUANTIZED_POINTERS;                                        \
    gemm_by_tiles<QuantizedProduct<bits>>(p, at, tiles);       \
  }                                                            \
  SIMT_KERNEL(quantized##bits##_combine)(QUANTIZED_OPERANDS) { \
    QUANTIZED_POINTERS;                                        \
    gemm_combine<QuantizedProduct<bits>>(p, at);               \
  }
#define QUANTIZED_DOTS(bits)                                \
  SIMT_KERNEL(quantized##bits##_dots)(QUANTIZED_OPERANDS) { \
    QUANTIZED_POINTERS;                                     \
    if (p.gemm.rows == 1) {                                 \
      quantized_by_dots<bits, 1, 8>(p, at);                 \
    } else {                                                \
      quantized_by_dots<bits, 4, 4>(p, at);                 \
    }                                                       \
  }
#define QUANTIZED_CHUNKS_ONE(bits)                                \
  SIMT_KERNEL(quantized##bits##_chunks_one)(QUANTIZED_OPERANDS) { \
    SIMT_SHARED(Words, rows_of_a, FEW_LOCAL);                     \
    QUANTIZED_POINTERS;                                           \
    gemm_by_chunks<ChunkedWeights<bits>, 1>(p, at, rows_of_a);    \
  }
#define QUANTIZED_CHUNKS(bits)                                   \
  SIMT_KERNEL(quantized##bits##_chunks)(QUANTIZED_OPERANDS) {    \
    SIMT_SHARED(Words, rows_of_a, FEW_LOCAL);                    \
    QUANTIZED_POINTERS;                                          \
    if (p.gemm.rows <= 4) {                                      \
      gemm_by_chunks<ChunkedWeights<bits>, 4>(p, at, rows_of_a); \
    } else {                                                     \
      gemm_by_chunks<ChunkedWeights<bits>, 8>(p, at, rows_of_a); \
    }                                                            \
  }
QUANTIZED(8)
QUANTIZED(4)
QUANTIZED_CHUNKS_ONE(8)
QUANTIZED_CHUNKS_ONE(4)
#if SIMT_IS_FLOAT
QUANTIZED_CHUNKS(8)
QUANTIZED_CHUNKS(4)
QUANTIZED_DOTS(8)
QUANTIZED_DOTS(4)
#endif
