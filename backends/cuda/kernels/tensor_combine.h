// SPDX-License-Identifier: Apache-2.0
// The kernel that adds the sums of all splits of k for tensor_product.h, in a fixed order.
#pragma once
#include "unit_tile.h"

#define COMBINED_LOADS 4  // splits whose sums a thread loads at once

// Loads UNIT_COMBINED sums, which begin at a multiple of 16 bytes if `is_aligned`. Sums from index `width` on become
// 0.
SIMT_INLINED void load_sums(float (&out)[UNIT_COMBINED], Pointer from, u32 width, bool is_aligned) {
  u32 words[UNIT_COMBINED] = {0, 0, 0, 0};
  if (is_aligned) {
    load_words(words, from);
  } else {
    MMA_UNROLL for (u32 j = 0; j < UNIT_COMBINED; ++j) {
      if (j < width) words[j] = ((SIMT_GLOBAL const u32*)from)[j];
    }
  }
  MMA_UNROLL for (u32 j = 0; j < UNIT_COMBINED; ++j) out[j] = float_of_bits(words[j]);
}

SIMT_KERNEL(unit_combine)(UNIT_POINTERS) {
  (void)a, (void)b;
  const u32 quads = (p.columns + UNIT_COMBINED - 1) / UNIT_COMBINED;
  const u64 lines = (u64)p.batches * p.rows, count = lines * quads, split = lines * p.columns * 4;
  const Pointer first = sums + p.offsets[4];
  const bool is_aligned = p.columns % UNIT_COMBINED == 0 && (u64)first % 16 == 0;
  const u64 c_lines = (u64)(c + p.offsets[0]) | (u64)p.pitches[0] * p.c_bytes | (u64)p.batch_strides[0] * p.c_bytes;
  const bool stores_whole = p.columns % UNIT_COMBINED == 0 && c_lines % (UNIT_COMBINED * p.c_bytes) == 0;
  for (u64 i = global_id(); i < count; i += global_size()) {
    const u64 line = count <= 0xFFFFFFFFu ? (u32)i / quads : i / quads;
    const u32 column = (u32)(i - line * quads) * UNIT_COMBINED, width = smaller(p.columns - column, (u32)UNIT_COMBINED);
    const Pointer from = first + (line * p.columns + column) * 4;
    float total[UNIT_COMBINED] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (u32 k = 0; k < p.splits; k += COMBINED_LOADS) {
      float loaded[COMBINED_LOADS][UNIT_COMBINED];
      MMA_UNROLL for (u32 part = 0; part < COMBINED_LOADS; ++part) {
        if (k + part < p.splits) load_sums(loaded[part], from + split * (k + part), width, is_aligned);
      }
      MMA_UNROLL for (u32 part = 0; part < COMBINED_LOADS; ++part) {
        MMA_UNROLL for (u32 j = 0; j < UNIT_COMBINED; ++j) {
          if (k + part < p.splits) total[j] += loaded[part][j];
        }
      }
    }
    const u32 batch = (u32)(line / p.rows), row = (u32)(line - (u64)batch * p.rows);
    Pointer to = c + p.offsets[0] + (p.batch_strides[0] * (i64)batch + p.pitches[0] * row + column) * p.c_bytes;
    if (p.bias_bytes != 0 || p.activation != 0) {
      MMA_UNROLL for (u32 j = 0; j < UNIT_COMBINED; ++j) {
        total[j] = finished(p, bias, smaller(column + j, p.columns - 1), total[j]);
      }
    }
    if (p.c_bytes == 4) {
      const u32 words[UNIT_COMBINED] = {bits_of_float(total[0]), bits_of_float(total[1]), bits_of_float(total[2]),
                                        bits_of_float(total[3])};
      if (stores_whole) {
        store_words(to, words);
      } else {
        MMA_UNROLL for (u32 j = 0; j < UNIT_COMBINED; ++j) {
          if (j < width) ((SIMT_GLOBAL u32*)to)[j] = words[j];
        }
      }
    } else {
      const u32 low = pair_of<Element>(total[0], total[1]), high = pair_of<Element>(total[2], total[3]);
      if (stores_whole) {
        *(SIMT_GLOBAL u64*)to = (u64)high << 32 | low;
      } else {
        MMA_UNROLL for (u32 j = 0; j < UNIT_COMBINED; ++j) {
          if (j < width) ((SIMT_GLOBAL u16*)to)[j] = (u16)((j < 2 ? low : high) >> 16 * (j % 2));
        }
      }
    }
  }
}
