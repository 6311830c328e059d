// SPDX-License-Identifier: Apache-2.0
// The operator `attention` for few rows, with matrix units. The keys of a tile of 16 rows are divided into parts. A
// group computes the weighted values of one part, and another kernel adds the parts of a row. Each of the four warps
// of a group processes a quarter of the keys of each step. The order of all sums depends on the shapes and on the
// device only.

template <int kDepth, bool kMasked>
SIMT_INLINED void attend_part(SIMT_LOCAL u8* memory, Pointer partial, Pointer q, Pointer k, Pointer v, Pointer mask,
                              const AttentionMmaParams& p) {
  enum {
    kRows = ATTENTION_PART_ROWS,
    kKeys = ATTENTION_PART_KEYS,
    kStages = ATTENTION_PART_STAGES,
    kSteps = kDepth / 16,
    kColumnTiles = kDepth / 8,
    kWarps = ATTENTION_MMA_THREADS / 32,
    kPitch = kDepth + 2  // f32 per row of the warps' sums in shared memory
  };
  const AttentionParams& o = p.operands;
  const u32 step_bytes = kKeys * kDepth * 2;
  const SharedAt queries = shared_at(memory), keys = queries + kRows * kDepth * 2, values = keys + kStages * step_bytes;
  const u32 item = group_id() / p.parts, part = group_id() - item * p.parts;
  const Tile tile = tile_of(p, item, kRows);
  const u32 end = causal_end(o, tile.one_head ? smaller(tile.first_row + kRows, tile.rows) - 1u : o.queries - 1u);
  const u32 first_step = part * p.part_steps, steps = (end + kKeys - 1u) / kKeys;
  const u32 count = first_step < steps ? smaller(p.part_steps, steps - first_step) : 0u;
  Stream<kDepth> next_keys =
      stream_of<kDepth>(at_offset<Element>(k, o.offsets[3]) + position(o.k, tile.batch, tile.group, 0), o.k.row,
                        first_step * kKeys, o.keys, o.depth);
  Stream<kDepth> next_values =
      stream_of<kDepth>(at_offset<Element>(v, o.offsets[4]) + position(o.v, tile.batch, tile.group, 0), o.v.row,
                        first_step * kKeys, o.keys, o.value_columns);

  SharedCopies<64> copies;
  load_queries<kDepth>(copies, queries, at_offset<Element>(q, o.offsets[2]) + position(o.q, tile.batch, tile.head, 0),
                       p, tile, kRows);
  MMA_UNROLL for (u32 s = 0; s < kStages; ++s) {
    if (s < count) {
      load_step<kDepth, kKeys, false>(copies, keys + s * step_bytes, next_keys, (first_step + s) * kKeys);
      load_step<kDepth, kKeys, false>(copies, values + s * step_bytes, next_values, (first_step + s) * kKeys);
    }
    copies.commit();
  }

  float weighted[kColumnTiles][4];
  RowState states[2];
  MMA_UNROLL for (int n = 0; n < kColumnTiles; ++n) { MMA_UNROLL for (int i = 0; i < 4; ++i) weighted[n][i] = 0.0f; }
  u32 row_end[2];
  SIMT_GLOBAL const u8* mask_rows[2];
  const bool is_bool = o.mask_kind == SIMT_MASK_BOOL;
  MMA_UNROLL for (int h = 0; h < 2; ++h) {
    states[h] = {-infinity(), 0.0f};
    const Row own = row_of(p, tile, smaller(tile.first_row + h * 8 + warp_lane() / 4u, tile.rows - 1u));
    row_end[h] = causal_end(o, own.query);
    const i64 element = kMasked ? position(o.mask, tile.batch, tile.head + own.repeat, own.query) : 0;
    mask_rows[h] = at_offset<u8>(mask, o.offsets[5]) + (is_bool ? element : element * 2);
  }
  const float factor = (kMasked ? 1.0f : o.scale) * LOG2_E;
  const u32 own_keys = warp() * 16u;
  const u32 query_place = place_of<kDepth>(warp_lane() % 16u, warp_lane() / 16u);
  const u32 key_place = place_of<kDepth>(own_keys + warp_lane() / 16u * 8u + warp_lane() % 8u, warp_lane() / 8u % 2u);
  const u32 value_place = place_of<kDepth>(own_keys + warp_lane() % 16u, warp_lane() / 16u);

  for (u32 step = 0; step < count; ++step) {
    const u32 stage = step % kStages * step_bytes;
    copies.template wait<kStages - 1>();
    group_barrier();
    float scores[2][4];
    MMA_UNROLL for (int n = 0; n < 2; ++n) { MMA_UNROLL for (int i = 0; i < 4; ++i) scores[n][i] = 0.0f; }
    MMA_UNROLL for (int s = 0; s < kSteps; ++s) {
      u32 query[4], key[4];
      load_matrices(query, queries + (query_place ^ 32u * s));
      load_matrices(key, keys + (stage + (key_place ^ 32u * s)));
      multiply_add_fragments<SIMT_T>(scores[0], query, key[0], key[1]);
      multiply_add_fragments<SIMT_T>(scores[1], query, key[2], key[3]);
    }
    const u32 first = (first_step + step) * kKeys + own_keys + warp_lane() % 4u * 2u;
    MMA_UNROLL for (int h = 0; h < 2; ++h) {
      MMA_UNROLL for (int n = 0; n < 4; ++n) {
        float& score = scores[n / 2][h * 2 + n % 2];
        const u32 key = first + n / 2 * 8 + n % 2;
        if (key >= row_end[h]) {
          score = -infinity();
        } else if (kMasked && is_bool) {
          score = mask_rows[h][key] != 0 ? score * o.scale : -infinity();
        } else if (kMasked) {
          score = multiply_add(score, o.scale, number_of<SIMT_T>(((Elements)mask_rows[h])[key]));
        }
      }
      const float correction = weigh<2>(scores, h * 2, factor, states[h]);
      MMA_UNROLL for (int n = 0; n < kColumnTiles; ++n) {
        weighted[n][h * 2] *= correction;
        weighted[n][h * 2 + 1] *= correction;
      }
    }
    u32 weights[4];
    MMA_UNROLL for (int i = 0; i < 4; ++i) weights[i] =
        pair_of<SIMT_T>(scores[i / 2][i % 2 * 2], scores[i / 2][i % 2 * 2 + 1]);
    MMA_UNROLL for (int n = 0; n < kColumnTiles; n += 2) {
      u32 value[4];
      load_transposed(value, values + (stage + (value_place ^ 16u * n)));
      multiply_add_fragments<SIMT_T>(weighted[n], weights, value[0], value[1]);
      multiply_add_fragments<SIMT_T>(weighted[n + 1], weights, value[2], value[3]);
    }
    group_barrier();
    if (step + kStages < count) {
      load_step<kDepth, kKeys, false>(copies, keys + stage, next_keys, (first_step + step + kStages) * kKeys);
      load_step<kDepth, kKeys, false>(copies, values + stage, next_values, (first_step + step + kStages) * kKeys);
    }
    copies.commit();
  }
  copies.template wait<0>();
  group_barrier();

  // The warps add their sums through shared memory. `sums` contains the weighted values of each warp and row.
  // `warp_states` contains the greatest score and the sum of weights of each warp and row.
  SIMT_LOCAL float* sums = (SIMT_LOCAL float*)memory;
  SIMT_LOCAL float* warp_states = sums + kWarps * kRows * kPitch;
  MMA_UNROLL for (int h = 0; h < 2; ++h) {
    const u32 r = warp() * kRows + h * 8 + warp_lane() / 4u;
    const float all = row_sum(states[h].sum);
    if (warp_lane() % 4u == 0u) {
      warp_states[r * 2] = states[h].greatest;
      warp_states[r * 2 + 1] = all;
    }
    MMA_UNROLL for (int n = 0; n < kColumnTiles; ++n) {
      SIMT_LOCAL float* to = sums + (r * kPitch + n * 8 + warp_lane() % 4u * 2u);
      to[0] = weighted[n][h * 2];
      to[1] = weighted[n][h * 2 + 1];
    }
  }
  group_barrier();
  SIMT_GLOBAL float* out = at_offset<float>(partial, o.offsets[0]);
  for (u32 i = local_id(); i < kRows * kDepth; i += ATTENTION_MMA_THREADS) {
    const u32 r = i / kDepth, column = i % kDepth;
    if (tile.first_row + r >= tile.rows) break;
    float most = -infinity(), all = 0.0f, total = 0.0f;
    MMA_UNROLL for (u32 w = 0; w < kWarps; ++w) most = larger(most, warp_states[(w * kRows + r) * 2]);
    const float base = most == -infinity() ? 0.0f : most;
    MMA_UNROLL for (u32 w = 0; w < kWarps; ++w) {
      const float x = power_of_two((warp_states[(w * kRows + r) * 2] - base) * factor);
      all = multiply_add(x, warp_states[(w * kRows + r) * 2 + 1], all);
      total = multiply_add(x, sums[(w * kRows + r) * kPitch + column], total);
    }
    SIMT_GLOBAL float* to = out + ((u64)(tile.unit * tile.rows + tile.first_row + r) * p.parts + part) *
                                      ATTENTION_PART_NUMBERS(p.part_depth);
    if (column < p.part_depth) to[column] = total;
    if (column == 0u) {
      to[p.part_depth] = most;
      to[p.part_depth + 1u] = all;
    }
  }
}

#define ATTENTION_PART_KERNEL(name, depth, masked)                                                        \
  MMA_KERNEL(name, ATTENTION_MMA_THREADS, 2)                                                              \
  (Pointer partial, Pointer, Pointer q, Pointer k, Pointer v, Pointer mask, const AttentionMmaParams p) { \
    MMA_SHARED(memory, ATTENTION_PART_BYTES(depth));                                                      \
    attend_part<depth, masked>(memory, partial, q, k, v, mask, p);                                        \
  }
ATTENTION_PART_KERNEL(attention_part_64, 64, false)
ATTENTION_PART_KERNEL(attention_part_64_masked, 64, true)
ATTENTION_PART_KERNEL(attention_part_128, 128, false)
ATTENTION_PART_KERNEL(attention_part_128_masked, 128, true)

// Adds the parts of a row. A group processes one row, and each thread processes one column.
MMA_KERNEL(attention_join, ATTENTION_MMA_THREADS, 1)
(Pointer y, Pointer logsumexp, Pointer partial, const AttentionMmaParams p) {
  const AttentionParams& o = p.operands;
  const u32 rows = p.unit_heads * o.queries, unit = group_id() / rows, column = local_id();
  const u32 batch_units = p.units / o.batches, batch = unit / batch_units;
  const u32 row = group_id() - unit * rows, repeat = row / o.queries, query = row - repeat * o.queries;
  const u32 head = (unit - batch * batch_units) * p.unit_heads + repeat;
  const float factor = (o.mask_kind != SIMT_MASK_NONE ? 1.0f : o.scale) * LOG2_E;
  SIMT_GLOBAL const float* from =
      at_offset<const float>(partial, o.offsets[2]) + (u64)group_id() * p.parts * ATTENTION_PART_NUMBERS(p.part_depth);
  SIMT_GLOBAL const float* state = from + p.part_depth;
  const u32 pitch = ATTENTION_PART_NUMBERS(p.part_depth);
  float most = -infinity(), all = 0.0f, total = 0.0f;
  for (u32 i = 0; i < p.parts; ++i) most = larger(most, state[i * pitch]);
  const float base = most == -infinity() ? 0.0f : most;
  for (u32 i = 0; i < p.parts; ++i) {
    const float x = power_of_two((state[i * pitch] - base) * factor);
    all = multiply_add(x, state[i * pitch + 1u], all);
    if (column < p.part_depth) total = multiply_add(x, from[i * pitch + column], total);
  }
  if (column < o.value_columns) {
    at_offset<Element>(y, o.offsets[0])[position(o.y, batch, head, query) + column] =
        SIMT_T::bits(all == 0.0f ? 0.0f : total / all);
  }
  if (o.has_logsumexp != 0 && column == 0u) {
    at_offset<float>(logsumexp, o.offsets[1])[position(o.logsumexp, batch, head, query)] =
        logarithm_of(most, all, o.mask_kind != SIMT_MASK_NONE ? 1.0f : o.scale);
  }
}

// Adds the parts of a row like attention_join. A step loads the numbers of 32 parts at once. attention_join loads one
// part after another, which takes longer than the computation of the parts.
MMA_KERNEL(attention_join_steps, ATTENTION_MMA_THREADS, 1)
(Pointer y, Pointer logsumexp, Pointer partial, const AttentionMmaParams p) {
  enum { kStep = 32 };
  const AttentionParams& o = p.operands;
  const u32 rows = p.unit_heads * o.queries, unit = group_id() / rows, column = local_id();
  const u32 batch_units = p.units / o.batches, batch = unit / batch_units;
  const u32 row = group_id() - unit * rows, repeat = row / o.queries, query = row - repeat * o.queries;
  const u32 head = (unit - batch * batch_units) * p.unit_heads + repeat;
  const float factor = (o.mask_kind != SIMT_MASK_NONE ? 1.0f : o.scale) * LOG2_E;
  const u32 pitch = ATTENTION_PART_NUMBERS(p.part_depth);
  SIMT_GLOBAL const float* from = at_offset<const float>(partial, o.offsets[2]) + (u64)group_id() * p.parts * pitch;
  RowState state = {-infinity(), 0.0f};
  float total = 0.0f;
  for (u32 first = 0; first < p.parts; first += kStep) {
    float values[kStep];
    MMA_UNROLL for (u32 i = 0; i < kStep; ++i) {
      values[i] = first + i < p.parts && column < p.part_depth ? from[(first + i) * pitch + column] : 0.0f;
    }
    // Each lane has the state of one part.
    RowState part = {-infinity(), 0.0f};
    if (first + warp_lane() < p.parts) {
      SIMT_GLOBAL const float* const at = from + ((first + warp_lane()) * pitch + p.part_depth);
      part = {at[0], at[1]};
    }
    float most = part.greatest;
    MMA_UNROLL for (u32 far = 1; far < 32; far *= 2) most =
        larger(most, float_of_bits(shuffle_xor(bits_of_float(most), far)));
    most = larger(most, state.greatest);
    const float base = most == -infinity() ? 0.0f : most;
    const float correction = power_of_two((state.greatest - base) * factor);
    const float weight = power_of_two((part.greatest - base) * factor);
    state.greatest = most;
    state.sum = multiply_add(state.sum, correction, weight * part.sum);
    total *= correction;
    MMA_UNROLL for (u32 i = 0; i < kStep; ++i) {
      total = multiply_add(float_of_bits(shuffle_from(bits_of_float(weight), i)), values[i], total);
    }
  }
  float all = state.sum;
  MMA_UNROLL for (u32 far = 1; far < 32; far *= 2) all += float_of_bits(shuffle_xor(bits_of_float(all), far));
  if (column < o.value_columns) {
    at_offset<Element>(y, o.offsets[0])[position(o.y, batch, head, query) + column] =
        SIMT_T::bits(all == 0.0f ? 0.0f : total / all);
  }
  if (o.has_logsumexp != 0 && column == 0u) {
    at_offset<float>(logsumexp, o.offsets[1])[position(o.logsumexp, batch, head, query)] =
        logarithm_of(state.greatest, all, o.mask_kind != SIMT_MASK_NONE ? 1.0f : o.scale);
  }
}
