// SPDX-License-Identifier: Apache-2.0
// attention in one pass over keys and values. Computes y = softmax(scale q k^T + mask) v with an
// online softmax (Milakov and Gimelshein, 2018; Dao et al., 2022).
//
// A subgroup processes ROWS queries. Each thread of the subgroup first scores KEYS keys of a block.
// Each thread then sums four columns of the weighted values for all rows. Scores stay in registers.
//
// With LAYOUT dense, k, v and y are contiguous along their last dimensions and aligned for accesses
// of four elements. OP is the subgroup size.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require
#define GROUP BACKPLANE_SUBGROUP_WORKGROUP
#include "attention.glsl"

#ifndef ROWS
#define ROWS BACKPLANE_ATTENTION_ROWS
#endif
#define KEYS BACKPLANE_ATTENTION_KEYS
// Number of query elements that a subgroup reads at once. An unrolled loop multiplies these elements by the keys.
#define CHUNK BACKPLANE_MIN_SUBGROUP

#define SUBGROUP_SIZE OP
#define SUBGROUP_THREAD gl_SubgroupInvocationID

float value_at(uint64_t at) { return value_of(load_bits(at)); }
vec4 values_of(uvec4 bits) { return vec4(value_of(bits.x), value_of(bits.y), value_of(bits.z), value_of(bits.w)); }
// Loads four elements that are `step` bytes apart.
vec4 vec4_at(uint64_t at, int64_t step) {
  if (LAYOUT == BACKPLANE_LAYOUT_DENSE) return values_of(load_vec4(at));
  vec4 four;
  [[unroll]] for (uint i = 0u; i < 4u; ++i) four[i] = value_at(at + uint64_t(step * int64_t(i)));
  return four;
}

float scores[ROWS][KEYS];  // the scores of the block's keys; update_softmax replaces them with e^(score - greatest)
float greatest[ROWS], sums[ROWS], correction[ROWS];
Row rows[ROWS];
int seen[ROWS];  // number of keys, from key 0 on, that the causal mask permits for each row

// Rotates the next row to index 0 in loops that are not unrolled. A dynamic index would move the
// array to memory, and unrolling these loops would take seconds to compile.
#define ROTATE(TYPE, each)                                                     \
  do {                                                                       \
    const TYPE first_ = each[0];                                             \
    [[unroll]] for (uint r_ = 1u; r_ < ROWS; ++r_) each[r_ - 1u] = each[r_]; \
    each[ROWS - 1u] = first_;                                                \
  } while (false)

void begin_rows(Tile tile) {
  [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
    rows[r] = row_of(tile, r);
    seen[r] = int(attention.keys);
    if (attention.causal == CAUSAL_LOWER_RIGHT)
      seen[r] = max(int(rows[r].query) + seen[r] - int(attention.queries) + 1, 0);
    if (attention.causal == CAUSAL_UPPER_LEFT) seen[r] = min(int(rows[r].query) + 1, seen[r]);
    greatest[r] = -kInfinity;
    sums[r] = 0.0;
  }
}

// Multiplies the tile's queries by the keys `first` to `end` - 1 of a block. A thread without a key
// reads the last key.
void multiply(Tile tile, uint first, uint end) {
  uint64_t queries[ROWS], keys[KEYS];
  const int64_t q_step = attention.q.strides[3], k_step = attention.k.strides[3];
  [[unroll]] for (uint r = 0u; r < ROWS; ++r)
    queries[r] = address_of(attention.q, tile.batch, rows[r].head, rows[r].query);
  [[unroll]] for (uint t = 0u; t < KEYS; ++t)
    keys[t] =
        address_of(attention.k, tile.batch, tile.group, min(first + t * SUBGROUP_SIZE + SUBGROUP_THREAD, end - 1u));
  const uint64_t own = uint64_t(q_step * int64_t(SUBGROUP_THREAD % CHUNK));
  uint d = 0u;
  for (; d + CHUNK <= attention.depth; d += CHUNK) {
    float q[ROWS];
    [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
      q[r] = value_at(queries[r] + own);
      queries[r] += uint64_t(q_step * CHUNK);
    }
    [[unroll]] for (uint u = 0u; u < CHUNK; u += 4u) {
      vec4 k[KEYS];
      [[unroll]] for (uint t = 0u; t < KEYS; ++t) {
        k[t] = vec4_at(keys[t], k_step);
        keys[t] += uint64_t(k_step * 4l);
      }
      [[unroll]] for (uint i = 0u; i < 4u; ++i) {
        [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
          const float a = subgroupBroadcast(q[r], u + i);
          [[unroll]] for (uint t = 0u; t < KEYS; ++t) scores[r][t] += a * k[t][i];
        }
      }
    }
  }
  for (; d < attention.depth; ++d) {
    float k[KEYS];
    [[unroll]] for (uint t = 0u; t < KEYS; ++t) {
      k[t] = value_at(keys[t]);
      keys[t] += uint64_t(k_step);
    }
    [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
      const float a = value_at(queries[r]);
      queries[r] += uint64_t(q_step);
      [[unroll]] for (uint t = 0u; t < KEYS; ++t) scores[r][t] += a * k[t];
    }
  }
}

void mask(Tile tile, uint first, uint end) {
  [[dont_unroll]] for (uint r = 0u; r < ROWS; ++r) {
    const uint64_t row = address_of(attention.mask, tile.batch, rows[0].head, rows[0].query);
    [[unroll]] for (uint t = 0u; t < KEYS; ++t) {
      const uint key = min(first + t * SUBGROUP_SIZE + SUBGROUP_THREAD, end - 1u);
      const uint64_t at = row + uint64_t(attention.mask.strides[3] * int64_t(key));
      float score = scores[0][t];
      if (attention.mask_kind == MASK_BOOL) {
        if (load8(at) == 0u) score = -kInfinity;
      } else {
        score += value_at(at);
      }
      [[unroll]] for (uint u = 1u; u < ROWS; ++u) scores[u - 1u][t] = scores[u][t];
      scores[ROWS - 1u][t] = score;
    }
    ROTATE(Row, rows);
  }
}

// Scales the products, applies the mask, and sets the scores of masked keys to -inf.
void scale_and_mask(Tile tile, uint first, uint end) {
  [[unroll]] for (uint r = 0u; r < ROWS; ++r)
    [[unroll]] for (uint t = 0u; t < KEYS; ++t) scores[r][t] *= attention.scale;
  if (attention.mask_kind != MASK_NONE) mask(tile, first, end);
  [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
    const uint last = min(end, uint(seen[r]));
    [[unroll]] for (uint t = 0u; t < KEYS; ++t)
      scores[r][t] = first + t * SUBGROUP_SIZE + SUBGROUP_THREAD < last ? scores[r][t] : -kInfinity;
  }
}

// Updates `greatest`, `sums` and `correction` with this block, and replaces each score with
// e^(score - greatest).
void update_softmax() {
  [[dont_unroll]] for (uint r = 0u; r < ROWS; ++r) {
    float of_block = scores[0][0];
    [[unroll]] for (uint t = 1u; t < KEYS; ++t) of_block = max(of_block, scores[0][t]);
    correction[0] = 1.0;
    if (subgroupBallot(of_block > greatest[0]) != uvec4(0u)) {
      for (uint far = SUBGROUP_SIZE / 2u; far > 0u; far /= 2u) of_block = max(of_block, subgroupShuffleXor(of_block, far));
      of_block = max(of_block, greatest[0]);
      correction[0] = greatest[0] == -kInfinity ? 0.0 : exp_f32(greatest[0] - of_block);
      greatest[0] = of_block;
      sums[0] *= correction[0];
    }
    // The base is 0 if all keys of the row so far are masked, because -inf minus -inf is NaN. A NaN
    // score remains NaN in e^(score - base), even if max() ignores NaN.
    const float base = greatest[0] == -kInfinity ? 0.0 : greatest[0];
    [[unroll]] for (uint t = 0u; t < KEYS; ++t) {
      const float e = exp_f32(scores[0][t] - base);
      sums[0] += e;
      [[unroll]] for (uint u = 1u; u < ROWS; ++u) scores[u - 1u][t] = scores[u][t];
      scores[ROWS - 1u][t] = e;
    }
    ROTATE(float, greatest);
    ROTATE(float, sums);
    ROTATE(float, correction);
  }
}

#define ADD_WEIGHED(key_lane)                                                                   \
  do {                                                                                          \
    const vec4 v = values_at(values, offsets);                                                        \
    values += uint64_t(attention.v.strides[2]);                                                 \
    [[unroll]] for (uint r_ = 0u; r_ < ROWS; ++r_) weighed[r_] += subgroupBroadcast(scores[r_][0], key_lane) * v; \
  } while (false)

vec4 values_at(uint64_t at, int64_t offsets[4]) {
  if (LAYOUT == BACKPLANE_LAYOUT_DENSE) return values_of(load_vec4(at + uint64_t(offsets[0])));
  vec4 four;
  [[unroll]] for (uint i = 0u; i < 4u; ++i) four[i] = value_at(at + uint64_t(offsets[i]));
  return four;
}

// Stores columns `column` to `column` + 3 of the tile's rows.
void store_rows(Tile tile, uint column, vec4 weighed[ROWS]) {
  [[dont_unroll]] for (uint r = 0u; r < ROWS; ++r) {
    const vec4 four = sums[0] == 0.0 ? vec4(0.0) : weighed[0] / sums[0];
    const uvec4 bits = uvec4(bits_of(four.x), bits_of(four.y), bits_of(four.z), bits_of(four.w));
    const uint64_t y = address_of(attention.y, tile.batch, rows[0].head, rows[0].query);
    if (tile.first_row + r < attention.rows && column < attention.width) {
      if (LAYOUT == BACKPLANE_LAYOUT_DENSE) {
        store_vec4(y + uint64_t(column * BYTES), bits);
      } else {
        [[unroll]] for (uint i = 0u; i < 4u; ++i)
          if (column + i < attention.width)
            store_bits(y + uint64_t(attention.y.strides[3] * int64_t(column + i)), bits[i]);
      }
    }
    ROTATE(vec4, weighed);
    ROTATE(float, sums);
    ROTATE(Row, rows);
  }
}

// Adds the block's weighted values to the sums in `scratch`. If `begins` is true, there are no
// earlier sums. If `ends` is true, the rows are complete and are stored. Each thread processes four
// columns at a time.
void add_values(Tile tile, uint first, uint end, bool begins, bool ends, uint64_t scratch) {
  for (uint c = 0u; c < attention.width; c += 4u * SUBGROUP_SIZE) {
    const uint column = c + 4u * SUBGROUP_THREAD, last = attention.width - 1u;
    int64_t offsets[4];  // byte offsets of four columns; a column past the end reads the last column
    [[unroll]] for (uint i = 0u; i < 4u; ++i)
      offsets[i] =
          attention.v.strides[3] * int64_t(min(column + i, LAYOUT == BACKPLANE_LAYOUT_DENSE ? last - 3u : last));
    vec4 weighed[ROWS];
    [[unroll]] for (uint r = 0u; r < ROWS; ++r) weighed[r] = vec4(0.0);
    if (!begins && column <= last) {
      [[unroll]] for (uint r = 0u; r < ROWS; ++r)
        weighed[r] = correction[r] * uintBitsToFloat(load_vec4_32(weighed_at(scratch, r, column)));
    }
    [[dont_unroll]] for (uint t = 0u; t < KEYS; ++t) {
      const uint key = first + t * SUBGROUP_SIZE, count = key < end ? min(SUBGROUP_SIZE, end - key) : 0u;
      uint64_t values = address_of(attention.v, tile.batch, tile.group, key);
      if (count == SUBGROUP_SIZE) {
        [[unroll]] for (uint j = 0u; j < SUBGROUP_SIZE; ++j) ADD_WEIGHED(j);
      } else {
        [[dont_unroll]] for (uint j = 0u; j < count; ++j) ADD_WEIGHED(j);
      }
      // Rotates the next key's scores to index 0. After the loop, all scores are at their original
      // index again.
      [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
        const float done = scores[r][0];
        [[unroll]] for (uint u = 1u; u < KEYS; ++u) scores[r][u - 1u] = scores[r][u];
        scores[r][KEYS - 1u] = done;
      }
    }
    if (ends) {
      store_rows(tile, column, weighed);
    } else if (column <= last) {
      [[unroll]] for (uint r = 0u; r < ROWS; ++r)
        store_vec4_32(weighed_at(scratch, r, column), floatBitsToUint(weighed[r]));
    }
  }
}

void attend(Tile tile, uint split, uint64_t scratch) {
  const uint begin = split * attention.split_keys;
  uint end = min(begin + attention.split_keys, attention.keys);
  begin_rows(tile);
  if (attention.causal != 0u) {  // the split ends after the last key that any row attends to
    int most = 0;
    [[unroll]] for (uint r = 0u; r < ROWS; ++r) most = max(most, seen[r]);
    end = min(end, uint(most));
  }
  const bool whole = attention.splits == 1u;
  uint first = begin;
  bool more;
  do {  // runs at least once, to write rows that attend to no key
    [[unroll]] for (uint r = 0u; r < ROWS; ++r)
      [[unroll]] for (uint t = 0u; t < KEYS; ++t) scores[r][t] = 0.0;
    more = first + KEYS * SUBGROUP_SIZE < end;
    if (first < end) {
      multiply(tile, first, end);
      scale_and_mask(tile, first, end);
      update_softmax();
    }
    if (!more) {
      [[unroll]] for (uint r = 0u; r < ROWS; ++r)
        for (uint far = SUBGROUP_SIZE / 2u; far > 0u; far /= 2u) sums[r] += subgroupShuffleXor(sums[r], far);
    }
    add_values(tile, first, end, first == begin, !more && whole, scratch);
    first += KEYS * SUBGROUP_SIZE;
  } while (more);
  [[dont_unroll]] for (uint r = 0u; r < ROWS; ++r) {
    if (SUBGROUP_THREAD == 0u && !whole) {
      store32(statistics_at(scratch, r), floatBitsToUint(greatest[0]));
      store32(statistics_at(scratch, r) + 4ul, floatBitsToUint(sums[0]));
    } else if (SUBGROUP_THREAD == 0u && tile.first_row + r < attention.rows) {
      store_logsumexp(tile.batch, rows[0], greatest[0], sums[0]);
    }
    ROTATE(float, greatest);
    ROTATE(float, sums);
    ROTATE(Row, rows);
  }
}

void main() {
  attention = block.attention;
  const uint subgroup = gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID,
             subgroups = gl_NumWorkGroups.x * gl_NumSubgroups;
  const uint work = attention.items * attention.splits;
  for (uint i = subgroup; i < work; i += subgroups) {
    attend(tile_of(attention.first_item + i / attention.splits), i % attention.splits,
           scratch_at(attention.splits == 1u ? subgroup : i));
  }
}
