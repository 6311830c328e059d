// SPDX-License-Identifier: Apache-2.0
// The operator `attention_bwd` with matrix units. The kernels compute the weights again from the scores and their
// logsumexp (Dao, FlashAttention-2, 2023). In one kernel, a group computes the gradients of a tile of keys and values
// from all queries. In another kernel, a group computes the gradients of a tile of queries from all keys. No kernel
// adds sums of different groups. Each warp processes 16 rows of the tile. Weights and gradients of scores are rounded
// to 16 bits for products. Operands may have any strides.
#include "attention_bwd_tile.h"

// Copies kRows rows of a head, from row `first` on, to offset `to` of shared memory. Elements past the last row or
// column become 0.
template <int kDepth, int kRows, class Copies>
SIMT_INLINED void load_rows(Copies& copies, SIMT_LOCAL u8* memory, u32 to, const Head& head, u32 first, u32 rows,
                            u32 depth) {
  const u32 part = local_id() % Loader<kDepth>::kParts;
  for (u32 r = local_id() / Loader<kDepth>::kParts; r < kRows; r += Loader<kDepth>::kStep) {
    const u32 row = first + r, column = part * 8u, place = to + place_of<kDepth>(r, part);
    const u32 left = row < rows && column < depth ? smaller(depth - column, 8u) : 0u;
    Elements at = head.from + (head.row * row + head.element * column);
    if (head.has_words) {
      copies.add(shared_at(memory) + place, (SIMT_GLOBAL const u8*)at, left * 2u);
      continue;
    }
    SIMT_LOCAL u32* words = (SIMT_LOCAL u32*)(memory + place);
    MMA_UNROLL for (u32 i = 0; i < 4; ++i) {
      const u32 low = 2 * i < left ? at[head.element * (2 * i)] : 0u;
      const u32 high = 2 * i + 1 < left ? at[head.element * (2 * i + 1)] : 0u;
      words[i] = low | high << 16;
    }
  }
}

// Sets `out` to the dot products of the warp's 16 rows at `left` with the rows at `right`.
template <int kDepth, int kTiles>
SIMT_INLINED void multiply_rows(float (&out)[kTiles][4], SharedAt left, SharedAt right) {
  const u32 row_bytes = kDepth * 2;
  const u32 left_place = place_of<kDepth>(warp() * 16u + warp_lane() % 16u, warp_lane() / 16u);
  const u32 right_place = place_of<kDepth>(warp_lane() / 16u * 8u + warp_lane() % 8u, warp_lane() / 8u % 2u);
  MMA_UNROLL for (int n = 0; n < kTiles; ++n) { MMA_UNROLL for (int i = 0; i < 4; ++i) out[n][i] = 0.0f; }
  MMA_UNROLL for (int s = 0; s < kDepth / 16; ++s) {
    u32 a[4];
    load_matrices(a, left + (left_place ^ 32u * s));
    MMA_UNROLL for (int n = 0; n < kTiles; n += 2) {
      u32 b[4];
      load_matrices(b, right + ((right_place ^ 32u * s) + n * 8 * row_bytes));
      multiply_add_fragments<SIMT_T>(out[n], a, b[0], b[1]);
      multiply_add_fragments<SIMT_T>(out[n + 1], a, b[2], b[3]);
    }
  }
}
// Adds to `sums` the matrix product of the warp's factors, rounded to 16 bits, and the rows at `right`.
template <int kDepth, int kTiles>
SIMT_INLINED void add_columns(float (&sums)[kDepth / 8][4], float (&factors)[kTiles][4], SharedAt right) {
  const u32 place = place_of<kDepth>(warp_lane() % 16u, warp_lane() / 16u);
  MMA_UNROLL for (int s = 0; s < kTiles / 2; ++s) {
    u32 a[4];
    MMA_UNROLL for (int i = 0; i < 4; ++i) a[i] =
        pair_of<SIMT_T>(factors[2 * s + i / 2][i % 2 * 2], factors[2 * s + i / 2][i % 2 * 2 + 1]);
    MMA_UNROLL for (int n = 0; n < kDepth / 8; n += 2) {
      u32 b[4];
      load_transposed(b, right + ((place ^ 16u * n) + s * 16 * kDepth * 2));
      multiply_add_fragments<SIMT_T>(sums[n], a, b[0], b[1]);
      multiply_add_fragments<SIMT_T>(sums[n + 1], a, b[2], b[3]);
    }
  }
}

// Computes the sum of dy * y over each row of dy and y. Each warp processes one row.
MMA_KERNEL(attention_bwd_sums, ATTENTION_BWD_THREADS, 1)
(Pointer dy, Pointer, Pointer, Pointer, Pointer y, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer sums,
 const BwdParams p) {
  const u32 heads = p.groups * p.repeats, row = group_id() * (ATTENTION_BWD_THREADS / 32) + warp();
  const u32 head = row / p.queries, batch = head / heads, query = row - head * p.queries;
  if (row >= p.batches * heads * p.queries) return;
  const Head left = head_of(p, dy, kBwdDy, batch, head - batch * heads);
  const Head right = head_of(p, y, kBwdY, batch, head - batch * heads);
  float sum = 0.0f;
  for (u32 i = warp_lane(); i < p.value_columns; i += 32) {
    const float a = number_of<SIMT_T>(left.from[left.row * query + left.element * i]);
    const float b = number_of<SIMT_T>(right.from[right.row * query + right.element * i]);
    sum = multiply_add(a, b, sum);
  }
  MMA_UNROLL for (u32 far = 1; far < 32; far *= 2) sum += float_of_bits(shuffle_xor(bits_of_float(sum), far));
  if (warp_lane() == 0u) at_offset<float>(sums, p.offsets[kBwdSums])[row] = sum;
}

// Computes dk and dv of a tile of keys.
template <int kDepth>
SIMT_INLINED void backward_keys(SIMT_LOCAL u8* memory, Pointer dy, Pointer q, Pointer k, Pointer v, Pointer logsumexp,
                                Pointer mask, Pointer dk, Pointer dv, Pointer sums, const BwdParams& p) {
  enum { kRows = ATTENTION_BWD_ROWS, kStep = ATTENTION_BWD_STEP(kDepth), kTiles = kStep / 8 };
  const u32 stage_bytes = kStep * kDepth * 4, keys = 0, values = keys + kRows * kDepth * 2,
            stages = values + kRows * kDepth * 2;
  const SharedAt shared = shared_at(memory);
  SIMT_LOCAL float* all_numbers = (SIMT_LOCAL float*)(memory + stages + 2 * stage_bytes);
  const u32 unit = group_id() / p.tiles, first_key = (group_id() - unit * p.tiles) * kRows;
  const u32 batch = unit / p.groups, group = unit - batch * p.groups;
  SharedCopies<64> copies;
  load_rows<kDepth, kRows>(copies, memory, keys, head_of(p, k, kBwdK, batch, group), first_key, p.keys, p.depth);
  load_rows<kDepth, kRows>(copies, memory, values, head_of(p, v, kBwdV, batch, group), first_key, p.keys,
                           p.value_columns);
  float key_sums[kDepth / 8][4], value_sums[kDepth / 8][4];
  MMA_UNROLL for (int n = 0; n < kDepth / 8; ++n) {
    MMA_UNROLL for (int i = 0; i < 4; ++i) key_sums[n][i] = 0.0f, value_sums[n][i] = 0.0f;
  }
  u32 exponents[2] = {kLeastExponent, kLeastExponent};
  // The first query that sees a key of the tile.
  const i64 ahead = p.causal == 1 ? (i64)p.keys - (i64)p.queries : 0;
  const u32 first_query = p.causal == 0 || (i64)first_key <= ahead ? 0u : (u32)((i64)first_key - ahead);
  const u32 first_step = first_query / kStep * kStep;
  const u32 steps = first_step < p.queries ? (p.queries - first_step + kStep - 1u) / kStep : 0u;
  // Copies the rows of q and dy of a step. `step` counts the steps of all heads. Successive steps alternate between
  // two places in shared memory.
  const auto load = [&](u32 step) {
    if (step >= steps * p.repeats) return;
    const u32 repeat = step / steps, first = first_step + (step - repeat * steps) * kStep;
    const u32 head = group * p.repeats + repeat, queries = stages + step % 2u * stage_bytes;
    load_rows<kDepth, kStep>(copies, memory, queries, head_of(p, q, kBwdQ, batch, head), first, p.queries, p.depth);
    load_rows<kDepth, kStep>(copies, memory, queries + kStep * kDepth * 2, head_of(p, dy, kBwdDy, batch, head), first,
                             p.queries, p.value_columns);
    SIMT_LOCAL float* numbers = all_numbers + step % 2u * (2 * kStep);
    for (u32 r = local_id(); r < kStep; r += ATTENTION_BWD_THREADS) {
      const u32 query = smaller(first + r, p.queries - 1u);
      const i64 at = position(p.strides[kBwdLogsumexp], batch, head, query);
      numbers[r] = logsumexp_of(at_offset<float>(logsumexp, p.offsets[kBwdLogsumexp])[at], first + r < p.queries);
      numbers[kStep + r] =
          at_offset<float>(sums, p.offsets[kBwdSums])[(u64)(batch * p.groups * p.repeats + head) * p.queries + query];
    }
  };
  load(0);
  copies.commit();
  for (u32 repeat = 0, step = 0; repeat < p.repeats; ++repeat) {
    SIMT_GLOBAL const u8* own_mask = mask_of(p, mask, batch, group * p.repeats + repeat);
    for (u32 first = first_step; first < p.queries; first += kStep, ++step) {
      copies.template wait<0>();
      group_barrier();
      load(step + 1u);
      copies.commit();
      const u32 queries = stages + step % 2u * stage_bytes, gradients = queries + kStep * kDepth * 2;
      SIMT_LOCAL const float* numbers = all_numbers + step % 2u * (2 * kStep);
      // True if the masks hide no key of the tile from any query of the step. The first query sees the fewest keys.
      const bool is_plain =
          p.mask_kind == SIMT_MASK_NONE && (p.causal == 0 || (i64)first_key + (i64)kRows - 1 <= ahead + (i64)first);
      float weights[kTiles][4], slopes[kTiles][4];
      multiply_rows<kDepth, kTiles>(weights, shared + keys, shared + queries);
      multiply_rows<kDepth, kTiles>(slopes, shared + values, shared + gradients);
      MMA_UNROLL for (int n = 0; n < kTiles; ++n) {
        MMA_UNROLL for (int i = 0; i < 4; ++i) {
          const u32 r = n * 8 + warp_lane() % 4u * 2u + i % 2;
          const u32 key = first_key + warp() * 16u + i / 2 * 8 + warp_lane() / 4u;
          const float weight = is_plain ? plain_weight_of(p, weights[n][i], numbers[r])
                                        : weight_of(p, own_mask, weights[n][i], first + r, key, numbers[r]);
          slopes[n][i] = weight * (slopes[n][i] - numbers[kStep + r]);
          weights[n][i] = weight * (float)(1u << WeightUnit<SIMT_T>::kShift);
        }
      }
      add_columns<kDepth, kTiles>(value_sums, weights, shared + gradients);
      MMA_UNROLL for (int h = 0; h < 2; ++h) {
        const float correction = scale_row<kTiles>(slopes, h * 2, exponents[h]);
        MMA_UNROLL for (int n = 0; n < kDepth / 8; ++n) {
          key_sums[n][h * 2] *= correction;
          key_sums[n][h * 2 + 1] *= correction;
        }
      }
      add_columns<kDepth, kTiles>(key_sums, slopes, shared + queries);
    }
  }
  copies.template wait<0>();
  const float key_factors[2] = {p.scale * unscaled(exponents[0]), p.scale * unscaled(exponents[1])};
  const float value_factor = 1.0f / (float)(1u << WeightUnit<SIMT_T>::kShift);
  const float value_factors[2] = {value_factor, value_factor};
  if (p.has_dk != 0) {
    store_rows<kDepth>(p, dk, kBwdDk, batch, group, first_key, p.keys, p.depth, key_sums, key_factors);
  }
  if (p.has_dv != 0) {
    store_rows<kDepth>(p, dv, kBwdDv, batch, group, first_key, p.keys, p.value_columns, value_sums, value_factors);
  }
}

// Computes dq of a tile of queries.
template <int kDepth>
SIMT_INLINED void backward_queries(SIMT_LOCAL u8* memory, Pointer dy, Pointer q, Pointer k, Pointer v,
                                   Pointer logsumexp, Pointer mask, Pointer dq, Pointer sums, const BwdParams& p) {
  enum { kRows = ATTENTION_BWD_ROWS, kStep = ATTENTION_BWD_STEP(kDepth), kTiles = kStep / 8 };
  const u32 stage_bytes = kStep * kDepth * 4, queries = 0, gradients = queries + kRows * kDepth * 2,
            stages = gradients + kRows * kDepth * 2;
  const SharedAt shared = shared_at(memory);
  const u32 heads = p.groups * p.repeats, unit = group_id() / p.tiles;
  const u32 first_query = (group_id() - unit * p.tiles) * kRows;
  const u32 batch = unit / heads, head = unit - batch * heads;
  SharedCopies<64> copies;
  load_rows<kDepth, kRows>(copies, memory, queries, head_of(p, q, kBwdQ, batch, head), first_query, p.queries, p.depth);
  load_rows<kDepth, kRows>(copies, memory, gradients, head_of(p, dy, kBwdDy, batch, head), first_query, p.queries,
                           p.value_columns);
  const Head own_keys = head_of(p, k, kBwdK, batch, head / p.repeats);
  const Head own_values = head_of(p, v, kBwdV, batch, head / p.repeats);
  SIMT_GLOBAL const u8* own_mask = mask_of(p, mask, batch, head);
  float query_sums[kDepth / 8][4];
  MMA_UNROLL for (int n = 0; n < kDepth / 8; ++n) { MMA_UNROLL for (int i = 0; i < 4; ++i) query_sums[n][i] = 0.0f; }
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
  // The number of keys that the last query of the tile sees.
  const u32 last = smaller(first_query + kRows, p.queries) - 1u;
  const i64 ahead = p.causal == 1 ? (i64)p.keys - (i64)p.queries : 0, seen = ahead + (i64)last + 1;
  const u32 end = p.causal == 0 || seen >= (i64)p.keys ? p.keys : seen <= 0 ? 0u : (u32)seen;
  // The number of keys that all queries of the tile see.
  const i64 seen_by_all = ahead + (i64)first_query + 1;
  const u32 plain_end = p.causal == 0 || seen_by_all >= (i64)p.keys ? p.keys : seen_by_all <= 0 ? 0u : (u32)seen_by_all;
  // Copies the keys and values of a step. Successive steps alternate between two places in shared memory.
  const auto load = [&](u32 first) {
    if (first >= end) return;
    const u32 keys = stages + first / kStep % 2u * stage_bytes;
    load_rows<kDepth, kStep>(copies, memory, keys, own_keys, first, p.keys, p.depth);
    load_rows<kDepth, kStep>(copies, memory, keys + kStep * kDepth * 2, own_values, first, p.keys, p.value_columns);
  };
  load(0);
  copies.commit();
  for (u32 first = 0; first < end; first += kStep) {
    copies.template wait<0>();
    group_barrier();
    load(first + kStep);
    copies.commit();
    const u32 keys = stages + first / kStep % 2u * stage_bytes, values = keys + kStep * kDepth * 2;
    const bool is_plain = p.mask_kind == SIMT_MASK_NONE && first + kStep <= plain_end;
    float weights[kTiles][4], slopes[kTiles][4];
    multiply_rows<kDepth, kTiles>(weights, shared + queries, shared + keys);
    multiply_rows<kDepth, kTiles>(slopes, shared + gradients, shared + values);
    MMA_UNROLL for (int n = 0; n < kTiles; ++n) {
      MMA_UNROLL for (int i = 0; i < 4; ++i) {
        const u32 key = first + n * 8 + warp_lane() % 4u * 2u + i % 2;
        const float weight = is_plain ? plain_weight_of(p, weights[n][i], row_logsumexp[i / 2])
                                      : weight_of(p, own_mask, weights[n][i], own[i / 2], key, row_logsumexp[i / 2]);
        slopes[n][i] = weight * (slopes[n][i] - row_sums[i / 2]);
      }
    }
    MMA_UNROLL for (int h = 0; h < 2; ++h) {
      const float correction = scale_row<kTiles>(slopes, h * 2, exponents[h]);
      MMA_UNROLL for (int n = 0; n < kDepth / 8; ++n) {
        query_sums[n][h * 2] *= correction;
        query_sums[n][h * 2 + 1] *= correction;
      }
    }
    add_columns<kDepth, kTiles>(query_sums, slopes, shared + keys);
  }
  copies.template wait<0>();
  const float factors[2] = {p.scale * unscaled(exponents[0]), p.scale * unscaled(exponents[1])};
  store_rows<kDepth>(p, dq, kBwdDq, batch, head, first_query, p.queries, p.depth, query_sums, factors);
}

#define ATTENTION_BWD_KERNELS(depth, key_groups, query_groups)                                                 \
  MMA_KERNEL(attention_bwd_keys_##depth, ATTENTION_BWD_THREADS, key_groups)                                    \
  (Pointer dy, Pointer q, Pointer k, Pointer v, Pointer, Pointer logsumexp, Pointer mask, Pointer, Pointer dk, \
   Pointer dv, Pointer sums, const BwdParams p) {                                                              \
    MMA_SHARED(memory, ATTENTION_BWD_BYTES(depth));                                                            \
    backward_keys<depth>(memory, dy, q, k, v, logsumexp, mask, dk, dv, sums, p);                               \
  }                                                                                                            \
  MMA_KERNEL(attention_bwd_queries_##depth, ATTENTION_BWD_THREADS, query_groups)                               \
  (Pointer dy, Pointer q, Pointer k, Pointer v, Pointer, Pointer logsumexp, Pointer mask, Pointer dq, Pointer, \
   Pointer, Pointer sums, const BwdParams p) {                                                                 \
    MMA_SHARED(memory, ATTENTION_BWD_BYTES(depth));                                                            \
    backward_queries<depth>(memory, dy, q, k, v, logsumexp, mask, dq, sums, p);                                \
  }
ATTENTION_BWD_KERNELS(64, 2, 2)
ATTENTION_BWD_KERNELS(128, 2, 2)
