// SPDX-License-Identifier: Apache-2.0
// Code that the kernels of `attention` with matrix units share: tiles of rows, places in shared memory, and
// arithmetic of weights.
#pragma once
#include "warp_mma.h"

#include "device/math.h"
#include "device/nest.h"

#include "device/attention_params.h"

#include "attention_mma_params.h"

typedef SIMT_T::Bits Element;
typedef SIMT_GLOBAL const Element* Elements;

#define LOG2_E 1.44269504088896340736f

// Weights are multiplied by 2^kShift, which the division by their sum cancels. Without the factor, weights that are
// much smaller than the largest weight would be subnormal in f16.
template <class T>
struct WeightUnit;
template <>
struct WeightUnit<F16> {
  enum { kShift = 14 };
};
template <>
struct WeightUnit<BF16> {
  enum { kShift = 0 };
};

#if defined(__OPENCL_CPP_VERSION__)
SIMT_FN float power_of_two(float x) { return exp2(x); }
SIMT_FN float larger(float a, float b) { return fmax(a, b); }
SIMT_FN u32 warp_lane() { return lane(); }
SIMT_FN u32 warp() { return subgroup(); }
template <class T>
SIMT_FN float number_of(u16 bits) {
  return T::value(bits);
}
#else
SIMT_FN float power_of_two(float x) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}
SIMT_FN float larger(float a, float b) { return fmaxf(a, b); }
// These functions replace lane() and subgroup(), which divide by a number that nvcc does not know at compile time.
SIMT_FN u32 warp_lane() { return local_id() % 32u; }
SIMT_FN u32 warp() { return local_id() / 32u; }
template <class T>
SIMT_FN float number_of(u16 bits) {
  return T::value(bits);
}
template <>
SIMT_FN float number_of<F16>(u16 bits) {
  float out;
  asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(bits));
  return out;
}
#endif

// Rows of q that a group computes. All rows of a tile belong to one unit.
struct Tile {
  u32 unit;
  u32 batch, head, group;  // `head` is the first head of the unit
  u32 first_row, rows;     // the first row of the tile, and the number of rows of its unit
  bool one_head;
};
// Returns the tile of `rows` rows with number `index`.
SIMT_INLINED Tile tile_of(const AttentionMmaParams& p, u32 index, u32 rows) {
  const u32 section = index / (p.section * p.unit_tiles), rest = index - section * p.section * p.unit_tiles;
  const u32 first_unit = section * p.section, units = smaller(p.section, p.units - first_unit);
  const u32 step = rest / units, unit = first_unit + (rest - step * units);
  const u32 batch_units = p.units / p.operands.batches;
  Tile out;
  out.unit = unit;
  out.batch = unit / batch_units;
  out.head = (unit - out.batch * batch_units) * p.unit_heads;
  out.group = out.head / p.operands.repeats;
  // With a causal mask, the last tiles see the most keys, so these tiles begin first.
  out.first_row = (p.operands.causal != 0 ? p.unit_tiles - 1u - step : step) * rows;
  out.rows = p.unit_heads * p.operands.queries;
  out.one_head = p.unit_heads == 1u;
  return out;
}

// The head and the query to which a row of a unit belongs. `repeat` is the number of the head within the unit.
struct Row {
  u32 repeat, query;
};
SIMT_INLINED Row row_of(const AttentionMmaParams& p, const Tile& tile, u32 row) {
  Row out;
  out.repeat = tile.one_head ? 0u : row / p.operands.queries;
  out.query = row - out.repeat * p.operands.queries;
  return out;
}
// Returns the number of keys that the causal mask permits for `query`.
SIMT_INLINED u32 causal_end(const AttentionParams& p, u32 query) {
  if (p.causal == 0) return p.keys;
  const i64 ahead = p.causal == 1 ? (i64)p.keys - (i64)p.queries : 0, end = ahead + (i64)query + 1;
  return end <= 0 ? 0u : end < (i64)p.keys ? (u32)end : p.keys;
}
SIMT_INLINED i64 position(const AttentionStrides& strides, u32 batch, u32 head, u32 row) {
  return strides.batch * batch + strides.head * head + strides.row * row;
}

// Returns the offset in bytes, in a tile in shared memory, of the elements 8 * part to 8 * part + 7 of a row. The
// order of these parts differs between rows, so that the loads of fragments access all banks.
template <int kDepth>
SIMT_INLINED u32 place_of(u32 row, u32 part) {
  return row * (kDepth * 2u) + ((part ^ (row & 7u)) << 4);
}

// Returns the offset in bytes, in successive tiles of kRows rows, of the elements 8 * part to 8 * part + 7 of a row.
// Each block of 64 columns of a tile is stored as the lines that warpgroup_mma.h describes.
template <int kDepth, int kRows>
SIMT_INLINED u32 place_in_lines(u32 row, u32 part) {
  return row / kRows * (kRows * kDepth * 2u) + part / 8u * (kRows * 128u) + row % kRows * 128u +
         (((part ^ row) & 7u) << 4);
}

// Returns the row of shared memory that contains key `r` of a step of kKeys keys if there is a mask. In the fragments
// of scores, each lane then has kKeys / 4 adjacent keys, and loads their mask at once.
template <int kKeys>
SIMT_INLINED u32 slot_of(u32 r) {
  const u32 own = kKeys / 4u;
  return r % own / 2u * 8u + r / own * 2u + r % 2u;
}

// The mask of a lane's keys of a step, for one row. Each key has one byte (bool) or one 16-bit number.
template <int kKeys>
struct MaskWords {
  enum { kOwn = kKeys / 4 };
  u32 words[kOwn / 2];
};
// Loads the mask of the keys from `first` on. Elements past the last key are 0.
template <int kKeys>
SIMT_INLINED void load_mask(MaskWords<kKeys>& out, SIMT_GLOBAL const u8* row, bool is_bool, bool has_words, u32 first,
                            u32 keys) {
  enum { kOwn = MaskWords<kKeys>::kOwn };
  SIMT_GLOBAL const u8* at = row + (is_bool ? first : first * 2u);
  if (has_words && first + kOwn <= keys) {
    MMA_UNROLL for (int i = 0; i < kOwn / 8; ++i) {
      if (i < kOwn / 16 || !is_bool) load_words(out.words + i * 4, at + i * 16);
    }
    return;
  }
  MMA_UNROLL for (int i = 0; i < kOwn / 2; ++i) out.words[i] = 0;
  MMA_UNROLL for (int i = 0; i < kOwn; ++i) {
    if (first + i >= keys) continue;
    if (is_bool) {
      out.words[i / 4] |= (u32)at[i] << 8 * (i % 4);
    } else {
      out.words[i / 2] |= (u32)((Elements)at)[i] << 16 * (i % 2);
    }
  }
}
// Multiplies the scores of a row by the scale, and applies the mask.
template <int kKeys, int kTiles>
SIMT_INLINED void apply_mask(float (&scores)[kTiles][4], int at, const MaskWords<kKeys>& mask, bool is_bool,
                             float scale) {
  MMA_UNROLL for (int n = 0; n < kTiles; ++n) {
    MMA_UNROLL for (int i = 0; i < 2; ++i) {
      float& score = scores[n][at + i];
      const int key = n * 2 + i;
      if (is_bool) {
        score = (mask.words[key / 4] >> 8 * (key % 4) & 0xFFu) != 0 ? score * scale : -infinity();
      } else {
        score = multiply_add(score, scale, number_of<SIMT_T>((u16)(mask.words[key / 2] >> 16 * (key % 2))));
      }
    }
  }
}

// The shape of a group's copies. A thread copies the same 8 columns of every kStep-th row.
template <int kDepth>
struct Loader {
  enum { kParts = kDepth / 8, kStep = ATTENTION_MMA_THREADS / kParts };
};

// The keys or values of a head, of which a thread copies its part step by step.
template <int kDepth>
struct Stream {
  Elements at;  // the thread's first row of the next step
  i64 stride;
  u32 rows, depth;
};
template <int kDepth>
SIMT_INLINED Stream<kDepth> stream_of(Elements from, i64 stride, u32 first, u32 rows, u32 depth) {
  const u32 part = local_id() % Loader<kDepth>::kParts, row = first + local_id() / Loader<kDepth>::kParts;
  return {from + (stride * row + part * 8u), stride, rows, depth};
}
// Copies the next step, which consists of the kKeys rows from `first` on. Elements past the last row or column become
// 0.
template <int kDepth, int kKeys, bool kMasked, class Copies>
SIMT_INLINED void load_step(Copies& copies, SharedAt to, Stream<kDepth>& stream, u32 first) {
  const u32 part = local_id() % Loader<kDepth>::kParts, row = local_id() / Loader<kDepth>::kParts;
  const i32 left = part * 8u < stream.depth ? (i32)stream.rows - (i32)(first + row) : 0;
  MMA_UNROLL for (int r = 0; r < kKeys; r += Loader<kDepth>::kStep) {
    const u32 place =
        kMasked ? place_of<kDepth>(slot_of<kKeys>(row + r), part) : place_of<kDepth>(row, part) + r * kDepth * 2;
    copies.add(to + place, (SIMT_GLOBAL const u8*)stream.at, r < left ? 16u : 0u);
    stream.at += stream.stride * Loader<kDepth>::kStep;
  }
}

template <int kDepth, class Copies>
SIMT_INLINED void load_queries(Copies& copies, SharedAt to, Elements from, const AttentionMmaParams& p,
                               const Tile& tile, u32 rows) {
  const u32 part = local_id() % Loader<kDepth>::kParts;
  for (u32 r = local_id() / Loader<kDepth>::kParts; r < rows; r += Loader<kDepth>::kStep) {
    const Row row = row_of(p, tile, tile.first_row + r);
    const bool inside = tile.first_row + r < tile.rows && part * 8u < p.operands.depth;
    Elements at = from + (position(p.operands.q, 0, row.repeat, row.query) + part * 8u);
    copies.add(to + place_of<kDepth>(r, part), (SIMT_GLOBAL const u8*)at, inside ? 16u : 0u);
  }
}

// The greatest score of a row so far, and the sum of one lane's weights.
struct RowState {
  float greatest, sum;
};
// Returns the greatest score among the 4 lanes of a row.
SIMT_INLINED float row_greatest(float own) {
  MMA_UNROLL for (u32 far = 1; far < 4; far *= 2) own =
      larger(own, float_of_bits(shuffle_xor(bits_of_float(own), far)));
  return own;
}
SIMT_INLINED float row_sum(float own) {
  MMA_UNROLL for (u32 far = 1; far < 4; far *= 2) own += float_of_bits(shuffle_xor(bits_of_float(own), far));
  return own;
}
// Replaces the scores of a row, which are elements `at` and `at + 1` of each tile, with weights. Returns the factor
// by which the caller multiplies the weighted values of earlier steps.
template <int kTiles>
SIMT_INLINED float weigh(float (&scores)[kTiles][4], int at, float factor, RowState& state) {
  float own = state.greatest;
  MMA_UNROLL for (int n = 0; n < kTiles; ++n) own = larger(own, larger(scores[n][at], scores[n][at + 1]));
  const float most = row_greatest(own);
  // -inf minus -inf is NaN, so 0 replaces a maximum of -inf.
  const float base = most == -infinity() ? 0.0f : most;
  const float correction = power_of_two((state.greatest - base) * factor);
  const float shift = multiply_add(-base, factor, (float)WeightUnit<SIMT_T>::kShift);
  float sum = 0.0f;
  MMA_UNROLL for (int n = 0; n < kTiles; ++n) {
    MMA_UNROLL for (int i = 0; i < 2; ++i) {
      const float weight = power_of_two(multiply_add(scores[n][at + i], factor, shift));
      scores[n][at + i] = weight;
      sum += weight;
    }
  }
  state.greatest = most;
  state.sum = multiply_add(state.sum, correction, sum);
  return correction;
}
// Returns the logsumexp of a row. `sum` is the sum of the row's weights relative to the greatest score, times
// 2^kShift.
SIMT_INLINED float logarithm_of(float greatest, float sum, float scale) {
  if (sum == 0.0f) return -infinity();
  return greatest * scale + log_f32(sum / (float)(1u << WeightUnit<SIMT_T>::kShift));
}
