// SPDX-License-Identifier: Apache-2.0
// The operator `attention` with products of warpgroups. A group has several warpgroups, each of which processes 64
// rows with all keys of a step and all columns of v. Several steps of keys and values are in shared memory.
//
// The warpgroups begin their products in turns. While the products of one warpgroup run, another warpgroup computes
// weights. In its turn, a warpgroup begins the products for the scores of a step and for the weighted values of the
// previous step. Then it passes the turn to the next warpgroup, and begins its part of the copies for a later step.
// Passing the turn also means that the warpgroup's copies have arrived.
#include "warpgroup_rows.h"

#include "device/math.h"
#include "device/nest.h"

#include "device/attention_params.h"

#include "attention_mma_params.h"
#include "attention_tile.h"

// The keys or values of a head, in tiles of kRows rows. A warpgroup copies its part of each step, and a thread copies
// the same 8 columns of several rows.
template <int kDepth, int kGroups, int kKeys, int kRows, bool kMasked>
struct GroupStream {
  enum { kParts = kDepth / 8, kOwnRows = kKeys / kGroups, kStep = WARPGROUP / kParts };
  Elements at;
  i32 left;  // rows from the thread's first row of the next step to the last row

  // Sets the source of the first step, which begins at the first row of a head.
  SIMT_INLINED void start(Elements from, i64 stride, u32 rows, u32 depth) {
    const u32 part = local_id() % kParts, row = first_row();
    at = from + (stride * row + part * 8u);
    left = (i32)(part * 8u < depth ? rows : 0u) - (i32)row;
  }
  // Copies the next step. Elements past the last row or column become 0.
  template <class Copies>
  SIMT_INLINED void load(Copies& copies, SharedAt to, i64 stride) {
    const u32 part = local_id() % kParts, row = first_row(), place = place_in_lines<kDepth, kRows>(row, part);
    Elements from = at;
    MMA_UNROLL for (int r = 0; r < kOwnRows; r += kStep) {
      // Without a mask, a warpgroup's rows of a step either begin at a multiple of a tile or lie within one tile. Row
      // r is therefore r * 128 bytes after the first row.
      const u32 masked_place = place_in_lines<kDepth, kRows>(slot_of<kKeys>(row + r), part);
      copies.add(to + (kMasked ? masked_place : place + r * 128), (SIMT_GLOBAL const u8*)from, r < left ? 16u : 0u);
      from += stride * kStep;
    }
    at += stride * kKeys;
    left -= kKeys;
  }

 private:
  SIMT_INLINED u32 first_row() const { return warpgroup() * kOwnRows + local_id() % WARPGROUP / kParts; }
};

// Replaces the scores of a row with weights like `weigh`. Keeps the previous greatest score if no weight then exceeds
// 2^kGrowth, relative to that score.
template <int kTiles, int kGrowth>
SIMT_INLINED float weigh_row(float (&scores)[kTiles][4], int at, float factor, RowState& state) {
  float even = scores[0][at], odd = scores[0][at + 1];
  MMA_UNROLL for (int n = 1; n < kTiles; ++n) {
    even = larger(even, scores[n][at]);
    odd = larger(odd, scores[n][at + 1]);
  }
  float most = larger(row_greatest(larger(even, odd)), state.greatest);
  if (kGrowth != 0) most = (most - state.greatest) * factor <= (float)kGrowth ? state.greatest : most;
  const float base = most == -infinity() ? 0.0f : most;
  const float correction = power_of_two((state.greatest - base) * factor);
  const float shift = multiply_add(-base, factor, (float)WeightUnit<SIMT_T>::kShift);
  float sums[2] = {0.0f, 0.0f};
  MMA_UNROLL for (int n = 0; n < kTiles; ++n) {
    MMA_UNROLL for (int i = 0; i < 2; ++i) {
      const float weight = power_of_two(multiply_add(scores[n][at + i], factor, shift));
      scores[n][at + i] = weight;
      sums[i] += weight;
    }
  }
  state.greatest = most;
  state.sum = multiply_add(state.sum, correction, sums[0] + sums[1]);
  return correction;
}

// Transposes words among the 4 lanes of a row. Lane c begins with word c of the tiles 0 to 3, and ends with the words
// 0 to 3 of tile c.
SIMT_INLINED void exchange(u32 (&words)[4]) {
  MMA_UNROLL for (int far = 1; far < 4; far *= 2) {
    const bool is_upper = (warp_lane() & far) != 0;
    MMA_UNROLL for (int i = 0; i < 4; ++i) {
      if ((i & far) != 0) continue;
      const u32 received = shuffle_xor(is_upper ? words[i] : words[i + far], far);
      words[i] = is_upper ? received : words[i];
      words[i + far] = is_upper ? words[i + far] : received;
    }
  }
}

// If kHoldsQueries is true, fragments of queries stay in registers.
template <int kDepth, int kGroups, int kKeys, int kStages, bool kHoldsQueries, int kGrowth, bool kMasked>
SIMT_INLINED void attend_in_turns(SIMT_LOCAL u8* memory, Pointer y, Pointer logsumexp, Pointer q, Pointer k, Pointer v,
                                  Pointer mask, const AttentionMmaParams& p) {
  enum {
    kRows = ATTENTION_TURN_ROWS(kGroups),
    kKeyTiles = kKeys / 8,
    kColumnTiles = kDepth / 8,
    kParts = kDepth / 8,
    kSteps = kDepth / 16,  // products per score, each of 16 elements of a query
    kStepBytes = kKeys * kDepth * 2
  };
  static_assert(kStages == 4 || (kStages == 3 && kGroups == 2), "a stage would be overwritten while products read it");
  const AttentionParams& o = p.operands;
  const SharedAt queries = lines_at(memory), keys = queries + kRows * kDepth * 2, values = keys + kStages * kStepBytes;
  const Tile tile = tile_of(p, group_id(), kRows);
  const u32 end = causal_end(o, tile.one_head ? smaller(tile.first_row + kRows, tile.rows) - 1u : o.queries - 1u);
  const u32 count = (end + kKeys - 1u) / kKeys;
  const u32 own = warpgroup(), next = own + 1u == kGroups ? 0u : own + 1u, own_rows = warp() * 16u;

  SharedCopies<64> copies;
  Elements all_queries = at_offset<Element>(q, o.offsets[2]);
  // Each warpgroup copies its own queries.
  const u32 part = local_id() % kParts;
  MMA_ROLLED for (u32 i = 0; i < WARPGROUP_ROWS; i += WARPGROUP / kParts) {
    const u32 r = own * WARPGROUP_ROWS + i + local_id() % WARPGROUP / kParts;
    const Row row = row_of(p, tile, tile.first_row + r);
    const bool inside = tile.first_row + r < tile.rows && part * 8u < o.depth;
    Elements at = all_queries + (position(o.q, tile.batch, tile.head + row.repeat, row.query) + part * 8u);
    copies.add(queries + place_in_lines<kDepth, kRows>(r, part), (SIMT_GLOBAL const u8*)at, inside ? 16u : 0u);
  }
  // `stage` is the byte offset of the current step's stage. stage_of(ahead) returns the byte offset of the stage
  // `ahead` steps later. The stages repeat after kStages steps.
  u32 stage = 0;
  const auto stage_of = [&](u32 ahead) {
    const u32 at = stage + ahead * kStepBytes;
    return at < kStages * kStepBytes ? at : at - kStages * kStepBytes;
  };
  GroupStream<kDepth, kGroups, kKeys, kKeys, kMasked> next_keys;
  GroupStream<kDepth, kGroups, kKeys, 64, kMasked> next_values;
  next_keys.start(at_offset<Element>(k, o.offsets[3]) + position(o.k, tile.batch, tile.group, 0), o.k.row, o.keys,
                  o.depth);
  next_values.start(at_offset<Element>(v, o.offsets[4]) + position(o.v, tile.batch, tile.group, 0), o.v.row, o.keys,
                    o.value_columns);
  // load_keys copies the next keys to the stage `ahead` steps later. load_values copies the next values, which are
  // one step behind the keys, to the stage before that stage.
  const auto load_keys = [&](u32 ahead) { next_keys.load(copies, keys + stage_of(ahead), o.k.row); };
  const auto load_values = [&](u32 ahead) { next_values.load(copies, values + stage_of(ahead - 1u), o.v.row); };
  // With 3 stages, the first warpgroup copies 1 instead of 2 steps ahead, because the products of the last warpgroup
  // may still read the stage.
  const u32 ahead = kStages == 4 || own != 0 ? 2u : 1u;
  load_keys(0);
  if (ahead == 2u) {
    load_keys(1);
    load_values(1);
  }
  copies.commit();

  RowProducts<SIMT_T, kKeys, kDepth> products;
  products.start();
  RowState states[2] = {{-infinity(), 0.0f}, {-infinity(), 0.0f}};
  u32 weights[kKeys / 16][4];
  float corrections[2];
  const float scale = kMasked ? 1.0f : o.scale, factor = scale * LOG2_E;
  // The first key of the lane in each step. A lane has pairs of keys that are 8 keys apart or, if there is a mask,
  // kKeys / 4 adjacent keys.
  const u32 first_own = warp_lane() % 4u * (kMasked ? kKeys / 4u : 2u);
  // The causal mask permits the keys before `least_end` for all rows of the warp.
  const u32 least_end = causal_end(o, tile.one_head ? tile.first_row + own_rows : 0u);
  const bool is_bool = o.mask_kind == SIMT_MASK_BOOL;
  SIMT_GLOBAL const u8* mask_rows[kMasked ? 2 : 1];
  if (kMasked) {
    MMA_UNROLL for (int h = 0; h < 2; ++h) {
      const u32 at = smaller(tile.first_row + own_rows + h * 8 + warp_lane() / 4u, tile.rows - 1u);
      const Row row = row_of(p, tile, at);
      const i64 element = position(o.mask, tile.batch, tile.head + row.repeat, row.query);
      mask_rows[kMasked ? h : 0] = at_offset<u8>(mask, o.offsets[5]) + (is_bool ? element : element * 2);
    }
  }
  MaskWords<kKeys> masks[kMasked ? 2 : 1];
  const auto load_masks = [&](u32 step) {
    if (kMasked) {
      MMA_UNROLL for (int h = 0; h < 2; ++h)
          load_mask<kKeys>(masks[h], mask_rows[h], is_bool, p.mask_words != 0, step * kKeys + first_own, o.keys);
    }
  };

  u32 query[kHoldsQueries ? kSteps : 1][4];
  const SharedAt own_queries = queries + own * (WARPGROUP_ROWS * 128);
  const auto multiply_keys = [&]() {
    MMA_UNROLL for (int s = 0; s < kSteps; ++s) {
      const SharedAt at = keys + (stage + s / 4 * (kKeys * 128) + s % 4 * WARPGROUP_STEP(false));
      if (kHoldsQueries) {
        products.multiply(query[kHoldsQueries ? s : 0], at, s != 0);
      } else {
        products.multiply(own_queries + (s / 4 * (kRows * 128) + s % 4 * WARPGROUP_STEP(false)), at, s != 0);
      }
    }
    products.commit();
  };
  const auto add_values = [&]() {
    const u32 last = stage_of(kStages - 1);
    MMA_UNROLL for (int s = 0; s < kKeys / 16; ++s)
        products.add(weights[s], values + (last + s / 4 * (64 * kDepth * 2) + s % 4 * WARPGROUP_STEP(true)));
    products.commit();
  };
  const auto weigh_scores = [&](u32 step) {
    const u32 first = step * kKeys;
    MMA_UNROLL for (int h = 0; h < 2; ++h) {
      if (kMasked) apply_mask<kKeys, kKeyTiles>(products.scores, h * 2, masks[kMasked ? h : 0], is_bool, o.scale);
      if (first + kKeys > least_end) {
        const u32 at = smaller(tile.first_row + own_rows + h * 8 + warp_lane() / 4u, tile.rows - 1u);
        const i32 left = (i32)causal_end(o, row_of(p, tile, at).query) - (i32)(first + first_own);
        MMA_UNROLL for (int n = 0; n < kKeyTiles; ++n) {
          MMA_UNROLL for (int i = 0; i < 2; ++i) {
            float& score = products.scores[n][h * 2 + i];
            score = (kMasked ? n * 2 : n * 8) + i < left ? score : -infinity();
          }
        }
      }
      corrections[h] = weigh_row<kKeyTiles, kGrowth>(products.scores, h * 2, factor, states[h]);
    }
  };
  const auto round_weights = [&]() {
    MMA_UNROLL for (int s = 0; s < kKeys / 16; ++s) {
      MMA_UNROLL for (int i = 0; i < 4; ++i) {
        const auto& score = products.scores[2 * s + i / 2];
        weights[s][i] = pair_of<SIMT_T>(score[i % 2 * 2], score[i % 2 * 2 + 1]);
      }
    }
  };

  wait_for_products<0>(copies);
  group_barrier();
  if (kHoldsQueries) {
    const u32 r = own_rows + warp_lane() % 16u;
    MMA_UNROLL for (int s = 0; s < kSteps; ++s) load_matrices(
        query[kHoldsQueries ? s : 0], queries + place_in_lines<kDepth, kRows>(r, warp_lane() / 16u + 2 * s));
  }
  // Iteration s computes the scores of step s, and adds the weighted values of step s - 1.
  for_steps(count, [&](u32 step, bool is_first, bool is_last) {
    if (!is_last) load_masks(step);
    if (!is_first) wait_for_products<0>(copies);
    take_turn(own, is_first);
    products.hold_scores();
    products.hold_weighted();
    products.fence();
    if (!is_last) multiply_keys();
    if (!is_first) add_values();
    if (!is_last || next != 0u) pass_turn(next);
    if (!is_last) {
      load_keys(ahead);
      load_values(ahead);
      copies.commit();
      products.wait_for_scores(is_first);
      products.hold_scores();
      weigh_scores(step);
    }
    if (!is_first) {
      products.template wait<0>();
      products.hold_weighted();
    }
    if (!is_first && !is_last) {
      if (kGrowth == 0 || any_in_warp(corrections[0] != 1.0f || corrections[1] != 1.0f)) {
        MMA_UNROLL for (int n = 0; n < kColumnTiles; ++n) {
          MMA_UNROLL for (int i = 0; i < 4; ++i) products.weighted[n][i] *= corrections[i / 2];
        }
      }
    }
    if (!is_last) {
      round_weights();
      stage = stage_of(1);
    }
  });

  // The lanes of a row exchange pairs of columns, so that each lane stores 16 bytes at once.
  MMA_UNROLL for (int h = 0; h < 2; ++h) {
    const float all = row_sum(states[h].sum), inverse = all == 0.0f ? 0.0f : 1.0f / all;
    const u32 r = tile.first_row + own_rows + h * 8 + warp_lane() / 4u;
    const Row row = row_of(p, tile, smaller(r, tile.rows - 1u));
    SIMT_GLOBAL Element* to =
        at_offset<Element>(y, o.offsets[0]) + position(o.y, tile.batch, tile.head + row.repeat, row.query);
    MMA_UNROLL for (int n = 0; n < kColumnTiles; n += 4) {
      u32 words[4];
      MMA_UNROLL for (int i = 0; i < 4; ++i) {
        const auto& pair = products.weighted[n + i];
        words[i] = pair_of<SIMT_T>(pair[h * 2] * inverse, pair[h * 2 + 1] * inverse);
      }
      exchange(words);
      const u32 column = (n + warp_lane() % 4u) * 8u;
      if (r < tile.rows && column < o.value_columns) store_words((Pointer)(to + column), words);
    }
    if (o.has_logsumexp != 0 && warp_lane() % 4u == 0u && r < tile.rows) {
      at_offset<float>(logsumexp, o.offsets[1])[position(o.logsumexp, tile.batch, tile.head + row.repeat, row.query)] =
          logarithm_of(states[h].greatest, all, scale);
    }
  }
}

// `shape` is a list: warpgroups per group, keys per step, stages. `groups` groups run on a multiprocessor at once.
#define ATTENTION_TURN_KERNEL(name, depth, shape, holds_queries, growth, masked, groups) \
  ATTENTION_TURN_KERNEL_OF(name, depth, shape, holds_queries, growth, masked, groups)
#define ATTENTION_TURN_KERNEL_OF(name, depth, warpgroups, keys, stages, holds_queries, growth, masked, groups)     \
  MMA_KERNEL(name, ATTENTION_TURN_THREADS(warpgroups), groups)                                                     \
  (Pointer y, Pointer logsumexp, Pointer q, Pointer k, Pointer v, Pointer mask, const AttentionMmaParams p) {      \
    MMA_SHARED(memory, ATTENTION_TURN_BYTES(depth, warpgroups, keys, stages));                                     \
    attend_in_turns<depth, warpgroups, keys, stages, holds_queries, growth, masked>(memory, y, logsumexp, q, k, v, \
                                                                                    mask, p);                      \
  }
ATTENTION_TURN_KERNEL(attention_turns_64, 64, ATTENTION_TURN_64, true, 1, false, 2)
ATTENTION_TURN_KERNEL(attention_turns_64_long, 64, ATTENTION_TURN_64_LONG, true, 1, false, 1)
ATTENTION_TURN_KERNEL(attention_turns_64_masked, 64, ATTENTION_TURN_64_MASKED, true, 1, true, 1)
ATTENTION_TURN_KERNEL(attention_turns_128, 128, ATTENTION_TURN_128, false, 0, false, 1)
ATTENTION_TURN_KERNEL(attention_turns_128_masked, 128, ATTENTION_TURN_128, false, 0, true, 1)
