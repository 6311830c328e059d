// SPDX-License-Identifier: Apache-2.0
// Code that the kernels of `attention_bwd` share: operands, weights, and the scales of gradients of scores.
#pragma once
#include "warp_mma.h"

#include "device/math.h"
#include "device/nest.h"

#include "device/attention_params.h"

#include "attention_bwd_params.h"
#include "attention_mma_params.h"
#include "attention_tile.h"

typedef AttentionBwdParams BwdParams;

// One head of an operand.
struct Head {
  Elements from;
  i64 row, element;
  bool has_words;
};
SIMT_INLINED Head head_of(const BwdParams& p, Pointer base, int operand, u32 batch, u32 head) {
  const AttentionStrides& strides = p.strides[operand];
  return {at_offset<Element>(base, p.offsets[operand]) + position(strides, batch, head, 0), strides.row,
          strides.element, (p.words >> operand & 1u) != 0};
}

// Gradients of scores may be small, and f16 has a small range. scale_row therefore multiplies a row by a power of
// two, so that the greatest magnitude of the row so far is about 2^kShift (WeightUnit). `exponent` is the exponent
// field of this greatest magnitude as f32; it never decreases. Returns the factor by which the caller multiplies
// earlier sums of the row.
enum { kLeastExponent = 32, kGreatestExponent = 254 };
template <int kTiles>
SIMT_INLINED float scale_row(float (&row)[kTiles][4], int at, u32& exponent) {
  if (WeightUnit<SIMT_T>::kShift == 0) return 1.0f;
  float own = 0.0f;
  MMA_UNROLL for (int n = 0; n < kTiles; ++n) {
    MMA_UNROLL for (int i = 0; i < 2; ++i) own =
        larger(own, float_of_bits(bits_of_float(row[n][at + i]) & 0x7FFFFFFFu));
  }
  const u32 found = smaller(bits_of_float(row_greatest(own)) >> 23, (u32)kGreatestExponent);
  const u32 grown = found > exponent ? found - exponent : 0u;
  exponent += grown;
  const float factor = float_of_bits((2u * 127u + WeightUnit<SIMT_T>::kShift - exponent) << 23);
  MMA_UNROLL for (int n = 0; n < kTiles; ++n) { MMA_UNROLL for (int i = 0; i < 2; ++i) row[n][at + i] *= factor; }
  return grown < 127u ? float_of_bits((127u - grown) << 23) : 0.0f;
}
// Returns the factor that undoes the scale of a row's sums.
SIMT_INLINED float unscaled(u32 exponent) {
  return WeightUnit<SIMT_T>::kShift == 0 ? 1.0f : float_of_bits((exponent - WeightUnit<SIMT_T>::kShift) << 23);
}

// Returns the weight of a key for a query: e^(score - logsumexp), or 0 if a mask hides the key. `mask` points to the
// mask of the head.
SIMT_INLINED float weight_of(const BwdParams& p, SIMT_GLOBAL const u8* mask, float score, u32 query, u32 key,
                             float logsumexp) {
  if (query >= p.queries || key >= p.keys) return 0.0f;
  if (p.causal != 0) {
    const i64 ahead = p.causal == 1 ? (i64)p.keys - (i64)p.queries : 0;
    if ((i64)key > ahead + (i64)query) return 0.0f;
  }
  score *= p.scale;
  if (p.mask_kind != SIMT_MASK_NONE) {
    const i64 at = p.strides[kBwdMask].row * query + p.strides[kBwdMask].element * key;
    if (p.mask_kind == SIMT_MASK_ADDED) {
      score += number_of<SIMT_T>(((Elements)mask)[at]);
    } else if (mask[at] == 0) {
      return 0.0f;
    }
  }
  return power_of_two((score - logsumexp) * LOG2_E);
}
// Returns the weight of a key that no mask hides. The logsumexp of a row without weights is inf, so its weights are
// 0.
SIMT_INLINED float plain_weight_of(const BwdParams& p, float score, float logsumexp) {
  return power_of_two(multiply_add(score, p.scale, -logsumexp) * LOG2_E);
}
// Returns the logsumexp `given`, or inf if the row does not exist or all its weights are 0.
SIMT_INLINED float logsumexp_of(float given, bool is_row) {
  return is_row && given != -infinity() ? given : infinity();
}
SIMT_INLINED SIMT_GLOBAL const u8* mask_of(const BwdParams& p, Pointer mask, u32 batch, u32 head) {
  const i64 at = p.mask_kind == SIMT_MASK_NONE ? 0 : position(p.strides[kBwdMask], batch, head, 0);
  return at_offset<u8>(mask, p.offsets[kBwdMask]) + (p.mask_kind == SIMT_MASK_ADDED ? at * 2 : at);
}

// Stores the warp's 16 rows of a gradient. The sums of the lane's two rows are multiplied by factors[0] and
// factors[1].
template <int kDepth>
SIMT_INLINED void store_rows(const BwdParams& p, Pointer base, int operand, u32 batch, u32 head, u32 first, u32 rows,
                             u32 depth, float (&sums)[kDepth / 8][4], const float (&factors)[2]) {
  const AttentionStrides& strides = p.strides[operand];
  SIMT_GLOBAL Element* to = at_offset<Element>(base, p.offsets[operand]) + position(strides, batch, head, 0);
  MMA_UNROLL for (int h = 0; h < 2; ++h) {
    const u32 row = first + warp() * 16u + h * 8 + warp_lane() / 4u;
    if (row >= rows) continue;
    SIMT_GLOBAL Element* at = to + strides.row * row;
    MMA_UNROLL for (int n = 0; n < kDepth / 8; ++n) {
      const u32 column = n * 8 + warp_lane() % 4u * 2u;
      const u32 pair = pair_of<SIMT_T>(sums[n][h * 2] * factors[h], sums[n][h * 2 + 1] * factors[h]);
      if ((p.words >> operand & 1u) != 0 && column + 1u < depth) {
        *(SIMT_GLOBAL u32*)(at + column) = pair;
        continue;
      }
      MMA_UNROLL for (u32 i = 0; i < 2; ++i) {
        if (column + i < depth) at[strides.element * (column + i)] = (Element)(pair >> 16 * i);
      }
    }
  }
}
