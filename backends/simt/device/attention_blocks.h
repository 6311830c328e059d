// SPDX-License-Identifier: Apache-2.0
// The kernels of `attention` for f32 on GPUs. A lane loads 16 bytes at once, has several loads in flight, and keeps
// sums in registers. A row is a query of one head.
// - attention_blocks_R: A team of 16 lanes processes R rows, in steps of 64 keys. A lane computes the scores of R rows
//   with 4 keys. Then it computes the weighted sums of R rows for 4 of each 64 columns of v.
// - attention_split_R: A group processes up to R rows. A team of 8 or 16 lanes loads a key or a row of v at once, and
//   has 8 such loads in flight. All rows of a group use the same loads, even if they belong to different heads of q.
// Both kernels may divide the keys into splits. A group then stores the maximum, the sum and the weighted values of its
// split, and attention_combine combines the results of the splits in order.
#include "attention_rows.h"

#define PACK_ELEMENTS 4  // elements of a pack, which a lane loads at once
#ifdef SIMT_PACKS_ROWS
#define STAGED_PACKS 8
#else
#define STAGED_PACKS 1
#endif
#define PACKS 8         // packs that a lane of attention_split loads before it uses them
#define SPLIT_PARTS 2   // maximum packs of columns of v that a lane of attention_split sums
#define SPLIT_KEYS 128  // maximum keys per step of attention_split
#define MAX_SUBGROUPS 16

struct Packs {
  QuadU32 at[PACKS];
};
SIMT_INLINED QuadU32 no_words() {
  QuadU32 out;
  out.x = out.y = out.z = out.w = 0u;
  return out;
}
SIMT_INLINED QuadFloat four_of(float x, float y, float z, float w) {
  QuadFloat out;
  out.x = x, out.y = y, out.z = z, out.w = w;
  return out;
}
SIMT_INLINED QuadFloat no_numbers() { return four_of(0.0f, 0.0f, 0.0f, 0.0f); }
SIMT_INLINED float add_dot(QuadFloat a, QuadFloat b, float sum) {
  return multiply_add(a.w, b.w, multiply_add(a.z, b.z, multiply_add(a.y, b.y, multiply_add(a.x, b.x, sum))));
}
SIMT_INLINED QuadFloat add_product(float a, QuadFloat b, QuadFloat sum) {
  sum.x = multiply_add(a, b.x, sum.x);
  sum.y = multiply_add(a, b.y, sum.y);
  sum.z = multiply_add(a, b.z, sum.z);
  sum.w = multiply_add(a, b.w, sum.w);
  return sum;
}
SIMT_INLINED QuadFloat scaled(QuadFloat a, float by) {
  a.x *= by, a.y *= by, a.z *= by, a.w *= by;
  return a;
}
SIMT_INLINED float shuffled(float x, u32 far) { return float_of_bits(shuffle_xor(bits_of_float(x), far)); }
SIMT_INLINED float larger(float a, float b) { return b > a ? b : a; }  // ignores NaN in b

SIMT_INLINED QuadFloat numbers_of(QuadU32 pack) {
  return four_of(SIMT_T::value(pack.x), SIMT_T::value(pack.y), SIMT_T::value(pack.z), SIMT_T::value(pack.w));
}

// The lines of one head of q, k or v in memory: its queries, its keys or its rows of v.
struct Lines {
  SIMT_GLOBAL const Element* from;  // the first element of line 0
  i64 line_stride, stride;
  u32 length;
  bool packed;  // whether lines are contiguous, begin at multiples of 16 bytes, and consist of whole packs
};
SIMT_INLINED bool is_aligned(i64 elements) { return (elements * (i64)sizeof(Element) & 15) == 0; }
SIMT_INLINED Lines lines_of(Pointer base, u64 offset, const AttentionStrides& strides, i64 at, u32 length) {
  Lines out;
  out.from = at_offset<Element>(base, offset) + at;
  out.line_stride = strides.row;
  out.stride = strides.element;
  out.length = length;
  out.packed =
      strides.element == 1 && length % PACK_ELEMENTS == 0 && ((u64)out.from & 15u) == 0 && is_aligned(strides.row);
  return out;
}
SIMT_INLINED QuadU32 load_pack(SIMT_GLOBAL const Element* from, bool inside) {
  QuadU32 out = no_words();
  if (inside) out = *(SIMT_GLOBAL const QuadU32*)from;
  return out;
}

// Returns e^x for x <= 0 or NaN, with the method of exp_f32 but without its clamps. The result is 0 for x < -87.
SIMT_INLINED float weight_of(float x) {
  const float shifted = multiply_add(x, 1.44269504f, 12582912.0f);  // adding 1.5 * 2^23 rounds to an integer
  const float n = shifted - 12582912.0f;
  const float r = multiply_add(n, 2.12194440e-4f, multiply_add(n, -0.693359375f, x));
  float p = 1.9875691500e-4f;
  p = multiply_add(p, r, 1.3981999507e-3f);
  p = multiply_add(p, r, 8.3334519073e-3f);
  p = multiply_add(p, r, 4.1665795894e-2f);
  p = multiply_add(p, r, 1.6666665459e-1f);
  p = multiply_add(p, r, 5.0000001201e-1f);
  const float y = multiply_add(p, r * r, r) + 1.0f;
  const float out = float_of_bits(bits_of_float(y) + (bits_of_float(shifted) << 23));
  return x >= -87.0f ? out : x < -87.0f ? 0.0f : x;
}

// The memory of the results.
struct Results {
  Pointer y, logsumexp, partials;
};
SIMT_INLINED u64 partial_rows(const AttentionParams& o) { return (u64)o.batches * o.groups * o.repeats * o.queries; }
// With splits, stores the maximum and the sum of one split of row `r`. Without splits, stores the row's logsumexp, if
// the call has this output.
SIMT_INLINED void put_sums(const AttentionBlockParams& p, Results to, u32 batch, u32 group, u32 r, u32 split,
                           float greatest, float sum) {
  const AttentionParams& o = p.operands;
  if (p.splits > 1u) {
    const u64 row = ((u64)batch * o.groups + group) * o.repeats * o.queries + r;
    SIMT_GLOBAL float* at = at_offset<float>(to.partials, p.offsets[6]) +
                            (partial_rows(o) * p.splits * o.value_columns + (row * p.splits + split) * 2u);
    at[0] = greatest;
    at[1] = sum;
  } else if (o.has_logsumexp != 0) {
    const Row row = row_of(o, group, r);
    at_offset<u32>(to.logsumexp, p.offsets[1])[position(o.logsumexp, batch, row.head, row.query)] =
        bits_of_float(logsumexp_of(greatest, sum));
  }
}
// The places for a row's results: its element 0 in y, and element 0 of one of its splits in the partial results.
struct Line {
  SIMT_GLOBAL Element* y;
  SIMT_GLOBAL float* partial;
  i64 stride;
  bool is_partial;
};
SIMT_INLINED Line line_of(const AttentionBlockParams& p, Results to, u32 batch, u32 group, u32 r, u32 split) {
  const AttentionParams& o = p.operands;
  Line out;
  out.is_partial = p.splits > 1u;
  out.stride = o.y.element;
  const u64 row = ((u64)batch * o.groups + group) * o.repeats * o.queries + r;
  out.partial = at_offset<float>(to.partials, p.offsets[6]) + (row * p.splits + split) * o.value_columns;
  const Row place = row_of(o, group, r);
  out.y = at_offset<Element>(to.y, p.offsets[0]) + position(o.y, batch, place.head, place.query);
  return out;
}
SIMT_INLINED void put(const Line& line, u32 column, float weighted, float sum) {
  if (line.is_partial) {
    line.partial[column] = weighted;
  } else {
    line.y[line.stride * column] = SIMT_T::bits(quotient(weighted, sum));
  }
}

// ---- attention_blocks ---------------------------------------------------------------------------

#define STEP_CHUNKS (SIMT_ATTENTION_STEP / 4)
#define STEP_NUMBERS (SIMT_ATTENTION_STEP * STEP_CHUNKS)  // vectors of four numbers in a staged matrix

// Returns the index in local memory of chunk `chunk` of a line, in chunks of four numbers. If lines are `swizzled`,
// lanes that read different keys access different banks.
template <bool swizzled>
SIMT_INLINED u32 place_of(u32 line, u32 chunk) {
  return line * STEP_CHUNKS + (swizzled ? chunk ^ (line / 4u & 15u) : chunk);
}
// stage_packs and stage_elements copy 64 elements of each of up to 64 lines to local memory, from line `first_line` and
// element `first_element` on. Lines after the first `lines`, and elements after the end of a line, are 0. Both
// functions store the same numbers, so results do not depend on addresses.
template <bool swizzled>
SIMT_INLINED void stage_packs(const Lines& from, u32 first_line, u32 lines, u32 first_element,
                              SIMT_LOCAL QuadFloat* to) {
  const u32 line_packs = SIMT_ATTENTION_STEP / PACK_ELEMENTS, all = SIMT_ATTENTION_STEP * line_packs;
  for (u32 start = local_id(); start < all; start += STAGED_PACKS * group_size()) {
    Packs packs;
    SIMT_UNROLL for (int n = 0; n < STAGED_PACKS; ++n) {
      const u32 index = start + n * group_size(), line = index / line_packs;
      const u32 first = first_element + index % line_packs * PACK_ELEMENTS;
      packs.at[n] =
          load_pack(from.from + (from.line_stride * (first_line + line) + first), line < lines && first < from.length);
    }
    SIMT_UNROLL for (int n = 0; n < STAGED_PACKS; ++n) {
      const u32 index = start + n * group_size(), line = index / line_packs;
      if (index >= all) continue;
      to[place_of<swizzled>(line, index % line_packs)] = numbers_of(packs.at[n]);
    }
  }
}
template <bool swizzled>
SIMT_INLINED void stage_elements(const Lines& from, u32 first_line, u32 lines, u32 first_element,
                                 SIMT_LOCAL QuadFloat* to) {
  for (u32 index = local_id(); index < SIMT_ATTENTION_STEP * SIMT_ATTENTION_STEP; index += group_size()) {
    const u32 line = index / SIMT_ATTENTION_STEP, element = index % SIMT_ATTENTION_STEP, at = first_element + element;
    float x = 0.0f;
    if (line < lines && at < from.length)
      x = SIMT_T::value(from.from[from.line_stride * (first_line + line) + from.stride * at]);
    ((SIMT_LOCAL float*)(to + place_of<swizzled>(line, element / 4u)))[element % 4u] = x;
  }
}
template <bool swizzled>
SIMT_INLINED void stage_step(const Lines& from, u32 first_line, u32 lines, u32 first_element,
                             SIMT_LOCAL QuadFloat* to) {
  if (from.packed) {
    stage_packs<swizzled>(from, first_line, lines, first_element, to);
  } else {
    stage_elements<swizzled>(from, first_line, lines, first_element, to);
  }
}
// Copies the queries of a tile to local memory: elements 0 to 63 of all rows, then elements 64 to 127 of all rows, and
// so on.
SIMT_INLINED void stage_queries(const AttentionBlockParams& p, Pointer q, u32 batch, u32 group, u32 first_row, u32 rows,
                                u32 tile_rows, u32 depth_blocks, SIMT_LOCAL QuadFloat* to) {
  const AttentionParams& o = p.operands;
  const Lines lines = lines_of(q, p.offsets[2], o.q, position(o.q, batch, 0, 0), o.depth);
  const bool packed = lines.packed && is_aligned(o.q.head);
  const u32 parts = packed ? SIMT_ATTENTION_STEP / PACK_ELEMENTS : SIMT_ATTENTION_STEP;
  for (u32 i = local_id(); i < tile_rows * depth_blocks * parts; i += group_size()) {
    const u32 line = i / parts, part = i - line * parts, block = line / tile_rows, r = line - block * tile_rows;
    const Row row = row_of(o, group, first_row + smaller(r, rows - 1u));
    SIMT_GLOBAL const Element* from = lines.from + position(o.q, 0, row.head, row.query);
    SIMT_LOCAL QuadFloat* at = to + line * STEP_CHUNKS;
    if (packed) {
      const u32 first = block * SIMT_ATTENTION_STEP + part * PACK_ELEMENTS;
      const QuadU32 pack = load_pack(from + first, first < o.depth);
      at[part] = numbers_of(pack);
    } else {
      const u32 d = block * SIMT_ATTENTION_STEP + part;
      ((SIMT_LOCAL float*)at)[part] = d < o.depth ? SIMT_T::value(from[o.q.element * d]) : 0.0f;
    }
  }
}

// Applies the masks to `scores`, the scores of a row with the keys `key` to `key` + 3. The score of a masked key, and
// of keys from `end` on, is -inf.
SIMT_INLINED QuadFloat masked(const AttentionParams& o, Pointer mask, u64 offset, i64 row, u32 key, u32 end,
                              QuadFloat scores) {
  const u32 last = o.keys - 1u;
  if (o.mask_kind != SIMT_MASK_NONE) {
    const bool adjacent = o.mask.element == 1 && key + 3u <= last;
    QuadFloat added = no_numbers();
    if (o.mask_kind == SIMT_MASK_BOOL) {
      SIMT_GLOBAL const u8* at = at_offset<u8>(mask, offset) + row;
      u32 bytes = 0u;
      if (adjacent && ((u64)(at + key) & 3u) == 0) {
        bytes = *(SIMT_GLOBAL const u32*)(at + key);
      } else {
        for (u32 j = 0; j < 4; ++j) bytes |= (u32)at[o.mask.element * smaller(key + j, last)] << 8u * j;
      }
      const float excluded = -infinity();
      scores.x = (bytes & 0xFFu) == 0u ? excluded : scores.x;
      scores.y = (bytes & 0xFF00u) == 0u ? excluded : scores.y;
      scores.z = (bytes & 0xFF0000u) == 0u ? excluded : scores.z;
      scores.w = (bytes & 0xFF000000u) == 0u ? excluded : scores.w;
    } else {
      SIMT_GLOBAL const Element* at = at_offset<Element>(mask, offset) + row;
      if (adjacent && ((u64)(at + key) & 15u) == 0) {
        added = numbers_of(*(SIMT_GLOBAL const QuadU32*)(at + key));
      } else {
        added.x = SIMT_T::value(at[o.mask.element * smaller(key, last)]);
        added.y = SIMT_T::value(at[o.mask.element * smaller(key + 1u, last)]);
        added.z = SIMT_T::value(at[o.mask.element * smaller(key + 2u, last)]);
        added.w = SIMT_T::value(at[o.mask.element * smaller(key + 3u, last)]);
      }
      scores.x += added.x, scores.y += added.y, scores.z += added.z, scores.w += added.w;
    }
  }
  scores.x = key < end ? scores.x : -infinity();
  scores.y = key + 1u < end ? scores.y : -infinity();
  scores.z = key + 2u < end ? scores.z : -infinity();
  scores.w = key + 3u < end ? scores.w : -infinity();
  return scores;
}

// The work of a group: some rows of one head of k and v, and the keys of one split.
struct BlockItem {
  u32 batch, group, split;
  u32 first_row, rows;
  u32 begin, end;  // the causal mask permits the keys from `begin` to `end` - 1 of the split for at least one row
  u32 free_end;    // the causal mask permits the keys from `begin` to `free_end` - 1 for every row
};
SIMT_INLINED BlockItem block_item(const AttentionBlockParams& p, u32 item, u32 tile_rows) {
  const AttentionParams& o = p.operands;
  const u32 heads = o.batches * o.groups, all = o.repeats * o.queries;
  BlockItem out;
  u32 rest = item / p.splits, head, tile;
  out.split = item - rest * p.splits;
  if (p.longest_first != 0) {
    tile = rest / heads;
    head = rest - tile * heads;
    tile = o.tiles - 1u - tile;
  } else {
    head = rest / o.tiles;
    tile = rest - head * o.tiles;
  }
  out.batch = head / o.groups;
  out.group = head - out.batch * o.groups;
  out.first_row = tile * tile_rows;
  out.rows = smaller(tile_rows, all - out.first_row);
  // Rows of several heads include the last query of a head, which sees the most keys, and the first query of a head,
  // which sees the fewest.
  const u32 last_row = out.first_row + out.rows - 1u;
  const bool one_head = out.first_row / o.queries == last_row / o.queries;
  out.begin = out.split * p.split_keys;
  out.end = smaller(causal_end(o, one_head ? last_row % o.queries : o.queries - 1u), out.begin + p.split_keys);
  out.free_end = smaller(causal_end(o, one_head ? out.first_row % o.queries : 0u), out.end);
  return out;
}

// Computes all items of a group. In each step, `shared` contains keys, then masked scores, and then weights. At the end
// of an item, it contains the weighted sums.
template <int own_rows, int blocks>
SIMT_INLINED void attend_blocks(const AttentionBlockParams& p, Results to, Pointer q, Pointer k, Pointer v,
                                Pointer mask, SIMT_LOCAL QuadFloat* queries, SIMT_LOCAL QuadFloat* shared,
                                SIMT_LOCAL QuadFloat* values) {
  const AttentionParams& o = p.operands;
  const u32 place = local_id() % SIMT_ATTENTION_TEAM, team = local_id() / SIMT_ATTENTION_TEAM;
  const u32 tile_rows = group_size() / SIMT_ATTENTION_TEAM * own_rows, own = team * own_rows;
  const u32 depth_blocks = (o.depth + SIMT_ATTENTION_STEP - 1u) / SIMT_ATTENTION_STEP;
  for (u32 index = group_id(); index < o.items; index += group_count()) {
    const BlockItem item = block_item(p, index, tile_rows);
    const Lines keys = lines_of(k, p.offsets[3], o.k, position(o.k, item.batch, item.group, 0), o.depth);
    const Lines columns = lines_of(v, p.offsets[4], o.v, position(o.v, item.batch, item.group, 0), o.value_columns);
    stage_queries(p, q, item.batch, item.group, item.first_row, item.rows, tile_rows, depth_blocks, queries);

    QuadFloat weighted[own_rows][blocks];
    float sums[own_rows];
    Maximum maxima[own_rows];
    SIMT_UNROLL for (int r = 0; r < own_rows; ++r) {
      SIMT_UNROLL for (int b = 0; b < blocks; ++b) weighted[r][b] = no_numbers();
      sums[r] = 0.0f;
      maxima[r].greatest = -infinity();
    }
    for (u32 first = item.begin; first < item.end; first += SIMT_ATTENTION_STEP) {
      const u32 lines = smaller(item.end - first, (u32)SIMT_ATTENTION_STEP);
      float scores[own_rows][4];
      SIMT_UNROLL for (int r = 0; r < own_rows; ++r) SIMT_UNROLL for (int j = 0; j < 4; ++j) scores[r][j] = 0.0f;
      for (u32 block = 0; block < depth_blocks; ++block) {
        group_barrier();  // all teams have read the previous contents of local memory
        stage_step<true>(keys, first, lines, block * SIMT_ATTENTION_STEP, shared);
        if (block == 0) stage_step<false>(columns, first, lines, 0, values);
        group_barrier();
        const u32 chunks = smaller((o.depth - block * SIMT_ATTENTION_STEP + 3u) / 4u, (u32)STEP_CHUNKS);
        SIMT_LOCAL const QuadFloat* query = queries + (block * tile_rows + own) * STEP_CHUNKS;
        SIMT_LOCAL const QuadFloat* key = shared + place * 4u * STEP_CHUNKS;
        for (u32 i = 0; i < chunks; ++i) {
          QuadFloat x[4];
          SIMT_UNROLL for (int j = 0; j < 4; ++j) x[j] = key[j * STEP_CHUNKS + (i ^ place)];
          SIMT_UNROLL for (int r = 0; r < own_rows; ++r) {
            const QuadFloat element = query[r * STEP_CHUNKS + i];
            SIMT_UNROLL for (int j = 0; j < 4; ++j) scores[r][j] = add_dot(element, x[j], scores[r][j]);
          }
        }
      }

      if (first + SIMT_ATTENTION_STEP > item.free_end || o.mask_kind != SIMT_MASK_NONE) {
        group_barrier();  // all teams have read the keys
        SIMT_UNROLL for (int r = 0; r < own_rows; ++r) shared[(own + r) * STEP_CHUNKS + place] =
            four_of(scores[r][0] * o.scale, scores[r][1] * o.scale, scores[r][2] * o.scale, scores[r][3] * o.scale);
        for (u32 r = own; r < own + own_rows; ++r) {
          const Row row = row_of(o, item.group, item.first_row + smaller(r, item.rows - 1u));
          const i64 mask_at = position(o.mask, item.batch, row.head, row.query);
          shared[r * STEP_CHUNKS + place] = masked(o, mask, p.offsets[5], mask_at, first + place * 4u,
                                                   smaller(row.end, item.end), shared[r * STEP_CHUNKS + place]);
        }
        SIMT_UNROLL for (int r = 0; r < own_rows; ++r) {
          const QuadFloat own_scores = shared[(own + r) * STEP_CHUNKS + place];
          scores[r][0] = own_scores.x, scores[r][1] = own_scores.y;
          scores[r][2] = own_scores.z, scores[r][3] = own_scores.w;
        }
      } else {
        SIMT_UNROLL for (int r = 0; r < own_rows; ++r) SIMT_UNROLL for (int j = 0; j < 4; ++j) scores[r][j] *= o.scale;
      }
      SIMT_UNROLL for (int r = 0; r < own_rows; ++r) {
        float greatest = maxima[r].greatest;
        SIMT_UNROLL for (int j = 0; j < 4; ++j) greatest = larger(greatest, scores[r][j]);
        SIMT_UNROLL for (u32 far = 1; far < SIMT_ATTENTION_TEAM; far *= 2u) greatest =
            larger(greatest, shuffled(greatest, far));
        const float before = maxima[r].greatest;
        maxima[r].correction = before == -infinity() ? 0.0f : weight_of(before - greatest);
        maxima[r].greatest = greatest;
        const float base = base_of(greatest);
        SIMT_UNROLL for (int j = 0; j < 4; ++j) scores[r][j] = weight_of(scores[r][j] - base);
        sums[r] = sums[r] * maxima[r].correction + ((scores[r][0] + scores[r][1]) + (scores[r][2] + scores[r][3]));
        SIMT_UNROLL for (int b = 0; b < blocks; ++b) weighted[r][b] = scaled(weighted[r][b], maxima[r].correction);
      }
      group_barrier();  // all teams have read the keys
      SIMT_UNROLL for (int r = 0; r < own_rows; ++r) {
        shared[(own + r) * STEP_CHUNKS + place] = four_of(scores[r][0], scores[r][1], scores[r][2], scores[r][3]);
      }
      group_barrier();
      const u32 chunks = (lines + 3u) / 4u;
      SIMT_UNROLL for (int b = 0; b < blocks; ++b) {
        if (b != 0) {
          if (b * SIMT_ATTENTION_STEP >= (int)o.value_columns) break;
          group_barrier();
          stage_step<false>(columns, first, lines, b * SIMT_ATTENTION_STEP, values);
          group_barrier();
        }
        for (u32 i = 0; i < chunks; ++i) {
          QuadFloat x[4];
          SIMT_UNROLL for (int j = 0; j < 4; ++j) x[j] = values[(i * 4u + j) * STEP_CHUNKS + place];
          SIMT_UNROLL for (int r = 0; r < own_rows; ++r) {
            const QuadFloat weights = shared[(own + r) * STEP_CHUNKS + i];
            weighted[r][b] = add_product(weights.x, x[0], weighted[r][b]);
            weighted[r][b] = add_product(weights.y, x[1], weighted[r][b]);
            weighted[r][b] = add_product(weights.z, x[2], weighted[r][b]);
            weighted[r][b] = add_product(weights.w, x[3], weighted[r][b]);
          }
        }
      }
    }

    // A loop over rows that is not unrolled stores the results, so that the kernel remains short.
    SIMT_UNROLL for (int b = 0; b < blocks; ++b) {
      if (b != 0 && b * SIMT_ATTENTION_STEP >= (int)o.value_columns) break;
      group_barrier();  // all teams have read local memory
      SIMT_UNROLL for (int r = 0; r < own_rows; ++r) {
        shared[(own + r) * STEP_CHUNKS + place] = weighted[r][b];
        values[(own + r) * STEP_CHUNKS + place] = four_of(sums[r], maxima[r].greatest, 0.0f, 0.0f);
      }
      group_barrier();
      for (u32 r = own; r < own + own_rows; ++r) {
        const QuadFloat state = values[r * STEP_CHUNKS + place];
        float sum = state.x;
        SIMT_UNROLL for (u32 far = 1; far < SIMT_ATTENTION_TEAM; far *= 2u) sum += shuffled(sum, far);
        if (r >= item.rows) continue;
        const u32 row = item.first_row + r, column = b * SIMT_ATTENTION_STEP + place * 4u;
        const Line line = line_of(p, to, item.batch, item.group, row, item.split);
        const QuadFloat own_weighted = shared[r * STEP_CHUNKS + place];
        if (column < o.value_columns) put(line, column, own_weighted.x, sum);
        if (column + 1u < o.value_columns) put(line, column + 1u, own_weighted.y, sum);
        if (column + 2u < o.value_columns) put(line, column + 2u, own_weighted.z, sum);
        if (column + 3u < o.value_columns) put(line, column + 3u, own_weighted.w, sum);
        if (b == 0 && place == 0) put_sums(p, to, item.batch, item.group, row, item.split, state.y, sum);
      }
    }
    group_barrier();  // the next item overwrites the queries
  }
}

// Kernels with `own_rows` rows per team, for up to 64 * `blocks` columns of v.
#define ATTENTION_BLOCKS(own_rows, blocks)                                                        \
  SIMT_KERNEL(attention_blocks_##own_rows)                                                        \
  (Pointer y, Pointer logsumexp, Pointer q, Pointer k, Pointer v, Pointer mask, Pointer partials, \
   AttentionBlockParams p) {                                                                      \
    SIMT_SHARED(QuadFloat, queries, SIMT_ATTENTION_KEPT / 4);                                     \
    SIMT_SHARED(QuadFloat, shared, STEP_NUMBERS);                                                 \
    SIMT_SHARED(QuadFloat, values, STEP_NUMBERS);                                                 \
    Results to;                                                                                   \
    to.y = y, to.logsumexp = logsumexp, to.partials = partials;                                   \
    attend_blocks<own_rows, blocks>(p, to, q, k, v, mask, queries, shared, values);               \
  }
ATTENTION_BLOCKS(4, 2)
ATTENTION_BLOCKS(2, 4)

// ---- attention_split ----------------------------------------------------------------------------

// Loads the pack at element `first` of each of eight lines, which are `step` lines apart. Only the first `count` lines
// exist. Packs of other lines, and packs after the end of a line, are 0. Packed lines and other lines give the same
// elements, so results do not depend on addresses.
SIMT_INLINED Packs packs_of(const Lines& lines, u32 first_line, u32 step, u32 count, u32 first) {
  SIMT_GLOBAL const Element* from = lines.from + (lines.line_stride * first_line + first);
  const i64 line_step = lines.line_stride * step;
  const u32 inside = first < lines.length ? count : 0u;
  Packs out;
  if (lines.packed) {
    SIMT_UNROLL for (u32 n = 0; n < PACKS; ++n) out.at[n] = load_pack(from + line_step * n, n < inside);
    return out;
  }
  SIMT_UNROLL for (u32 n = 0; n < PACKS; ++n) {
    out.at[n] = no_words();
    if (n >= inside) continue;
    SIMT_GLOBAL const Element* at = from + line_step * n;
    out.at[n].x = at[0], out.at[n].y = at[1], out.at[n].z = at[2], out.at[n].w = at[3];
  }
  return out;
}

// Sums each of the eight numbers over the lanes of a team. Returns the sum of number i % 8 in lane i.
SIMT_INLINED float add_over_team(float (&numbers)[PACKS], u32 lanes) {
  SIMT_UNROLL for (int bit = 0; bit < 3; ++bit) {
    const bool odd = (lane() >> bit & 1u) != 0;
    SIMT_UNROLL for (int i = 0; i < 4 >> bit; ++i) {
      const float keep = odd ? numbers[2 * i + 1] : numbers[2 * i], give = odd ? numbers[2 * i] : numbers[2 * i + 1];
      numbers[i] = keep + shuffled(give, 1u << bit);
    }
  }
  return lanes > 8u ? numbers[0] + shuffled(numbers[0], 8u) : numbers[0];
}

// The online softmax of a row, in local memory.
struct RowState {
  float greatest, correction, sum;
};

template <int max_rows>
SIMT_INLINED void attend_split(const AttentionBlockParams& p, Results to, Pointer q, Pointer k, Pointer v, Pointer mask,
                               SIMT_LOCAL QuadFloat* queries, SIMT_LOCAL float* weights, SIMT_LOCAL QuadFloat* parts,
                               SIMT_LOCAL RowState* states) {
  const AttentionParams& o = p.operands;
  const u32 lanes = p.lanes, place = local_id() % lanes, team = local_id() / lanes, teams = group_size() / lanes;
  const u32 depth_chunks = (o.depth + 3u) / 4u;
  for (u32 item = group_id(); item < o.items; item += group_count()) {
    u32 rest = item / o.column_blocks;
    const u32 first_column = (item - rest * o.column_blocks) * o.columns;
    const u32 columns = smaller(o.columns, o.value_columns - first_column);
    const u32 first_row = rest % o.tiles * max_rows;
    rest /= o.tiles;
    const u32 split = rest % p.splits;
    rest /= p.splits;
    const u32 batch = rest / o.groups, group = rest - batch * o.groups;
    const u32 rows = smaller((u32)max_rows, o.repeats * o.queries - first_row);
    const u32 begin = split * p.split_keys, end = smaller(begin + p.split_keys, o.keys);
    for (u32 r = 0; r < max_rows; ++r) {
      const Row row = row_of(o, group, first_row + smaller(r, rows - 1u));
      SIMT_GLOBAL const Element* from = at_offset<Element>(q, p.offsets[2]) + position(o.q, batch, row.head, row.query);
      SIMT_LOCAL float* query = (SIMT_LOCAL float*)(queries + r * depth_chunks);
      for (u32 d = local_id(); d < depth_chunks * 4u; d += group_size())
        query[d] = d < o.depth ? SIMT_T::value(from[o.q.element * d]) : 0.0f;
    }
    if (local_id() < max_rows) {
      states[local_id()].greatest = -infinity();
      states[local_id()].sum = 0.0f;
    }
    const Lines keys = lines_of(k, p.offsets[3], o.k, position(o.k, batch, group, 0), o.depth);
    const Lines values =
        lines_of(v, p.offsets[4], o.v, position(o.v, batch, group, 0) + o.v.element * first_column, columns);
    QuadFloat weighted[max_rows][SPLIT_PARTS];
    SIMT_UNROLL for (int r = 0; r < max_rows; ++r) SIMT_UNROLL for (int c = 0; c < SPLIT_PARTS; ++c) weighted[r][c] =
        no_numbers();
    group_barrier();

    const u32 step_keys = PACKS * teams;
    for (u32 first = begin; first < end; first += step_keys) {
      // `count` is the number of keys of this team in the step.
      const u32 left = smaller(end - first, step_keys), count = (left + teams - 1u - team) / teams;
      Packs value = packs_of(values, first + team, teams, count, place * PACK_ELEMENTS);
      float products[max_rows][PACKS];
      SIMT_UNROLL for (int r = 0; r < max_rows; ++r) SIMT_UNROLL for (int n = 0; n < PACKS; ++n) products[r][n] = 0.0f;
      for (u32 chunk = place; chunk < depth_chunks; chunk += lanes) {
        const Packs key = packs_of(keys, first + team, teams, count, chunk * 4u);
        QuadFloat x[max_rows];
        SIMT_UNROLL for (int r = 0; r < max_rows; ++r) x[r] = queries[r * depth_chunks + chunk];
        SIMT_UNROLL for (int n = 0; n < PACKS; ++n) {
          const QuadFloat element = numbers_of(key.at[n]);
          SIMT_UNROLL for (int r = 0; r < max_rows; ++r) products[r][n] = add_dot(element, x[r], products[r][n]);
        }
      }
      SIMT_UNROLL for (int r = 0; r < max_rows; ++r) {
        const float product = add_over_team(products[r], lanes);
        if (place < PACKS) {
          const u32 at = place * teams + team, key = first + at;
          float score = product * o.scale;
          const Row row = row_of(o, group, first_row + smaller((u32)r, rows - 1u));
          if (o.mask_kind != SIMT_MASK_NONE) {
            const i64 where = position(o.mask, batch, row.head, row.query) + o.mask.element * smaller(key, o.keys - 1u);
            if (o.mask_kind == SIMT_MASK_BOOL) {
              score = at_offset<u8>(mask, p.offsets[5])[where] != 0 ? score : -infinity();
            } else {
              score += SIMT_T::value(at_offset<Element>(mask, p.offsets[5])[where]);
            }
          }
          weights[r * SPLIT_KEYS + at] = key < smaller(row.end, end) ? score : -infinity();
        }
      }
      group_barrier();
      for (u32 r = subgroup(); r < max_rows; r += subgroups()) {
        SIMT_LOCAL float* own = weights + r * SPLIT_KEYS;
        const float before = states[r].greatest;
        float greatest = before;
        for (u32 i = lane(); i < step_keys; i += width()) greatest = larger(greatest, own[i]);
        for (u32 far = width() / 2u; far > 0u; far /= 2u) greatest = larger(greatest, shuffled(greatest, far));
        const float correction = before == -infinity() ? 0.0f : weight_of(before - greatest);
        const float base = base_of(greatest);
        float sum = 0.0f;
        for (u32 i = lane(); i < step_keys; i += width()) {
          own[i] = weight_of(own[i] - base);
          sum += own[i];
        }
        for (u32 far = width() / 2u; far > 0u; far /= 2u) sum += shuffled(sum, far);
        if (lane() == 0) {
          states[r].greatest = greatest;
          states[r].correction = correction;
          states[r].sum = states[r].sum * correction + sum;
        }
      }
      group_barrier();
      SIMT_UNROLL for (int r = 0; r < max_rows; ++r) SIMT_UNROLL for (int c = 0; c < SPLIT_PARTS; ++c) weighted[r][c] =
          scaled(weighted[r][c], states[r].correction);
      SIMT_UNROLL for (int part = 0; part < SPLIT_PARTS; ++part) {
        const u32 column = (part * lanes + place) * PACK_ELEMENTS;
        if (part != 0) {
          if (part * lanes * PACK_ELEMENTS >= columns) break;
          value = packs_of(values, first + team, teams, count, column);
        }
        SIMT_UNROLL for (int n = 0; n < PACKS; ++n) {
          const QuadFloat element = numbers_of(value.at[n]);
          SIMT_UNROLL for (int r = 0; r < max_rows; ++r) {
            weighted[r][part] = add_product(weights[r * SPLIT_KEYS + n * teams + team], element, weighted[r][part]);
          }
        }
      }
      group_barrier();  // the next step overwrites the weights
    }

    // Adds the weighted sums of the teams: first within each sub-group, then within the group.
    const u32 row_parts = 8u * SIMT_ATTENTION_SPLIT_COLUMNS / 4u;
    SIMT_UNROLL for (int r = 0; r < max_rows; ++r) {
      SIMT_UNROLL for (int i = 0; i < SPLIT_PARTS; ++i) {
        QuadFloat sum = weighted[r][i];
        for (u32 far = lanes; far < width(); far *= 2u) {
          sum.x += shuffled(sum.x, far), sum.y += shuffled(sum.y, far);
          sum.z += shuffled(sum.z, far), sum.w += shuffled(sum.w, far);
        }
        const u32 column = i * lanes + place;
        if (lane() < lanes) parts[r * row_parts + subgroup() * (SIMT_ATTENTION_SPLIT_COLUMNS / 4) + column] = sum;
      }
    }
    group_barrier();
    for (u32 r = 0; r < rows; ++r) {
      const Line line = line_of(p, to, batch, group, first_row + r, split);
      SIMT_LOCAL const float* part = (SIMT_LOCAL const float*)(parts + r * row_parts);
      for (u32 column = local_id(); column < columns; column += group_size()) {
        float sum = 0.0f;
        for (u32 s = 0; s < subgroups(); ++s) sum += part[s * SIMT_ATTENTION_SPLIT_COLUMNS + column];
        put(line, first_column + column, sum, states[r].sum);
      }
      if (first_column == 0 && local_id() == 0)
        put_sums(p, to, batch, group, first_row + r, split, states[r].greatest, states[r].sum);
    }
    group_barrier();  // the next item overwrites local memory
  }
}

// Kernels with up to `max_rows` rows per group. A group has at most 8 sub-groups.
#define ATTENTION_SPLIT(max_rows)                                                                 \
  SIMT_KERNEL(attention_split_##max_rows)                                                         \
  (Pointer y, Pointer logsumexp, Pointer q, Pointer k, Pointer v, Pointer mask, Pointer partials, \
   AttentionBlockParams p) {                                                                      \
    SIMT_SHARED(QuadFloat, queries, max_rows* SIMT_ATTENTION_SPLIT_DEPTH / 4);                    \
    SIMT_SHARED(float, weights, max_rows* SPLIT_KEYS);                                            \
    SIMT_SHARED(QuadFloat, parts, max_rows * 8 * SIMT_ATTENTION_SPLIT_COLUMNS / 4);               \
    SIMT_SHARED(RowState, states, max_rows);                                                      \
    Results to;                                                                                   \
    to.y = y, to.logsumexp = logsumexp, to.partials = partials;                                   \
    attend_split<max_rows>(p, to, q, k, v, mask, queries, weights, parts, states);                \
  }
ATTENTION_SPLIT(1)
ATTENTION_SPLIT(4)

// ---- attention_combine --------------------------------------------------------------------------

#define COMBINED_COLUMNS 128  // columns of y per pass
#define COMBINING_TEAMS 4     // teams of a group, of 32 threads each

// A group computes a row. Each thread reads the maximum and the sum of a split. A team of 32 threads adds the weighted
// values of every fourth split, four columns per thread.
SIMT_KERNEL(attention_combine)
(Pointer y, Pointer logsumexp, Pointer partials, AttentionBlockParams p) {
  SIMT_SHARED(float, factors, SIMT_ATTENTION_SPLITS);
  SIMT_SHARED(float, parts, COMBINING_TEAMS* COMBINED_COLUMNS);
  SIMT_SHARED(float, maxima, MAX_SUBGROUPS);
  SIMT_SHARED(float, sums, MAX_SUBGROUPS);
  const AttentionParams& o = p.operands;
  const u32 head_rows = o.repeats * o.queries, place = local_id() % 32u, team = local_id() / 32u;
  SIMT_GLOBAL const float* weighted = at_offset<float>(partials, p.offsets[2]);
  SIMT_GLOBAL const float* statistics = weighted + partial_rows(o) * p.splits * o.value_columns;
  for (u32 row = group_id(); row < (u32)partial_rows(o); row += group_count()) {
    const bool inside = local_id() < p.splits;
    const u64 first_split = (u64)row * p.splits;
    const float own = inside ? statistics[(first_split + local_id()) * 2u] : -infinity();
    const float own_sum = inside ? statistics[(first_split + local_id()) * 2u + 1u] : 0.0f;
    float greatest = own;
    for (u32 far = width() / 2u; far > 0u; far /= 2u) greatest = larger(greatest, shuffled(greatest, far));
    if (lane() == 0) maxima[subgroup()] = greatest;
    group_barrier();
    for (u32 s = 0; s < subgroups(); ++s) greatest = larger(greatest, maxima[s]);
    const float factor = weight_of(own - base_of(greatest));
    factors[local_id()] = factor;
    float sum = factor * own_sum;
    for (u32 far = width() / 2u; far > 0u; far /= 2u) sum += shuffled(sum, far);
    if (lane() == 0) sums[subgroup()] = sum;
    group_barrier();
    sum = 0.0f;
    for (u32 s = 0; s < subgroups(); ++s) sum += sums[s];

    const u32 head = row / head_rows, batch = head / o.groups;
    const Row which = row_of(o, head - batch * o.groups, row - head * head_rows);
    SIMT_GLOBAL Element* line = at_offset<Element>(y, p.offsets[0]) + position(o.y, batch, which.head, which.query);
    for (u32 first = 0; first < o.value_columns; first += COMBINED_COLUMNS) {
      float added[4];
      SIMT_UNROLL for (int i = 0; i < 4; ++i) added[i] = 0.0f;
      for (u32 split = team; split < p.splits; split += COMBINING_TEAMS) {
        SIMT_GLOBAL const float* from = weighted + (first_split + split) * o.value_columns + first;
        const float by = factors[split];
        SIMT_UNROLL for (u32 i = 0; i < 4; ++i) {
          const u32 column = i * 32u + place;
          if (first + column < o.value_columns) added[i] = multiply_add(by, from[column], added[i]);
        }
      }
      SIMT_UNROLL for (u32 i = 0; i < 4; ++i) parts[team * COMBINED_COLUMNS + i * 32u + place] = added[i];
      group_barrier();
      const u32 column = local_id();
      if (first + column < o.value_columns) {
        float total = 0.0f;
        SIMT_UNROLL for (u32 t = 0; t < COMBINING_TEAMS; ++t) total += parts[t * COMBINED_COLUMNS + column];
        line[o.y.element * (first + column)] = SIMT_T::bits(quotient(total, sum));
      }
      group_barrier();
    }
    if (o.has_logsumexp != 0 && local_id() == 0)
      at_offset<u32>(logsumexp, p.offsets[1])[position(o.logsumexp, batch, which.head, which.query)] =
          bits_of_float(logsumexp_of(greatest, sum));
    group_barrier();  // the next row overwrites the factors
  }
}
