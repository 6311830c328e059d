// SPDX-License-Identifier: Apache-2.0
// The operator `attention` without a mask, with products of warpgroups. A group has two warpgroups, each of which
// processes 64 rows with all keys of a step and all columns of v. Keys and values of two steps are in shared memory.
#include "warpgroup_rows.h"

#include "device/math.h"
#include "device/nest.h"

#include "device/attention_params.h"

#include "attention_mma_params.h"
#include "attention_tile.h"

// Returns the offset in bytes, in a tile of kRows rows, of the elements 8 * part to 8 * part + 7 of a row. Each block
// of 64 columns is stored as the lines that warpgroup_mma.h describes. Values are in tiles of 64 rows.
template <int kRows>
SIMT_INLINED u32 line_of(u32 row, u32 part) {
  return part / 8u * (kRows * 128u) + row * 128u + (((part ^ row) & 7u) << 4);
}

// The keys or values of a head. A thread copies the same 8 columns of several rows, step by step.
template <int kDepth>
struct GroupStream {
  enum { kParts = kDepth / 8, kStep = ATTENTION_GROUP_THREADS / kParts, kKeys = ATTENTION_GROUP_KEYS(kDepth) };
  Elements at;
  i64 stride;
  u32 rows, depth, first;

  SIMT_INLINED void start(Elements from, i64 row_stride, u32 row_count, u32 element_count) {
    at = from + (row_stride * (local_id() / kParts) + local_id() % kParts * 8u);
    stride = row_stride, rows = row_count, depth = element_count, first = 0;
  }
  // Copies the next kKeys rows to tiles of kRows rows. Elements past the last row or column become 0.
  template <int kRows, class Copies>
  SIMT_INLINED void load(Copies& copies, SharedAt to) {
    const u32 part = local_id() % kParts, row = local_id() / kParts;
    const i32 left = part * 8u < depth ? (i32)rows - (i32)(first + row) : 0;
    const u32 place = line_of<kRows>(row, part);
    MMA_UNROLL for (int r = 0; r < kKeys; r += kStep) {
      const u32 tile = r / kRows * (kRows * kDepth * 2) + r % kRows * 128;
      copies.add(to + (place + tile), (SIMT_GLOBAL const u8*)at, r < left ? 16u : 0u);
      at += stride * kStep;
    }
    first += kKeys;
  }
};

template <int kDepth>
SIMT_INLINED void attend_group(SIMT_LOCAL u8* memory, Pointer y, Pointer logsumexp, Pointer q, Pointer k, Pointer v,
                               const AttentionMmaParams& p) {
  enum {
    kRows = ATTENTION_GROUP_ROWS,
    kKeys = ATTENTION_GROUP_KEYS(kDepth),
    kKeyTiles = kKeys / 8,
    kColumnTiles = kDepth / 8,
    kParts = kDepth / 8,
    kStepBytes = kKeys * kDepth * 2,
    // If true, the kernel computes the scores of a step while it adds the weighted values of the previous step. With
    // 64 elements per row, the two groups of a multiprocessor overlap instead.
    kAhead = kDepth == 128
  };
  const AttentionParams& o = p.operands;
  const SharedAt queries = lines_at(memory), keys = queries + kRows * kDepth * 2, values = keys + 2 * kStepBytes;
  const Tile tile = tile_of(p, group_id(), kRows);
  const u32 end = causal_end(o, tile.one_head ? smaller(tile.first_row + kRows, tile.rows) - 1u : o.queries - 1u);
  const u32 count = (end + kKeys - 1u) / kKeys;

  SharedCopies<64> copies;
  Elements all_queries = at_offset<Element>(q, o.offsets[2]) + position(o.q, tile.batch, tile.head, 0);
  const u32 part = local_id() % kParts;
  for (u32 r = local_id() / kParts; r < kRows; r += ATTENTION_GROUP_THREADS / kParts) {
    const Row row = row_of(p, tile, tile.first_row + r);
    const bool inside = tile.first_row + r < tile.rows && part * 8u < o.depth;
    Elements at = all_queries + (position(o.q, 0, row.repeat, row.query) + part * 8u);
    copies.add(queries + line_of<kRows>(r, part), (SIMT_GLOBAL const u8*)at, inside ? 16u : 0u);
  }
  GroupStream<kDepth> next_keys, next_values;
  next_keys.start(at_offset<Element>(k, o.offsets[3]) + position(o.k, tile.batch, tile.group, 0), o.k.row, o.keys,
                  o.depth);
  next_values.start(at_offset<Element>(v, o.offsets[4]) + position(o.v, tile.batch, tile.group, 0), o.v.row, o.keys,
                    o.value_columns);
  const auto stage = [&](u32 step) { return step % 2u * kStepBytes; };
  const auto load_keys = [&](u32 step) {
    if (step < count) next_keys.template load<kKeys>(copies, keys + stage(step));
  };
  const auto load_values = [&](u32 step) {
    if (step < count) next_values.template load<64>(copies, values + stage(step));
  };
  load_keys(0);
  if (!kAhead) load_values(0);
  copies.commit();
  // Waits for the copies of a step, and begins the copies of the next step.
  const auto arrive = [&](u32 step) {
    wait_for_products<0>(copies);
    group_barrier();
    load_keys(step + 1u);
    load_values(kAhead ? step : step + 1u);
    copies.commit();
  };

  RowProducts<SIMT_T, kKeys, kDepth> products;
  products.start();
  RowState states[2] = {{-infinity(), 0.0f}, {-infinity(), 0.0f}};
  u32 weights[kKeys / 16][4];
  float corrections[2];
  const float factor = o.scale * LOG2_E;
  const u32 own_rows = warp() * 16u, first_own = warp_lane() % 4u * 2u;
  const SharedAt own_queries = queries + warpgroup() * (WARPGROUP_ROWS * 128);
  // The causal mask permits the keys before `least_end` for all rows of the warp.
  const u32 least_end = causal_end(o, tile.one_head ? tile.first_row + own_rows : 0u);

  const auto multiply_keys = [&](u32 step) {
    MMA_UNROLL for (int s = 0; s < kDepth / 16; ++s) {
      const SharedAt own = own_queries + (s / 4 * (kRows * 128) + s % 4 * WARPGROUP_STEP(false));
      products.multiply(own, keys + (stage(step) + s / 4 * (kKeys * 128) + s % 4 * WARPGROUP_STEP(false)), s != 0);
    }
    products.commit();
  };
  const auto add_values = [&](u32 step) {
    MMA_UNROLL for (int s = 0; s < kKeys / 16; ++s)
        products.add(weights[s], values + (stage(step) + s / 4 * (64 * kDepth * 2) + s % 4 * WARPGROUP_STEP(true)));
    products.commit();
  };
  const auto weigh_scores = [&](u32 step) {
    const u32 first = step * kKeys;
    MMA_UNROLL for (int h = 0; h < 2; ++h) {
      if (first + kKeys > least_end) {
        const u32 at = smaller(tile.first_row + own_rows + h * 8 + warp_lane() / 4u, tile.rows - 1u);
        const i32 left = (i32)causal_end(o, row_of(p, tile, at).query) - (i32)(first + first_own);
        MMA_UNROLL for (int n = 0; n < kKeyTiles; ++n) {
          MMA_UNROLL for (int i = 0; i < 2; ++i) {
            float& score = products.scores[n][h * 2 + i];
            score = n * 8 + i < left ? score : -infinity();
          }
        }
      }
      corrections[h] = weigh<kKeyTiles>(products.scores, h * 2, factor, states[h]);
    }
  };
  // Rescales the weighted values, and rounds the weights.
  const auto rescale = [&]() {
    MMA_UNROLL for (int n = 0; n < kColumnTiles; ++n) {
      MMA_UNROLL for (int i = 0; i < 4; ++i) products.weighted[n][i] *= corrections[i / 2];
    }
    MMA_UNROLL for (int s = 0; s < kKeys / 16; ++s) {
      MMA_UNROLL for (int i = 0; i < 4; ++i) {
        const auto& score = products.scores[2 * s + i / 2];
        weights[s][i] = pair_of<SIMT_T>(score[i % 2 * 2], score[i % 2 * 2 + 1]);
      }
    }
  };

  for (u32 step = 0; step < count; ++step) {
    arrive(step);
    products.hold_scores();
    products.hold_weighted();
    products.fence();
    multiply_keys(step);
    if (kAhead && step != 0u) {
      add_values(step - 1u);
      products.template wait<1>();
    } else {
      products.template wait<0>();
    }
    products.hold_scores();
    weigh_scores(step);
    if (kAhead) {
      products.template wait<0>();
      products.hold_weighted();
    }
    rescale();
    if (!kAhead) {
      products.hold_weighted();
      products.fence();
      add_values(step);
      products.template wait<0>();
      products.hold_weighted();
    }
  }
  wait_for_products<0>(copies);
  group_barrier();
  if (kAhead && count != 0u) {
    products.hold_weighted();
    products.fence();
    add_values(count - 1u);
    products.template wait<0>();
    products.hold_weighted();
  }

  // Each warp writes its results to the shared memory of its queries, and then stores whole rows.
  MMA_UNROLL for (int h = 0; h < 2; ++h) {
    const float all = row_sum(states[h].sum), inverse = all == 0.0f ? 0.0f : 1.0f / all;
    const u32 r = own_rows + h * 8 + warp_lane() / 4u;
    MMA_UNROLL for (int n = 0; n < kColumnTiles; ++n) {
      store_pair(queries + (line_of<kRows>(r, n) + warp_lane() % 4u * 4u),
                 pair_of<SIMT_T>(products.weighted[n][h * 2] * inverse, products.weighted[n][h * 2 + 1] * inverse));
    }
    if (o.has_logsumexp != 0 && warp_lane() % 4u == 0u && tile.first_row + r < tile.rows) {
      const Row own = row_of(p, tile, tile.first_row + r);
      at_offset<float>(logsumexp, o.offsets[1])[position(o.logsumexp, tile.batch, tile.head + own.repeat, own.query)] =
          logarithm_of(states[h].greatest, all, o.scale);
    }
  }
  group_barrier();
  SIMT_GLOBAL Element* results = at_offset<Element>(y, o.offsets[0]) + position(o.y, tile.batch, tile.head, 0);
  const u32 lane_part = warp_lane() % kParts, lane_row = warp_lane() / kParts;
  MMA_UNROLL for (u32 i = 0; i < 16; i += 32 / kParts) {
    const u32 r = own_rows + i + lane_row;
    if (tile.first_row + r < tile.rows && lane_part * 8u < o.value_columns) {
      const Row own = row_of(p, tile, tile.first_row + r);
      u32 words[4];
      load_stored(words, queries + line_of<kRows>(r, lane_part));
      store_words((Pointer)(results + (position(o.y, 0, own.repeat, own.query) + lane_part * 8u)), words);
    }
  }
}

#define ATTENTION_GROUP_KERNEL(name, depth, groups)                                                      \
  MMA_KERNEL(name, ATTENTION_GROUP_THREADS, groups)                                                      \
  (Pointer y, Pointer logsumexp, Pointer q, Pointer k, Pointer v, Pointer, const AttentionMmaParams p) { \
    MMA_SHARED(memory, ATTENTION_GROUP_BYTES(depth));                                                    \
    attend_group<depth>(memory, y, logsumexp, q, k, v, p);                                               \
  }
ATTENTION_GROUP_KERNEL(attention_warpgroup_64, 64, 2)
ATTENTION_GROUP_KERNEL(attention_warpgroup_128, 128, 1)
