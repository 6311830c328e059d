// SPDX-License-Identifier: Apache-2.0
// The operator `attention` with matrix units, in one pass over keys and values (Dao, FlashAttention-2, 2023). A group
// has four warps and processes a tile of rows. Each warp processes one or two fragments of 16 rows with all keys of a
// step and all columns of v. Scores, sums and weighted values stay in registers in f32. The weights are rounded to 16
// bits for the product with v. Their sum is computed from the f32 weights.
#include "warp_mma.h"

#include "device/math.h"
#include "device/nest.h"

#include "device/attention_params.h"

#include "attention_mma_params.h"
#include "attention_tile.h"

#include "attention_split.h"

template <int kDepth, int kFragments, bool kMasked>
SIMT_INLINED void attend(SIMT_LOCAL u8* memory, Pointer y, Pointer logsumexp, Pointer q, Pointer k, Pointer v,
                         Pointer mask, const AttentionMmaParams& p) {
  enum {
    kRows = ATTENTION_MMA_ROWS(kFragments),
    kStages = ATTENTION_MMA_STAGES(kDepth),
    kKeys = ATTENTION_MMA_KEYS(kDepth, kFragments),
    kSteps = kDepth / 16,  // products per score, each of 16 elements of a query
    kKeyTiles = kKeys / 8,
    kColumnTiles = kDepth / 8,
    kKeepsQueries = kDepth == 64 || kFragments == 1  // true if the queries stay in registers
  };
  const AttentionParams& o = p.operands;
  const u32 step_bytes = kKeys * kDepth * 2;
  const SharedAt queries = shared_at(memory), keys = queries + kRows * kDepth * 2, values = keys + kStages * step_bytes;
  const Tile tile = tile_of(p, group_id(), kRows);
  const u32 end = causal_end(o, tile.one_head ? smaller(tile.first_row + kRows, tile.rows) - 1u : o.queries - 1u);
  const u32 count = (end + kKeys - 1u) / kKeys;
  Elements all_queries = at_offset<Element>(q, o.offsets[2]) + position(o.q, tile.batch, tile.head, 0);
  Stream<kDepth> next_keys = stream_of<kDepth>(
      at_offset<Element>(k, o.offsets[3]) + position(o.k, tile.batch, tile.group, 0), o.k.row, 0u, o.keys, o.depth);
  Stream<kDepth> next_values =
      stream_of<kDepth>(at_offset<Element>(v, o.offsets[4]) + position(o.v, tile.batch, tile.group, 0), o.v.row, 0u,
                        o.keys, o.value_columns);

  SharedCopies<64> copies;
  load_queries<kDepth>(copies, queries, all_queries, p, tile, kRows);
  if (count > 0) {
    load_step<kDepth, kKeys, kMasked>(copies, keys, next_keys, 0u);
    if (kStages == 2) load_step<kDepth, kKeys, kMasked>(copies, values, next_values, 0u);
  }
  copies.commit();

  float weighted[kFragments][kColumnTiles][4];
  RowState states[kFragments][2];
  MMA_UNROLL for (int m = 0; m < kFragments; ++m) {
    MMA_UNROLL for (int n = 0; n < kColumnTiles; ++n) {
      MMA_UNROLL for (int i = 0; i < 4; ++i) weighted[m][n][i] = 0.0f;
    }
    MMA_UNROLL for (int h = 0; h < 2; ++h) states[m][h] = {-infinity(), 0.0f};
  }
  const float factor = (kMasked ? 1.0f : o.scale) * LOG2_E;
  const u32 own_rows = warp() * (kFragments * 16u);
  // The causal mask permits the keys before `least_end` for all rows of the warp.
  const u32 least_end = causal_end(o, tile.one_head ? tile.first_row + own_rows : 0u);
  // The first key of the lane in each step. A lane has pairs of keys that are 8 keys apart or, if there is a mask,
  // kKeys / 4 adjacent keys.
  const u32 first_own = kMasked ? warp_lane() % 4u * (kKeys / 4u) : warp_lane() % 4u * 2u;

  const bool is_bool = o.mask_kind == SIMT_MASK_BOOL;
  SIMT_GLOBAL const u8* mask_rows[kMasked ? kFragments : 1][2];
  if (kMasked) {
    MMA_UNROLL for (int m = 0; m < kFragments; ++m) {
      MMA_UNROLL for (int h = 0; h < 2; ++h) {
        const u32 at = smaller(tile.first_row + own_rows + m * 16 + h * 8 + warp_lane() / 4u, tile.rows - 1u);
        const Row own = row_of(p, tile, at);
        const i64 element = position(o.mask, tile.batch, tile.head + own.repeat, own.query);
        mask_rows[m][h] = at_offset<u8>(mask, o.offsets[5]) + (is_bool ? element : element * 2);
      }
    }
  }

  // The offsets (place_of) of the row and part that the lane passes to loads of fragments. The lane's part is 0 or 1.
  // The offset of the part that is i parts later, where i is even, is therefore place ^ 16 * i.
  const u32 row_bytes = kDepth * 2;
  const u32 query_place = place_of<kDepth>(own_rows + warp_lane() % 16u, warp_lane() / 16u);
  const u32 key_place = place_of<kDepth>(warp_lane() / 16u * 8u + warp_lane() % 8u, warp_lane() / 8u % 2u);
  const u32 value_place = place_of<kDepth>(warp_lane() % 16u, warp_lane() / 16u);
  u32 query[kKeepsQueries ? kSteps : 1][kFragments][4];
  if (kKeepsQueries) {
    copies.template wait<0>();
    group_barrier();
    MMA_UNROLL for (int s = 0; s < kSteps; ++s) {
      MMA_UNROLL for (int m = 0; m < kFragments; ++m)
          load_matrices(query[s][m], queries + ((query_place ^ 32u * s) + m * 16 * row_bytes));
    }
  }

  for (u32 step = 0; step < count; ++step) {
    const u32 first = step * kKeys, stage = kStages == 2 ? step % 2u * step_bytes : 0u;
    MaskWords<kKeys> masks[kMasked ? kFragments : 1][2];
    if (kMasked) {
      MMA_UNROLL for (int m = 0; m < kFragments; ++m) {
        MMA_UNROLL for (int h = 0; h < 2; ++h)
            load_mask<kKeys>(masks[m][h], mask_rows[m][h], is_bool, p.mask_words != 0, first + first_own, o.keys);
      }
    }
    copies.template wait<0>();
    group_barrier();
    if (kStages == 1) {
      load_step<kDepth, kKeys, kMasked>(copies, values, next_values, first);
    } else if (step + 1 < count) {
      load_step<kDepth, kKeys, kMasked>(copies, keys + (step_bytes - stage), next_keys, first + kKeys);
      load_step<kDepth, kKeys, kMasked>(copies, values + (step_bytes - stage), next_values, first + kKeys);
    }
    copies.commit();

    float scores[kFragments][kKeyTiles][4];
    MMA_UNROLL for (int m = 0; m < kFragments; ++m) {
      MMA_UNROLL for (int n = 0; n < kKeyTiles; ++n) { MMA_UNROLL for (int i = 0; i < 4; ++i) scores[m][n][i] = 0.0f; }
    }
    MMA_UNROLL for (int s = 0; s < kSteps; ++s) {
      const int kept = kKeepsQueries ? s : 0;
      if (!kKeepsQueries) {
        MMA_UNROLL for (int m = 0; m < kFragments; ++m)
            load_matrices(query[0][m], queries + ((query_place ^ 32u * s) + m * 16 * row_bytes));
      }
      MMA_UNROLL for (int n = 0; n < kKeyTiles; n += 2) {
        u32 key[4];
        load_matrices(key, keys + (stage + (key_place ^ 32u * s) + n * 8 * row_bytes));
        MMA_UNROLL for (int m = 0; m < kFragments; ++m) {
          multiply_add_fragments<SIMT_T>(scores[m][n], query[kept][m], key[0], key[1]);
          multiply_add_fragments<SIMT_T>(scores[m][n + 1], query[kept][m], key[2], key[3]);
        }
      }
    }
    if (kStages == 1) {
      copies.template wait<0>();
      group_barrier();
      if (step + 1 < count) load_step<kDepth, kKeys, kMasked>(copies, keys, next_keys, first + kKeys);
      copies.commit();
    }

    if (kMasked) {
      MMA_UNROLL for (int m = 0; m < kFragments; ++m) {
        MMA_UNROLL for (int h = 0; h < 2; ++h)
            apply_mask<kKeys, kKeyTiles>(scores[m], h * 2, masks[m][h], is_bool, o.scale);
      }
    }
    if (first + kKeys > least_end) {
      MMA_UNROLL for (int m = 0; m < kFragments; ++m) {
        MMA_UNROLL for (int h = 0; h < 2; ++h) {
          const u32 at = smaller(tile.first_row + own_rows + m * 16 + h * 8 + warp_lane() / 4u, tile.rows - 1u);
          const i32 left = (i32)causal_end(o, row_of(p, tile, at).query) - (i32)(first + first_own);
          MMA_UNROLL for (int n = 0; n < kKeyTiles; ++n) {
            MMA_UNROLL for (int i = 0; i < 2; ++i) {
              float& score = scores[m][n][h * 2 + i];
              score = (kMasked ? n * 2 : n * 8) + i < left ? score : -infinity();
            }
          }
        }
      }
    }

    MMA_UNROLL for (int m = 0; m < kFragments; ++m) {
      MMA_UNROLL for (int h = 0; h < 2; ++h) {
        const float correction = weigh<kKeyTiles>(scores[m], h * 2, factor, states[m][h]);
        MMA_UNROLL for (int n = 0; n < kColumnTiles; ++n) {
          weighted[m][n][h * 2] *= correction;
          weighted[m][n][h * 2 + 1] *= correction;
        }
      }
    }

    MMA_UNROLL for (int s = 0; s < kKeys / 16; ++s) {
      u32 weights[kFragments][4];
      MMA_UNROLL for (int m = 0; m < kFragments; ++m) {
        MMA_UNROLL for (int i = 0; i < 4; ++i) weights[m][i] =
            pair_of<SIMT_T>(scores[m][2 * s + i / 2][i % 2 * 2], scores[m][2 * s + i / 2][i % 2 * 2 + 1]);
      }
      MMA_UNROLL for (int n = 0; n < kColumnTiles; n += 2) {
        u32 value[4];
        load_transposed(value, values + (stage + (value_place ^ 16u * n) + s * 16 * row_bytes));
        MMA_UNROLL for (int m = 0; m < kFragments; ++m) {
          multiply_add_fragments<SIMT_T>(weighted[m][n], weights[m], value[0], value[1]);
          multiply_add_fragments<SIMT_T>(weighted[m][n + 1], weights[m], value[2], value[3]);
        }
      }
    }
  }

  copies.template wait<0>();
  group_barrier();
  // Each warp writes its results to the shared memory of its queries, and then stores whole rows.
  MMA_UNROLL for (int m = 0; m < kFragments; ++m) {
    MMA_UNROLL for (int h = 0; h < 2; ++h) {
      const float all = row_sum(states[m][h].sum), inverse = all == 0.0f ? 0.0f : 1.0f / all;
      const u32 r = own_rows + m * 16 + h * 8 + warp_lane() / 4u;
      MMA_UNROLL for (int n = 0; n < kColumnTiles; ++n) {
        SIMT_LOCAL u32* to = (SIMT_LOCAL u32*)(memory + place_of<kDepth>(r, n)) + warp_lane() % 4u;
        *to = pair_of<SIMT_T>(weighted[m][n][h * 2] * inverse, weighted[m][n][h * 2 + 1] * inverse);
      }
      if (o.has_logsumexp != 0 && warp_lane() % 4u == 0u && tile.first_row + r < tile.rows) {
        const Row own = row_of(p, tile, tile.first_row + r);
        at_offset<float>(logsumexp,
                         o.offsets[1])[position(o.logsumexp, tile.batch, tile.head + own.repeat, own.query)] =
            logarithm_of(states[m][h].greatest, all, kMasked ? 1.0f : o.scale);
      }
    }
  }
  group_barrier();
  SIMT_GLOBAL Element* results = at_offset<Element>(y, o.offsets[0]) + position(o.y, tile.batch, tile.head, 0);
  const u32 lane_part = warp_lane() % Loader<kDepth>::kParts, lane_row = warp_lane() / Loader<kDepth>::kParts;
  MMA_UNROLL for (u32 i = 0; i < kFragments * 16; i += 32 / Loader<kDepth>::kParts) {
    const u32 r = own_rows + i + lane_row;
    if (tile.first_row + r < tile.rows && lane_part * 8u < o.value_columns) {
      const Row own = row_of(p, tile, tile.first_row + r);
      SIMT_GLOBAL Element* to = results + (position(o.y, 0, own.repeat, own.query) + lane_part * 8u);
      SIMT_LOCAL const u32* from = (SIMT_LOCAL const u32*)(memory + place_of<kDepth>(r, lane_part));
      store_words((Pointer)to, {from[0], from[1], from[2], from[3]});
    }
  }
}

// `groups` groups run on a multiprocessor at once.
#define ATTENTION_MMA_KERNEL(name, depth, fragments, masked, groups)                                          \
  MMA_KERNEL(name, ATTENTION_MMA_THREADS, groups)                                                             \
  (Pointer y, Pointer logsumexp, Pointer q, Pointer k, Pointer v, Pointer mask, const AttentionMmaParams p) { \
    MMA_SHARED(memory, ATTENTION_MMA_BYTES(depth, fragments));                                                \
    attend<depth, fragments, masked>(memory, y, logsumexp, q, k, v, mask, p);                                 \
  }
ATTENTION_MMA_KERNEL(attention_mma_64, 64, 1, false, 3)
ATTENTION_MMA_KERNEL(attention_mma_64_masked, 64, 1, true, 3)
ATTENTION_MMA_KERNEL(attention_mma_64_long, 64, 2, false, 2)
ATTENTION_MMA_KERNEL(attention_mma_128, 128, 1, false, 2)
ATTENTION_MMA_KERNEL(attention_mma_128_masked, 128, 1, true, 2)
ATTENTION_MMA_KERNEL(attention_mma_128_long, 128, 2, false, 2)
