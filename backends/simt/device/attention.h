// SPDX-License-Identifier: Apache-2.0
// `attention` in one pass over keys and values. Computes y = softmax(scale q k^T + mask) v with an
// online softmax (Milakov and Gimelshein, 2018; Dao et al., 2022). A row is a query of one head. There
// are two kernels, for CPUs and for the calls that the kernels of attention_blocks.h do not compute:
// - attention_tiles: Each lane processes a row. The sub-groups of a group process the same rows.
//   They divide the keys of a step to compute scores, and divide the columns of v to sum weighted
//   values.
// - attention_rows: A group processes one row. Its sub-groups divide the keys, and lanes divide the
//   elements of a query and the columns of v.
#include "attention_rows.h"
#include "patch.h"

// Returns the score of a row with `key`, scaled and masked. `product` is the dot product of the query
// and the key. The score of a masked key, and of keys from `end` on, is -inf. `mask_row` is the
// position of the row's element 0 in the mask.
SIMT_INLINED float score_of(const AttentionParams& p, Pointer mask, i64 mask_row, u32 key, u32 end, float product) {
  float score = product * p.scale;
  if (p.mask_kind != SIMT_MASK_NONE) {
    const i64 at = mask_row + p.mask.element * smaller(key, p.keys - 1u);
    if (p.mask_kind == SIMT_MASK_BOOL) {
      score = at_offset<u8>(mask, p.offsets[5])[at] != 0 ? score : -infinity();
    } else {
      score += SIMT_T::value(at_offset<Element>(mask, p.offsets[5])[at]);
    }
  }
  return key < end ? score : -infinity();
}

SIMT_INLINED void put_logsumexp(const AttentionParams& p, Pointer logsumexp, u32 batch, u32 head, u32 query,
                                float greatest, float sum) {
  at_offset<u32>(logsumexp, p.offsets[1])[position(p.logsumexp, batch, head, query)] =
      bits_of_float(logsumexp_of(greatest, sum));
}
// Rounds `count` up to a line length that load_patch() accepts: a power of two up to the width,
// or a multiple of the width.
SIMT_INLINED u32 padded(u32 count) {
  u32 out = 1u;
  while (out < count && out < width()) out *= 2u;
  return (count + out - 1u) / out * out;
}
// Copies `lines` lines of k or v to local memory, in which lines are `pitch` elements apart.
SIMT_INLINED void stage(Pointer base, u64 offset, i64 at, i64 line_stride, i64 stride, u32 lines, u32 inside_lines,
                        u32 pitch, u32 length, u32 inside_length, SIMT_LOCAL float* to) {
  Patch<SIMT_T> patch;
  patch.from = at_offset<Element>(base, offset) + at;
  patch.line_stride = line_stride;
  patch.stride = stride;
  patch.lines = lines;
  patch.length = length;
  patch.inside_lines = inside_lines;
  patch.inside_length = inside_length;
  patch.immediate = false;
  patch.value = 0;
  if (stride == 1) {
    load_patch<true>(patch, to, pitch, 1);
  } else {
    load_patch<false>(patch, to, pitch, 1);
  }
}

// ---- attention_tiles ----------------------------------------------------------------------------

// Capacities of local memory, in f32 numbers.
#define ATTENTION_QUERIES 2048
#define ATTENTION_STAGED 4096
#define ATTENTION_WEIGHTS 2048
#define ATTENTION_DEPTH 64  // maximum elements of a key per step, and the pitch of keys in local memory

SIMT_KERNEL(attention_tiles)
(Pointer y, Pointer logsumexp, Pointer q, Pointer k, Pointer v, Pointer mask, AttentionParams p) {
  SIMT_SHARED(float, queries, ATTENTION_QUERIES);
  SIMT_SHARED(float, weights, ATTENTION_WEIGHTS);
  SIMT_SHARED(float, staged, ATTENTION_STAGED);
  const u32 step_keys = smaller(ATTENTION_WEIGHTS / width(), (u32)SIMT_ATTENTION_KEYS);
  const u32 max_depth = smaller(ATTENTION_QUERIES / width(), (u32)ATTENTION_DEPTH);
  const bool keeps_queries = p.depth <= ATTENTION_QUERIES / width();
  const u32 own = subgroup() * SIMT_ATTENTION_OWN_KEYS, own_column = subgroup() * SIMT_ATTENTION_COLUMNS;
  for (u32 item = group_id(); item < p.items; item += group_count()) {
    u32 rest = item / p.column_blocks;
    const u32 first_column = (item - rest * p.column_blocks) * p.columns;
    const u32 columns = smaller(p.columns, p.value_columns - first_column);
    const u32 tile = rest % p.tiles;
    rest /= p.tiles;
    const u32 batch = rest / p.groups, group = rest - batch * p.groups;
    const u32 first_row = tile * width(), last_row = smaller(first_row + width(), p.repeats * p.queries) - 1u;
    const Row row = row_of(p, group, smaller(first_row + lane(), last_row));
    // If the rows belong to several heads, they include the last query of a head, which sees the
    // most keys.
    const bool one_head = first_row / p.queries == last_row / p.queries;
    const u32 end = causal_end(p, one_head ? last_row % p.queries : p.queries - 1u);
    const i64 query_at = position(p.q, batch, row.head, row.query);
    const i64 mask_at = position(p.mask, batch, row.head, row.query);

    float weighted[SIMT_ATTENTION_COLUMNS];
    SIMT_UNROLL for (int c = 0; c < SIMT_ATTENTION_COLUMNS; ++c) weighted[c] = 0.0f;
    float sum = 0.0f;
    Maximum maximum;
    maximum.greatest = -infinity();
    for (u32 first = 0; first < end; first += step_keys) {
      const u32 keys = smaller(end - first, step_keys);
      float products[SIMT_ATTENTION_OWN_KEYS];
      SIMT_UNROLL for (int r = 0; r < SIMT_ATTENTION_OWN_KEYS; ++r) products[r] = 0.0f;
      u32 d = 0;
      do {
        const u32 depth = smaller(p.depth - d, max_depth);
        group_barrier();  // all sub-groups have read the previous contents of local memory
        SIMT_LOCAL float* chunk = keeps_queries ? queries + d * width() : queries;
        if (first == 0 || !keeps_queries) {
          for (u32 i = subgroup(); i < depth; i += subgroups()) {
            const Element x = at_offset<Element>(q, p.offsets[2])[query_at + p.q.element * (d + i)];
            (chunk + i * width())[lane()] = SIMT_T::value(x);
          }
        }
        stage(k, p.offsets[3], position(p.k, batch, group, first) + p.k.element * d, p.k.row, p.k.element, step_keys,
              keys, ATTENTION_DEPTH, padded(depth), depth, staged);
        group_barrier();
        if (own < keys) {
          SIMT_LOCAL const float* from = staged + own * ATTENTION_DEPTH;
          for (u32 i = 0; i < depth; ++i) {
            const float x = (chunk + i * width())[lane()];
            SIMT_UNROLL for (int r = 0; r < SIMT_ATTENTION_OWN_KEYS; ++r) products[r] =
                multiply_add(from[r * ATTENTION_DEPTH], x, products[r]);
            ++from;
          }
        }
        d += max_depth;
      } while (d < p.depth);

      if (own < step_keys) {
        SIMT_UNROLL for (int r = 0; r < SIMT_ATTENTION_OWN_KEYS; ++r) {
          products[r] = score_of(p, mask, mask_at, first + own + r, row.end, products[r]);
          (weights + (own + r) * width())[lane()] = products[r];
        }
      }
      group_barrier();
      float greatest = maximum.greatest;
      for (u32 j = 0; j < keys; ++j) {
        const float score = (weights + j * width())[lane()];
        greatest = score > greatest ? score : greatest;
      }
      raise_to(maximum, greatest);
      const float base = base_of(greatest);
      group_barrier();
      if (own < step_keys) {
        SIMT_UNROLL for (int r = 0; r < SIMT_ATTENTION_OWN_KEYS; ++r)(weights + (own + r) * width())[lane()] =
            exp_f32(products[r] - base);
      }
      sum *= maximum.correction;
      SIMT_UNROLL for (int c = 0; c < SIMT_ATTENTION_COLUMNS; ++c) weighted[c] *= maximum.correction;
      // Each sub-group reads a multiple of SIMT_ATTENTION_COLUMNS columns.
      const u32 pitch =
          padded((columns + SIMT_ATTENTION_COLUMNS - 1u) / SIMT_ATTENTION_COLUMNS * SIMT_ATTENTION_COLUMNS);
      const u32 step = smaller(ATTENTION_STAGED / pitch, step_keys);
      for (u32 j = 0; j < keys; j += step) {
        const u32 lines = smaller(keys - j, step);
        if (j != 0) group_barrier();
        stage(v, p.offsets[4], position(p.v, batch, group, first + j) + p.v.element * first_column, p.v.row,
              p.v.element, lines, lines, pitch, pitch, columns, staged);
        group_barrier();
        SIMT_LOCAL const float* from = staged + own_column;
        SIMT_LOCAL const float* weight = weights + j * width();
        const u32 own_lines = own_column < columns || subgroup() == 0 ? lines : 0u;
        for (u32 i = 0; i < own_lines; ++i) {
          const float x = weight[lane()];
          sum += x;
          SIMT_UNROLL for (int c = 0; c < SIMT_ATTENTION_COLUMNS; ++c) weighted[c] =
              multiply_add(from[c], x, weighted[c]);
          from += pitch;
          weight += width();
        }
      }
    }

    const bool inside = first_row + lane() <= last_row;
    const i64 to = position(p.y, batch, row.head, row.query) + p.y.element * (first_column + own_column);
    SIMT_UNROLL for (int c = 0; c < SIMT_ATTENTION_COLUMNS; ++c) {
      if (inside && own_column + c < columns)
        at_offset<Element>(y, p.offsets[0])[to + p.y.element * c] = SIMT_T::bits(quotient(weighted[c], sum));
    }
    if (p.has_logsumexp != 0 && first_column == 0 && subgroup() == 0 && inside)
      put_logsumexp(p, logsumexp, batch, row.head, row.query, maximum.greatest, sum);
    group_barrier();  // the next item overwrites the queries
  }
}

// ---- attention_rows -----------------------------------------------------------------------------

struct Eight {
  float at[8];
};
// Sums each of the eight numbers over all lanes. Returns the sum of number i % 8 in lane i.
SIMT_INLINED float add_over_lanes(Eight numbers) {
  SIMT_UNROLL for (int bit = 0; bit < 3; ++bit) {
    const bool odd = (lane() >> bit & 1u) != 0;
    SIMT_UNROLL for (int i = 0; i < 4 >> bit; ++i) {
      const float keep = odd ? numbers.at[2 * i + 1] : numbers.at[2 * i],
                  give = odd ? numbers.at[2 * i] : numbers.at[2 * i + 1];
      numbers.at[i] = keep + float_of_bits(shuffle_xor(bits_of_float(give), 1u << bit));
    }
  }
  float sum = numbers.at[0];
  for (u32 far = 8; far < width(); far *= 2u) sum += float_of_bits(shuffle_xor(bits_of_float(sum), far));
  return sum;
}

// Stores the dot products of the query with `keys` keys.
template <bool contiguous>
SIMT_INLINED void multiply_keys(const AttentionParams& p, SIMT_LOCAL const float* query,
                                SIMT_GLOBAL const Element* from, u32 keys, SIMT_LOCAL float* products) {
  for (u32 j = 0; j < keys; j += 8) {
    Eight numbers;
    SIMT_UNROLL for (int r = 0; r < 8; ++r) numbers.at[r] = 0.0f;
    const u32 last = keys - j - 1u;  // the last key's index from key j on; loads after the last key read it again
    if (contiguous) {
      for (u32 d = 0; d < p.depth; d += width()) {
        const float x = (query + d)[lane()];
        SIMT_UNROLL for (int r = 0; r < 8; ++r) {
          SIMT_GLOBAL const Element* key = from + (p.k.row * smaller((u32)r, last) + d);
          numbers.at[r] = multiply_add(SIMT_T::value(key[lane()]), x, numbers.at[r]);
        }
      }
    } else {
      for (u32 d = lane(); d < p.depth; d += width()) {
        const float x = query[d];
        SIMT_UNROLL for (int r = 0; r < 8; ++r) numbers.at[r] =
            multiply_add(SIMT_T::value(from[p.k.row * smaller((u32)r, last) + p.k.element * d]), x, numbers.at[r]);
      }
    }
    const float sum = add_over_lanes(numbers);
    if (lane() < 8) (products + j)[lane()] = sum;
    from += p.k.row * 8;
  }
}

// Adds the rows of v that belong to `keys` keys, multiplied by `weights`, to `weighted`.
template <bool contiguous>
SIMT_INLINED void add_values(const AttentionParams& p, SIMT_LOCAL const float* weights, SIMT_GLOBAL const Element* from,
                             u32 keys, u32 columns, Eight& weighted) {
  for (u32 j = 0; j < keys; ++j) {
    const float weight = weights[j];
    SIMT_UNROLL for (int c = 0; c < SIMT_ATTENTION_PARTS; ++c) {
      const u32 column = c * width();
      if (column < columns) {
        const Element x =
            contiguous ? (from + column)[lane()] : from[p.v.element * smaller(column + lane(), columns - 1u)];
        weighted.at[c] = multiply_add(SIMT_T::value(x), weight, weighted.at[c]);
      }
    }
    from += p.v.row;
  }
}

SIMT_KERNEL(attention_rows)
(Pointer y, Pointer logsumexp, Pointer q, Pointer k, Pointer v, Pointer mask, AttentionParams p) {
  SIMT_SHARED(float, query, SIMT_ATTENTION_DEPTH);
  SIMT_SHARED(float, weights, SIMT_ATTENTION_GROUPS* SIMT_ATTENTION_BLOCK);
  SIMT_SHARED(float, parts, SIMT_ATTENTION_PARTS * 256);
  SIMT_SHARED(float, maxima, SIMT_ATTENTION_GROUPS);
  SIMT_SHARED(float, sums, SIMT_ATTENTION_GROUPS);
  SIMT_LOCAL float* own = weights + subgroup() * SIMT_ATTENTION_BLOCK;
  for (u32 item = group_id(); item < p.items; item += group_count()) {
    u32 rest = item / p.column_blocks;
    const u32 first_column = (item - rest * p.column_blocks) * p.columns;
    const u32 columns = smaller(p.columns, p.value_columns - first_column);
    const u32 tile = rest % p.tiles;
    rest /= p.tiles;
    const u32 batch = rest / p.groups, group = rest - batch * p.groups;
    const Row row = row_of(p, group, tile);
    SIMT_GLOBAL const Element* from = at_offset<Element>(q, p.offsets[2]) + position(p.q, batch, row.head, row.query);
    for (u32 d = local_id(); d < p.depth; d += group_size()) query[d] = SIMT_T::value(from[p.q.element * d]);
    group_barrier();

    const i64 mask_at = position(p.mask, batch, row.head, row.query);
    Eight weighted;
    SIMT_UNROLL for (int c = 0; c < SIMT_ATTENTION_PARTS; ++c) weighted.at[c] = 0.0f;
    float sum = 0.0f;
    Maximum maximum;
    maximum.greatest = -infinity();
    const u32 round_keys = subgroups() * SIMT_ATTENTION_BLOCK;
    for (u32 start = 0; start < row.end; start += round_keys) {
      const u32 first = start + subgroup() * SIMT_ATTENTION_BLOCK;
      const u32 keys = first < row.end ? smaller(row.end - first, (u32)SIMT_ATTENTION_BLOCK) : 0u;
      SIMT_GLOBAL const Element* key = at_offset<Element>(k, p.offsets[3]) + position(p.k, batch, group, first);
      if (p.contiguous != 0) {
        multiply_keys<true>(p, query, key, keys, own);
      } else {
        multiply_keys<false>(p, query, key, keys, own);
      }
      group_barrier();
      float greatest = maximum.greatest;
      for (u32 i = 0; i < SIMT_ATTENTION_BLOCK; i += width()) {
        const float score = score_of(p, mask, mask_at, first + i + lane(), row.end, (own + i)[lane()]);
        (own + i)[lane()] = score;
        greatest = score > greatest ? score : greatest;
      }
      for (u32 far = width() / 2u; far > 0u; far /= 2u) {
        const float other = float_of_bits(shuffle_xor(bits_of_float(greatest), far));
        greatest = other > greatest ? other : greatest;
      }
      raise_to(maximum, greatest);
      const float base = base_of(greatest);
      sum *= maximum.correction;
      for (u32 i = 0; i < SIMT_ATTENTION_BLOCK; i += width()) {
        const float weight = exp_f32((own + i)[lane()] - base);
        (own + i)[lane()] = weight;
        sum += weight;
      }
      SIMT_UNROLL for (int c = 0; c < SIMT_ATTENTION_PARTS; ++c) weighted.at[c] *= maximum.correction;
      group_barrier();
      SIMT_GLOBAL const Element* value =
          at_offset<Element>(v, p.offsets[4]) + (position(p.v, batch, group, first) + p.v.element * first_column);
      if (p.contiguous != 0) {
        add_values<true>(p, own, value, keys, columns, weighted);
      } else {
        add_values<false>(p, own, value, keys, columns, weighted);
      }
      group_barrier();
    }

    for (u32 far = width() / 2u; far > 0u; far /= 2u) sum += float_of_bits(shuffle_xor(bits_of_float(sum), far));
    if (lane() == 0) {
      maxima[subgroup()] = maximum.greatest;
      sums[subgroup()] = sum;
    }
    SIMT_UNROLL for (int c = 0; c < SIMT_ATTENTION_PARTS;
                     ++c)(parts + (subgroup() * SIMT_ATTENTION_PARTS + c) * width())[lane()] = weighted.at[c];
    group_barrier();
    if (subgroup() == 0) {
      float greatest = maxima[0], all = 0.0f;
      for (u32 s = 1; s < subgroups(); ++s) greatest = maxima[s] > greatest ? maxima[s] : greatest;
      SIMT_UNROLL for (int c = 0; c < SIMT_ATTENTION_PARTS; ++c) weighted.at[c] = 0.0f;
      for (u32 s = 0; s < subgroups(); ++s) {
        const float factor = exp_f32(maxima[s] - base_of(greatest));
        all += factor * sums[s];
        SIMT_UNROLL for (int c = 0; c < SIMT_ATTENTION_PARTS; ++c) weighted.at[c] +=
            factor * (parts + (s * SIMT_ATTENTION_PARTS + c) * width())[lane()];
      }
      SIMT_GLOBAL Element* to = at_offset<Element>(y, p.offsets[0]) +
                                (position(p.y, batch, row.head, row.query) + p.y.element * first_column);
      SIMT_UNROLL for (int c = 0; c < SIMT_ATTENTION_PARTS; ++c) {
        const u32 column = c * width() + lane();
        if (column < columns) to[p.y.element * column] = SIMT_T::bits(quotient(weighted.at[c], all));
      }
      if (p.has_logsumexp != 0 && first_column == 0 && lane() == 0)
        put_logsumexp(p, logsumexp, batch, row.head, row.query, greatest, all);
    }
    group_barrier();  // the next item overwrites local memory
  }
}
