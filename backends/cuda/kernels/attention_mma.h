// SPDX-License-Identifier: Apache-2.0
// attention with matrix units, in one pass over keys and values (Dao, FlashAttention-2, 2023). A group has four warps
// and processes a tile of rows. Each warp processes 32 rows, as two fragments of 16, with all keys of a step and all
// columns of v. Scores, sums and weighted values stay in registers in f32. The weights are rounded to 16 bits for the
// product with v, but their sum is that of the weights in f32.
#include "warp_mma.h"

#include "device/math.h"
#include "device/nest.h"

#include "device/attention_params.h"

#include "attention_mma_params.h"

typedef SIMT_T::Bits Element;
typedef SIMT_GLOBAL const Element* Elements;

#define LOG2_E 1.44269504088896340736f

// Weights are multiplied by 2^kShift, which the division by their sum cancels. Without the factor, weights that are
// small parts of the largest weight would be subnormal in f16.
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
// lane() and subgroup() divide by a number that nvcc does not know.
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

// The tile of a group.
struct Tile {
  u32 batch, head, group;  // `head` is the first head of the unit
  u32 first_row, rows;     // the first row of the tile, and the number of rows of its unit
  bool one_head;
};
SIMT_INLINED Tile tile_of(const AttentionMmaParams& p) {
  const u32 section = group_id() / (p.section * p.unit_tiles), rest = group_id() - section * p.section * p.unit_tiles;
  const u32 first_unit = section * p.section, units = smaller(p.section, p.units - first_unit);
  const u32 step = rest / units, unit = first_unit + (rest - step * units);
  const u32 batch_units = p.units / p.operands.batches;
  Tile out;
  out.batch = unit / batch_units;
  out.head = (unit - out.batch * batch_units) * p.unit_heads;
  out.group = out.head / p.operands.repeats;
  // The last tiles of a causal mask see the most keys, so they begin first.
  out.first_row = (p.operands.causal != 0 ? p.unit_tiles - 1u - step : step) * ATTENTION_MMA_ROWS;
  out.rows = p.unit_heads * p.operands.queries;
  out.one_head = p.unit_heads == 1u;
  return out;
}

// A query of one of the heads of a unit.
struct Row {
  u32 repeat, query;
};
SIMT_INLINED Row row_of(const AttentionMmaParams& p, const Tile& tile, u32 row) {
  Row out;
  out.repeat = tile.one_head ? 0u : row / p.operands.queries;
  out.query = row - out.repeat * p.operands.queries;
  return out;
}
// Returns the number of keys that the causal mask permits.
SIMT_INLINED u32 causal_end(const AttentionParams& p, u32 query) {
  if (p.causal == 0) return p.keys;
  const i64 ahead = p.causal == 1 ? (i64)p.keys - (i64)p.queries : 0, end = ahead + (i64)query + 1;
  return end <= 0 ? 0u : end < (i64)p.keys ? (u32)end : p.keys;
}
SIMT_INLINED i64 position(const AttentionStrides& strides, u32 batch, u32 head, u32 row) {
  return strides.batch * batch + strides.head * head + strides.row * row;
}

// Returns the bytes from the start of a tile in shared memory to 8 elements of a row. The order of the elements
// differs between rows, so that the loads of fragments access all banks.
template <int kDepth>
SIMT_INLINED u32 place_of(u32 row, u32 part) {
  return row * (kDepth * 2u) + ((part ^ (row & 7u)) << 4);
}

// A thread copies the same 8 elements of several rows.
template <int kDepth>
struct Loader {
  enum { kParts = kDepth / 8, kStep = ATTENTION_MMA_THREADS / kParts };
};

// The keys or values of a head, of which a thread copies its part step by step.
template <int kDepth>
struct Stream {
  Elements at;  // the thread's first row of the next step
  i64 stride;
  i32 left;  // rows from `at` on. Other rows become 0
};
template <int kDepth>
SIMT_INLINED Stream<kDepth> stream_of(Elements from, i64 stride, u32 rows, u32 depth) {
  const u32 part = local_id() % Loader<kDepth>::kParts, row = local_id() / Loader<kDepth>::kParts;
  Stream<kDepth> out;
  out.at = from + (stride * row + part * 8u);
  out.stride = stride;
  out.left = part * 8u < depth ? (i32)rows - (i32)row : 0;
  return out;
}
// Copies the rows of the next step.
template <int kDepth, class Copies>
SIMT_INLINED void load_step(Copies& copies, SharedAt to, Stream<kDepth>& stream) {
  const u32 part = local_id() % Loader<kDepth>::kParts, row = local_id() / Loader<kDepth>::kParts;
  const u32 place = place_of<kDepth>(row, part);
  MMA_UNROLL for (int r = 0; r < ATTENTION_MMA_KEYS(kDepth); r += Loader<kDepth>::kStep) {
    copies.add(to + (place + r * kDepth * 2), (SIMT_GLOBAL const u8*)stream.at, r < stream.left ? 16u : 0u);
    stream.at += stream.stride * Loader<kDepth>::kStep;
  }
  stream.left -= ATTENTION_MMA_KEYS(kDepth);
}

template <int kDepth, class Copies>
SIMT_INLINED void load_queries(Copies& copies, SharedAt to, Elements from, const AttentionMmaParams& p,
                               const Tile& tile) {
  const u32 part = local_id() % Loader<kDepth>::kParts;
  for (u32 r = local_id() / Loader<kDepth>::kParts; r < ATTENTION_MMA_ROWS; r += Loader<kDepth>::kStep) {
    const Row row = row_of(p, tile, tile.first_row + r);
    const bool inside = tile.first_row + r < tile.rows && part * 8u < p.operands.depth;
    Elements at = from + (position(p.operands.q, 0, row.repeat, row.query) + part * 8u);
    copies.add(to + place_of<kDepth>(r, part), (SIMT_GLOBAL const u8*)at, inside ? 16u : 0u);
  }
}

template <int kDepth, bool kMasked>
SIMT_INLINED void attend(SIMT_LOCAL u8* memory, Pointer y, Pointer logsumexp, Pointer q, Pointer k, Pointer v,
                         Pointer mask, const AttentionMmaParams& p) {
  enum {
    kFragments = 2,  // fragments of 16 rows per warp
    kStages = ATTENTION_MMA_STAGES(kDepth),
    kKeys = ATTENTION_MMA_KEYS(kDepth),
    kSteps = kDepth / 16,  // products of 16 elements of a query
    kKeyTiles = kKeys / 8,
    kColumnTiles = kDepth / 8,
    kKeepsQueries = kDepth == 64 && !kMasked  // in registers
  };
  const AttentionParams& o = p.operands;
  const u32 step_bytes = kKeys * kDepth * 2;
  const SharedAt queries = shared_at(memory), keys = queries + ATTENTION_MMA_ROWS * kDepth * 2,
                 values = keys + kStages * step_bytes;
  const Tile tile = tile_of(p);
  const u32 end =
      causal_end(o, tile.one_head ? smaller(tile.first_row + ATTENTION_MMA_ROWS, tile.rows) - 1u : o.queries - 1u);
  const u32 count = (end + kKeys - 1u) / kKeys;
  Elements all_queries = at_offset<Element>(q, o.offsets[2]) + position(o.q, tile.batch, tile.head, 0);
  Stream<kDepth> next_keys = stream_of<kDepth>(
      at_offset<Element>(k, o.offsets[3]) + position(o.k, tile.batch, tile.group, 0), o.k.row, o.keys, o.depth);
  Stream<kDepth> next_values = stream_of<kDepth>(
      at_offset<Element>(v, o.offsets[4]) + position(o.v, tile.batch, tile.group, 0), o.v.row, o.keys, o.value_columns);

  SharedCopies<64> copies;
  load_queries<kDepth>(copies, queries, all_queries, p, tile);
  if (count > 0) {
    load_step(copies, keys, next_keys);
    if (kStages == 2) load_step(copies, values, next_values);
  }
  copies.commit();

  float weighted[kFragments][kColumnTiles][4];
  float greatest[kFragments][2], sum[kFragments][2];
  MMA_UNROLL for (int m = 0; m < kFragments; ++m) {
    MMA_UNROLL for (int n = 0; n < kColumnTiles; ++n) {
      MMA_UNROLL for (int i = 0; i < 4; ++i) weighted[m][n][i] = 0.0f;
    }
    MMA_UNROLL for (int h = 0; h < 2; ++h) greatest[m][h] = -infinity(), sum[m][h] = 0.0f;
  }
  const float factor = (kMasked ? 1.0f : o.scale) * LOG2_E;
  const u32 own_rows = warp() * (kFragments * 16u);
  // The keys before `least_end` are permitted for all rows of the warp.
  const u32 least_end = causal_end(o, tile.one_head ? tile.first_row + own_rows : 0u);

  // The places of the lane's rows in loads of fragments. The lane's part is 0 or 1, so that a later part i changes a
  // place to place ^ 16 i.
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
    copies.template wait<0>();
    group_barrier();
    if (kStages == 1) {
      load_step(copies, values, next_values);
    } else if (step + 1 < count) {
      load_step(copies, keys + (step_bytes - stage), next_keys);
      load_step(copies, values + (step_bytes - stage), next_values);
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
      if (step + 1 < count) load_step(copies, keys, next_keys);
      copies.commit();
    }

    if (kMasked || first + kKeys > least_end) {
      MMA_UNROLL for (int m = 0; m < kFragments; ++m) {
        MMA_UNROLL for (int h = 0; h < 2; ++h) {
          const u32 at = smaller(tile.first_row + own_rows + m * 16 + h * 8 + warp_lane() / 4u, tile.rows - 1u);
          const Row own = row_of(p, tile, at);
          const u32 own_end = causal_end(o, own.query);
          const i64 mask_at = kMasked ? position(o.mask, tile.batch, tile.head + own.repeat, own.query) : 0;
          const u32 first_key = first + warp_lane() % 4u * 2u;
          const i32 left = (i32)own_end - (i32)first_key;
          // The lane has pairs of keys, 8 keys apart. The mask is contiguous along the keys.
          if (kMasked && o.mask_kind == SIMT_MASK_BOOL) {
            SIMT_GLOBAL const u8* permitted = at_offset<u8>(mask, o.offsets[5]) + (mask_at + first_key);
            MMA_UNROLL for (int n = 0; n < kKeyTiles * 2; ++n) {
              float& score = scores[m][n / 2][h * 2 + n % 2];
              const int key = n / 2 * 8 + n % 2;
              score = key < left && permitted[key] != 0 ? score * o.scale : -infinity();
            }
          } else if (kMasked) {
            Elements added = at_offset<Element>(mask, o.offsets[5]) + (mask_at + first_key);
            MMA_UNROLL for (int n = 0; n < kKeyTiles * 2; ++n) {
              float& score = scores[m][n / 2][h * 2 + n % 2];
              const int key = n / 2 * 8 + n % 2;
              score = key < left ? score * o.scale + number_of<SIMT_T>(added[key]) : -infinity();
            }
          } else {
            MMA_UNROLL for (int n = 0; n < kKeyTiles * 2; ++n) {
              float& score = scores[m][n / 2][h * 2 + n % 2];
              score = n / 2 * 8 + n % 2 < left ? score : -infinity();
            }
          }
        }
      }
    }

    MMA_UNROLL for (int m = 0; m < kFragments; ++m) {
      MMA_UNROLL for (int h = 0; h < 2; ++h) {
        float most = greatest[m][h];
        MMA_UNROLL for (int n = 0; n < kKeyTiles; ++n) most =
            larger(most, larger(scores[m][n][h * 2], scores[m][n][h * 2 + 1]));
        MMA_UNROLL for (u32 far = 1; far < 4; far *= 2) most =
            larger(most, float_of_bits(shuffle_xor(bits_of_float(most), far)));
        // -inf minus -inf is NaN, so 0 replaces a maximum of -inf.
        const float base = most == -infinity() ? 0.0f : most;
        const float correction = power_of_two((greatest[m][h] - base) * factor);
        const float shift = multiply_add(-base, factor, (float)WeightUnit<SIMT_T>::kShift);
        greatest[m][h] = most;
        float own = 0.0f;
        MMA_UNROLL for (int n = 0; n < kKeyTiles; ++n) {
          MMA_UNROLL for (int i = 0; i < 2; ++i) {
            const float weight = power_of_two(multiply_add(scores[m][n][h * 2 + i], factor, shift));
            scores[m][n][h * 2 + i] = weight;
            own += weight;
          }
        }
        sum[m][h] = multiply_add(sum[m][h], correction, own);
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
      float all = sum[m][h];
      MMA_UNROLL for (u32 far = 1; far < 4; far *= 2) all += float_of_bits(shuffle_xor(bits_of_float(all), far));
      const float inverse = all == 0.0f ? 0.0f : 1.0f / all;
      const u32 r = own_rows + m * 16 + h * 8 + warp_lane() / 4u;
      MMA_UNROLL for (int n = 0; n < kColumnTiles; ++n) {
        SIMT_LOCAL u32* to = (SIMT_LOCAL u32*)(memory + place_of<kDepth>(r, n)) + warp_lane() % 4u;
        *to = pair_of<SIMT_T>(weighted[m][n][h * 2] * inverse, weighted[m][n][h * 2 + 1] * inverse);
      }
      if (o.has_logsumexp != 0 && warp_lane() % 4u == 0u && tile.first_row + r < tile.rows) {
        const Row own = row_of(p, tile, tile.first_row + r);
        const float score = kMasked ? greatest[m][h] : greatest[m][h] * o.scale;
        const float logarithm =
            all == 0.0f ? -infinity() : score + log_f32(all / (float)(1u << WeightUnit<SIMT_T>::kShift));
        at_offset<float>(
            logsumexp, o.offsets[1])[position(o.logsumexp, tile.batch, tile.head + own.repeat, own.query)] = logarithm;
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

#define ATTENTION_MMA_KERNEL(name, depth, masked)                                                             \
  MMA_KERNEL(name, ATTENTION_MMA_THREADS, 2)                                                                  \
  (Pointer y, Pointer logsumexp, Pointer q, Pointer k, Pointer v, Pointer mask, const AttentionMmaParams p) { \
    MMA_SHARED(memory, ATTENTION_MMA_BYTES(depth));                                                           \
    attend<depth, masked>(memory, y, logsumexp, q, k, v, mask, p);                                            \
  }
ATTENTION_MMA_KERNEL(attention_mma_64, 64, false)
ATTENTION_MMA_KERNEL(attention_mma_64_masked, 64, true)
ATTENTION_MMA_KERNEL(attention_mma_128, 128, false)
ATTENTION_MMA_KERNEL(attention_mma_128_masked, 128, true)
