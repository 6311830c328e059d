// SPDX-License-Identifier: Apache-2.0
// The operator `attention_bwd` with products of warpgroups. As in attention_bwd.h, one kernel computes dk and dv, and
// another kernel computes dq. A group has two warpgroups, each of which processes 64 rows of the tile. Rows of dy, q,
// k and v are contiguous and begin at multiples of 16 bytes. While the products of dy with the values run, the
// threads compute the exponentials of the step. In the kernel for dk and dv, the threads compute the gradients of the
// scores while the products with the weights run.
#include "warpgroup_rows.h"

#include "attention_bwd_tile.h"

// Copies kRows rows of a head, from row `first` on, to lines of shared memory (warpgroup_mma.h). Elements past the
// last row or column become 0.
template <int kDepth, int kRows, class Copies>
SIMT_INLINED void copy_lines(Copies& copies, SharedAt to, const Head& head, u32 first, u32 rows, u32 depth) {
  enum { kParts = kDepth / 8, kStep = ATTENTION_BWD_GROUP_THREADS / kParts };
  const u32 part = local_id() % kParts, row = local_id() / kParts, place = place_in_lines<kDepth, kRows>(row, part);
  const u32 bytes = part * 8u < depth ? smaller(depth - part * 8u, 8u) * 2u : 0u;
  Elements at = head.from + (head.row * (first + row) + part * 8u);
  MMA_UNROLL for (int r = 0; r < kRows; r += kStep) {
    copies.add(to + (place + r * 128), (SIMT_GLOBAL const u8*)at, first + row + r < rows ? bytes : 0u);
    at += head.row * kStep;
  }
}

// Begins the products of the warpgroup's 64 rows, of the kRows rows at `left`, with the 64 rows at `right`.
template <int kDepth, int kRows, class Products>
SIMT_INLINED void multiply_lines(Products& products, SharedAt left, SharedAt right) {
  const SharedAt own = left + warpgroup() * (WARPGROUP_ROWS * 128);
  MMA_UNROLL for (int s = 0; s < kDepth / 16; ++s) {
    products.multiply(own + (s / 4 * (kRows * 128) + s % 4 * WARPGROUP_STEP(false)),
                      right + (s / 4 * (64 * 128) + s % 4 * WARPGROUP_STEP(false)), s != 0);
  }
}
// Multiplies the factors by `multiple`, rounds the products to 16 bits and packs them as fragments.
SIMT_INLINED void round_factors(u32 (&out)[4][4], float (&factors)[8][4], float multiple) {
  MMA_UNROLL for (int s = 0; s < 4; ++s) {
    MMA_UNROLL for (int i = 0; i < 4; ++i) {
      const auto& pair = factors[2 * s + i / 2];
      out[s][i] = pair_of<SIMT_T>(pair[i % 2 * 2] * multiple, pair[i % 2 * 2 + 1] * multiple);
    }
  }
}

// Computes dk and dv of a tile of keys.
template <int kDepth>
SIMT_INLINED void backward_group_keys(SIMT_LOCAL u8* memory, Pointer dy, Pointer q, Pointer k, Pointer v,
                                      Pointer logsumexp, Pointer mask, Pointer dk, Pointer dv, Pointer sums,
                                      const BwdParams& p) {
  enum {
    kRows = ATTENTION_BWD_GROUP_ROWS,
    kStep = ATTENTION_BWD_GROUP_STEP,
    kTiles = kStep / 8,
    kTileBytes = kStep * kDepth * 2
  };
  SIMT_LOCAL float* all_numbers = (SIMT_LOCAL float*)memory;
  const SharedAt keys = lines_at(memory + 4 * kStep * 4), values = keys + kRows * kDepth * 2;
  const SharedAt stages = values + kRows * kDepth * 2;
  const u32 unit = group_id() / p.tiles, first_key = (group_id() - unit * p.tiles) * kRows;
  const u32 batch = unit / p.groups, group = unit - batch * p.groups;
  SharedCopies<64> copies;
  copy_lines<kDepth, kRows>(copies, keys, head_of(p, k, kBwdK, batch, group), first_key, p.keys, p.depth);
  copy_lines<kDepth, kRows>(copies, values, head_of(p, v, kBwdV, batch, group), first_key, p.keys, p.value_columns);
  // The first query that sees a key of the tile.
  const i64 ahead = p.causal == 1 ? (i64)p.keys - (i64)p.queries : 0;
  const u32 first_query = p.causal == 0 || (i64)first_key <= ahead ? 0u : (u32)((i64)first_key - ahead);
  const u32 first_step = first_query / kStep * kStep;
  const u32 steps = first_step < p.queries ? (p.queries - first_step + kStep - 1u) / kStep : 0u;
  const auto load = [&](u32 step, u32 repeat, u32 first) {
    if (repeat >= p.repeats) return;
    const u32 head = group * p.repeats + repeat;
    const SharedAt to = stages + step % 2u * (2 * kTileBytes);
    copy_lines<kDepth, kStep>(copies, to, head_of(p, q, kBwdQ, batch, head), first, p.queries, p.depth);
    copy_lines<kDepth, kStep>(copies, to + kTileBytes, head_of(p, dy, kBwdDy, batch, head), first, p.queries,
                              p.value_columns);
    if (local_id() < kStep) {
      SIMT_LOCAL float* numbers = all_numbers + (step % 2u * (2 * kStep) + local_id());
      const u32 query = smaller(first + local_id(), p.queries - 1u);
      const i64 at = position(p.strides[kBwdLogsumexp], batch, head, query);
      numbers[0] =
          logsumexp_of(at_offset<float>(logsumexp, p.offsets[kBwdLogsumexp])[at], first + local_id() < p.queries);
      numbers[kStep] =
          at_offset<float>(sums, p.offsets[kBwdSums])[(u64)(batch * p.groups * p.repeats + head) * p.queries + query];
    }
  };
  u32 next_repeat = 0, next_first = first_step;
  const auto load_next = [&](u32 step) {
    if (steps != 0u) load(step, next_repeat, next_first);
    copies.commit();
    next_first += kStep;
    if (next_first >= p.queries) next_first = first_step, ++next_repeat;
  };
  load_next(0);

  // of_values contains scores and dv. of_keys contains gradients of weights, and dk.
  RowProducts<SIMT_T, kStep, kDepth> of_values, of_keys;
  of_values.start();
  of_keys.start();
  u32 exponents[2] = {kLeastExponent, kLeastExponent};
  u32 weights[4][4], slopes[4][4];
  for (u32 repeat = 0, step = 0; repeat < p.repeats; ++repeat) {
    SIMT_GLOBAL const u8* own_mask = mask_of(p, mask, batch, group * p.repeats + repeat);
    for (u32 first = first_step; first < p.queries; first += kStep, ++step) {
      const SharedAt queries = stages + step % 2u * (2 * kTileBytes), gradients = queries + kTileBytes;
      wait_for_products<0>(copies);
      group_barrier();
      load_next(step + 1u);
      of_values.hold_scores();
      of_keys.hold_scores();
      of_values.fence();
      of_keys.fence();
      multiply_lines<kDepth, kRows>(of_values, keys, queries);
      of_values.commit();
      multiply_lines<kDepth, kRows>(of_keys, values, gradients);
      of_keys.commit();
      of_values.wait_behind();
      of_values.hold_scores();
      SIMT_LOCAL const float* numbers = all_numbers + step % 2u * (2 * kStep);
      // True if the masks hide no key of the tile from any query of the step. The first query sees the fewest keys.
      const bool is_plain =
          p.mask_kind == SIMT_MASK_NONE && (p.causal == 0 || (i64)first_key + (i64)kRows - 1 <= ahead + (i64)first);
      MMA_UNROLL for (int n = 0; n < kTiles; ++n) {
        MMA_UNROLL for (int i = 0; i < 4; ++i) {
          const u32 r = n * 8 + warp_lane() % 4u * 2u + i % 2;
          const u32 key = first_key + warp() * 16u + i / 2 * 8 + warp_lane() / 4u;
          float& score = of_values.scores[n][i];
          score = is_plain ? plain_weight_of(p, score, numbers[r])
                           : weight_of(p, own_mask, score, first + r, key, numbers[r]);
        }
      }
      round_factors(weights, of_values.scores, (float)(1u << WeightUnit<SIMT_T>::kShift));
      of_values.hold_weighted();
      of_values.fence();
      MMA_UNROLL for (int s = 0; s < 4; ++s) of_values.add(weights[s], gradients + s * WARPGROUP_STEP(true));
      of_values.commit();
      of_keys.wait_behind();
      of_keys.hold_scores();
      MMA_UNROLL for (int n = 0; n < kTiles; ++n) {
        MMA_UNROLL for (int i = 0; i < 4; ++i) {
          const u32 r = n * 8 + warp_lane() % 4u * 2u + i % 2;
          of_keys.scores[n][i] = of_values.scores[n][i] * (of_keys.scores[n][i] - numbers[kStep + r]);
        }
      }
      MMA_UNROLL for (int h = 0; h < 2; ++h) {
        const float correction = scale_row<kTiles>(of_keys.scores, h * 2, exponents[h]);
        MMA_UNROLL for (int n = 0; n < kDepth / 8; ++n) {
          of_keys.weighted[n][h * 2] *= correction;
          of_keys.weighted[n][h * 2 + 1] *= correction;
        }
      }
      round_factors(slopes, of_keys.scores, 1.0f);
      of_keys.hold_weighted();
      of_keys.fence();
      MMA_UNROLL for (int s = 0; s < 4; ++s) of_keys.add(slopes[s], queries + s * WARPGROUP_STEP(true));
      of_keys.commit();
      of_values.template wait<0>();
      of_keys.template wait<0>();
      of_values.hold_weighted();
      of_keys.hold_weighted();
    }
  }
  copies.template wait<0>();
  const float key_factors[2] = {p.scale * unscaled(exponents[0]), p.scale * unscaled(exponents[1])};
  const float value_factor = 1.0f / (float)(1u << WeightUnit<SIMT_T>::kShift);
  const float value_factors[2] = {value_factor, value_factor};
  if (p.has_dk != 0) {
    store_rows<kDepth>(p, dk, kBwdDk, batch, group, first_key, p.keys, p.depth, of_keys.weighted, key_factors);
  }
  if (p.has_dv != 0) {
    store_rows<kDepth>(p, dv, kBwdDv, batch, group, first_key, p.keys, p.value_columns, of_values.weighted,
                       value_factors);
  }
}

// Computes dq of a tile of queries.
template <int kDepth>
SIMT_INLINED void backward_group_queries(SIMT_LOCAL u8* memory, Pointer dy, Pointer q, Pointer k, Pointer v,
                                         Pointer logsumexp, Pointer mask, Pointer dq, Pointer sums,
                                         const BwdParams& p) {
  enum {
    kRows = ATTENTION_BWD_GROUP_ROWS,
    kStep = ATTENTION_BWD_GROUP_STEP,
    kTiles = kStep / 8,
    kTileBytes = kStep * kDepth * 2
  };
  const SharedAt queries = lines_at(memory), gradients = queries + kRows * kDepth * 2;
  const SharedAt stages = gradients + kRows * kDepth * 2;
  const u32 heads = p.groups * p.repeats, unit = group_id() / p.tiles;
  const u32 tile = group_id() - unit * p.tiles;
  // With a causal mask, the last tiles see the most keys, so these tiles begin first.
  const u32 first_query = (p.causal != 0 ? p.tiles - 1u - tile : tile) * kRows;
  const u32 batch = unit / heads, head = unit - batch * heads;
  SharedCopies<64> copies;
  copy_lines<kDepth, kRows>(copies, queries, head_of(p, q, kBwdQ, batch, head), first_query, p.queries, p.depth);
  copy_lines<kDepth, kRows>(copies, gradients, head_of(p, dy, kBwdDy, batch, head), first_query, p.queries,
                            p.value_columns);
  const Head own_keys = head_of(p, k, kBwdK, batch, head / p.repeats);
  const Head own_values = head_of(p, v, kBwdV, batch, head / p.repeats);
  SIMT_GLOBAL const u8* own_mask = mask_of(p, mask, batch, head);
  u32 exponents[2] = {kLeastExponent, kLeastExponent};
  u32 own[2];
  float row_logsumexp[2], row_sums[2];
  MMA_UNROLL for (int h = 0; h < 2; ++h) {
    own[h] = first_query + warp() * 16u + h * 8 + warp_lane() / 4u;
    const u32 query = smaller(own[h], p.queries - 1u);
    const i64 at = position(p.strides[kBwdLogsumexp], batch, head, query);
    row_logsumexp[h] = logsumexp_of(at_offset<float>(logsumexp, p.offsets[kBwdLogsumexp])[at], own[h] < p.queries);
    row_sums[h] = at_offset<float>(sums, p.offsets[kBwdSums])[(u64)(batch * heads + head) * p.queries + query];
  }
  // `end` is the number of keys that the last query of the tile sees. `plain_end` is the number of keys that all its
  // queries see.
  const u32 last = smaller(first_query + kRows, p.queries) - 1u;
  const i64 ahead = p.causal == 1 ? (i64)p.keys - (i64)p.queries : 0, seen = ahead + (i64)last + 1;
  const u32 end = p.causal == 0 || seen >= (i64)p.keys ? p.keys : seen <= 0 ? 0u : (u32)seen;
  const i64 seen_by_all = ahead + (i64)first_query + 1;
  const u32 plain_end = p.causal == 0 || seen_by_all >= (i64)p.keys ? p.keys : seen_by_all <= 0 ? 0u : (u32)seen_by_all;
  const auto load = [&](u32 first) {
    const SharedAt to = stages + first / kStep % 2u * (2 * kTileBytes);
    if (first < end) {
      copy_lines<kDepth, kStep>(copies, to, own_keys, first, p.keys, p.depth);
      copy_lines<kDepth, kStep>(copies, to + kTileBytes, own_values, first, p.keys, p.value_columns);
    }
    copies.commit();
  };
  load(0);
  RowProducts<SIMT_T, kStep, kDepth> of_queries;  // scores and dq
  RowProducts<SIMT_T, kStep, 64> of_weights;      // gradients of weights
  of_queries.start();
  of_weights.start();
  u32 slopes[4][4];
  for (u32 first = 0; first < end; first += kStep) {
    const SharedAt keys = stages + first / kStep % 2u * (2 * kTileBytes), values = keys + kTileBytes;
    wait_for_products<0>(copies);
    group_barrier();
    load(first + kStep);
    of_queries.hold_scores();
    of_weights.hold_scores();
    of_queries.fence();
    of_weights.fence();
    multiply_lines<kDepth, kRows>(of_queries, queries, keys);
    of_queries.commit();
    multiply_lines<kDepth, kRows>(of_weights, gradients, values);
    of_weights.commit();
    of_queries.wait_behind();
    of_queries.hold_scores();
    const bool is_plain = p.mask_kind == SIMT_MASK_NONE && first + kStep <= plain_end;
    MMA_UNROLL for (int n = 0; n < kTiles; ++n) {
      MMA_UNROLL for (int i = 0; i < 4; ++i) {
        const u32 key = first + n * 8 + warp_lane() % 4u * 2u + i % 2;
        float& score = of_queries.scores[n][i];
        score = is_plain ? plain_weight_of(p, score, row_logsumexp[i / 2])
                         : weight_of(p, own_mask, score, own[i / 2], key, row_logsumexp[i / 2]);
      }
    }
    of_weights.template wait<0>();
    of_weights.hold_scores();
    MMA_UNROLL for (int n = 0; n < kTiles; ++n) {
      MMA_UNROLL for (int i = 0; i < 4; ++i) {
        of_weights.scores[n][i] = of_queries.scores[n][i] * (of_weights.scores[n][i] - row_sums[i / 2]);
      }
    }
    MMA_UNROLL for (int h = 0; h < 2; ++h) {
      const float correction = scale_row<kTiles>(of_weights.scores, h * 2, exponents[h]);
      MMA_UNROLL for (int n = 0; n < kDepth / 8; ++n) {
        of_queries.weighted[n][h * 2] *= correction;
        of_queries.weighted[n][h * 2 + 1] *= correction;
      }
    }
    round_factors(slopes, of_weights.scores, 1.0f);
    of_queries.hold_weighted();
    of_queries.fence();
    MMA_UNROLL for (int s = 0; s < 4; ++s) of_queries.add(slopes[s], keys + s * WARPGROUP_STEP(true));
    of_queries.commit();
    of_queries.template wait<0>();
    of_queries.hold_weighted();
  }
  copies.template wait<0>();
  const float factors[2] = {p.scale * unscaled(exponents[0]), p.scale * unscaled(exponents[1])};
  store_rows<kDepth>(p, dq, kBwdDq, batch, head, first_query, p.queries, p.depth, of_queries.weighted, factors);
}

#define ATTENTION_BWD_GROUP_KERNELS(depth)                                                                     \
  MMA_KERNEL(attention_bwd_warpgroup_keys_##depth, ATTENTION_BWD_GROUP_THREADS, 1)                             \
  (Pointer dy, Pointer q, Pointer k, Pointer v, Pointer, Pointer logsumexp, Pointer mask, Pointer, Pointer dk, \
   Pointer dv, Pointer sums, const BwdParams p) {                                                              \
    MMA_SHARED(memory, ATTENTION_BWD_GROUP_BYTES(depth));                                                      \
    backward_group_keys<depth>(memory, dy, q, k, v, logsumexp, mask, dk, dv, sums, p);                         \
  }                                                                                                            \
  MMA_KERNEL(attention_bwd_warpgroup_queries_##depth, ATTENTION_BWD_GROUP_THREADS, 1)                          \
  (Pointer dy, Pointer q, Pointer k, Pointer v, Pointer, Pointer logsumexp, Pointer mask, Pointer dq, Pointer, \
   Pointer, Pointer sums, const BwdParams p) {                                                                 \
    MMA_SHARED(memory, ATTENTION_BWD_GROUP_BYTES(depth));                                                      \
    backward_group_queries<depth>(memory, dy, q, k, v, logsumexp, mask, dq, sums, p);                          \
  }
ATTENTION_BWD_GROUP_KERNELS(64)
ATTENTION_BWD_GROUP_KERNELS(128)
