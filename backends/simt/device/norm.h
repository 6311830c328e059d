// SPDX-License-Identifier: Apache-2.0
// layer_norm, rms_norm, group_norm and batch_norm: y = (x - mean) * rstd * gamma + beta. The kernel
// first computes the mean, and then the variance about the mean.
//
// Operands: y, x, gamma, beta, mean and rstd. mean and rstd are f32 outputs. batch_norm has four more
// places: the running mean and variance as inputs, then as outputs. extra[0] to extra[3] are the
// strides of these four. `numbers` contains epsilon and momentum. `option` is a set of SIMT_NORM_*.
#include "rows.h"

#include "norm_params.h"

typedef TileParams<11, 6> NormParams;

// The mean, the sum of squared distances from the mean, and the number of elements.
struct Moments {
  float mean, squares, count;
};
SIMT_FN u32 elements_before(const NormParams& p, u32 chunk) {
  const u32 segment = chunk / p.segment_chunks;
  return segment * p.length + smaller((chunk - segment * p.segment_chunks) * p.chunk, p.length);
}
template <bool cached>
SIMT_FN Moments moments_of_split(const NormParams& p, const Tile<6>& t, Pointer x, SIMT_LOCAL Sum* parts,
                                 SIMT_LOCAL float* cache) {
  Moments out;
  out.mean = 0.0f;
  out.count = p.splits == 1 ? p.count : (float)(elements_before(p, t.last) - elements_before(p, t.first));
  Sum sum, squares;
  clear(sum);
  clear(squares);
  const bool centred = (p.option & SIMT_NORM_CENTRED) != 0;
  if (centred) {
    for_each(p, t, [&](const auto& s) {
      const float v = tile_value(x, p, t, 1, s);
      if (cached) (cache + s.slot + t.first_index)[lane()] = v;
      add(sum, v);
    });
    out.mean = divide_f32(tile_sum(p, sum, parts), out.count);
  }
  if (centred) {
    for_each(p, t, [&](const auto& s) {
      const float distance = (cached ? (cache + s.slot + t.first_index)[lane()] : tile_value(x, p, t, 1, s)) - out.mean;
      add(squares, distance * distance);
    });
  } else {
    for_each(p, t, [&](const auto& s) {
      const float v = tile_value(x, p, t, 1, s);
      if (cached) (cache + s.slot + t.first_index)[lane()] = v;
      add(squares, v * v);
    });
  }
  out.squares = tile_sum(p, squares, parts);
  return out;
}
// Combines the moments of a row's splits. The row's mean is the mean of the splits' means, weighted by
// the lengths of the splits.
SIMT_FN Moments combined_moments(const NormParams& p, const Tile<6>& t, Pointer partials, SIMT_LOCAL Sum* parts) {
  SIMT_GLOBAL const Partial* from = partials_of(partials, p, t);
  const u32 first = first_partial(p, t), step = partial_step(p, t);
  Moments out;
  out.mean = 0.0f;
  out.count = p.count;
  Sum sum, squares;
  clear(sum);
  clear(squares);
  if ((p.option & SIMT_NORM_CENTRED) != 0) {
    for (u32 i = first; i < p.row_splits; i += step) add(sum, from[i].values[0] * from[i].values[2]);
    out.mean = divide_f32(tile_sum(p, sum, parts), out.count);
  }
  for (u32 i = first; i < p.row_splits; i += step) {
    const float distance = from[i].values[0] - out.mean;
    add(squares, from[i].values[1]);
    add(squares, distance * distance * from[i].values[2]);
  }
  out.squares = tile_sum(p, squares, parts);
  return out;
}

SIMT_FN float running_value(const NormParams& p, const Tile<6>& t, Pointer base, int place) {
  const i64 at = p.extra[place - 6] * t.row;
  if ((p.option & SIMT_NORM_WIDE_RUNNING) != 0) return float_of_bits(at_offset<u32>(base, p.offsets[place])[at]);
  return SIMT_T::value(at_offset<SIMT_T::Bits>(base, p.offsets[place])[at]);
}
SIMT_FN void put_running(const NormParams& p, const Tile<6>& t, Pointer base, int place, float value) {
  if (!present(p, place)) return;
  const i64 at = p.extra[place - 6] * t.row;
  if ((p.option & SIMT_NORM_WIDE_RUNNING) != 0) {
    at_offset<u32>(base, p.offsets[place])[at] = bits_of_float(value);
  } else {
    at_offset<SIMT_T::Bits>(base, p.offsets[place])[at] = SIMT_T::bits(value);
  }
}

template <bool cached, bool wide>
SIMT_FN void normalise(const NormParams& p, const Tile<6>& t, Pointer y, Pointer x, Pointer gamma, Pointer beta,
                       float mean, float rstd, SIMT_LOCAL float* cache) {
  const SharedOperand factor = shared_operand<2, 3>(p, gamma, beta, x, 1.0f),
                      offset = shared_operand<3, 2>(p, beta, gamma, x, 0.0f);
  for_each_shared(p, t, [&](const auto& s) {
    const float straight =
        ((cached ? (cache + s.slot + t.first_index)[lane()] : tile_value(x, p, t, 1, s)) - mean) * rstd;
    tile_put<false>(y, p, t, 0, s,
                    straight * tile_shared<2, 3, wide>(factor, p, t, s) + tile_shared<3, 2, wide>(offset, p, t, s));
  });
}

SIMT_KERNEL(norm_forward)
(Pointer y, Pointer x, Pointer gamma, Pointer beta, Pointer mean_out, Pointer rstd_out, Pointer old_mean,
 Pointer old_variance, Pointer new_mean, Pointer new_variance, Pointer partials, NormParams p) {
  SIMT_SHARED(Sum, parts, SIMT_MAX_SUBGROUPS);
  SIMT_SHARED(float, cache, SIMT_CACHE);
  const bool trains = (p.option & SIMT_NORM_TRAINS) != 0;
  for (u32 item = first_item(p); item < p.blocks * p.splits; item += item_step(p)) {
    const Tile<6> t = tile_of(p, item, 1);
    const bool is_cached = t.is_cached && (p.option & SIMT_NORM_REDUCES) != 0;
    Moments moments;
    moments.mean = moments.squares = moments.count = 0.0f;
    if (p.phase == SIMT_PHASE_COMBINE) {
      moments = combined_moments(p, t, partials, parts);
    } else if ((p.option & SIMT_NORM_REDUCES) != 0) {
      moments =
          t.is_cached ? moments_of_split<true>(p, t, x, parts, cache) : moments_of_split<false>(p, t, x, parts, cache);
    }
    const bool has_row = t.index < t.lanes, writes = leads(p, t) && t.split == 0;
    if (p.phase == SIMT_PHASE_PARTIALS) {
      if (leads(p, t)) {
        SIMT_GLOBAL Partial* to = partials_of(partials, p, t) + t.split;
        to->values[0] = moments.mean;
        to->values[1] = moments.squares;
        to->values[2] = moments.count;
      }
      continue;
    }
    float mean = moments.mean, variance = divide_f32(moments.squares, p.count);
    if (writes && present(p, 4)) tile_store<SIMT_ACCESS_ANY, u32>(mean_out, p, t, 4, t.at[4], bits_of_float(mean));
    if ((p.option & SIMT_NORM_BATCH) != 0) {
      const float before = has_row && present(p, 6) ? running_value(p, t, old_mean, 6) : 0.0f,
                  variance_before = has_row && present(p, 7) ? running_value(p, t, old_variance, 7) : 0.0f;
      const float share = p.numbers[1];
      if (writes) {
        put_running(p, t, new_mean, 8, trains ? before * (1.0f - share) + mean * share : before);
        put_running(p, t, new_variance, 9,
                    trains ? variance_before * (1.0f - share) + variance * share : variance_before);
      }
      mean = trains ? mean : before;
      variance = trains ? variance : variance_before;
    }
    const float rstd = rsqrt_f32(variance + p.numbers[0]);
    if (writes && present(p, 5)) tile_store<SIMT_ACCESS_ANY, u32>(rstd_out, p, t, 5, t.at[5], bits_of_float(rstd));
    if (!present(p, 0)) continue;
    const bool wide = (present(p, 2) && is_wide(p, 2)) || (present(p, 3) && is_wide(p, 3));
    if (is_cached && wide) {
      normalise<true, true>(p, t, y, x, gamma, beta, mean, rstd, cache);
    } else if (is_cached) {
      normalise<true, false>(p, t, y, x, gamma, beta, mean, rstd, cache);
    } else if (wide) {
      normalise<false, true>(p, t, y, x, gamma, beta, mean, rstd, cache);
    } else {
      normalise<false, false>(p, t, y, x, gamma, beta, mean, rstd, cache);
    }
  }
}

// The kernel for rows in registers.
typedef TeamParams<11, 6> NormTeams;

// Replaces values with their distances from `mean`, and values past the end of the row with 0.
template <bool packed>
SIMT_FN void centre(const TeamRow<6>& t, u32 first, float mean, TeamValues& v) {
  SIMT_UNROLL for (u32 i = 0; i < SIMT_TEAM_VALUES; ++i) v.at[i] -= mean;
  team_clear_rest<packed>(t, first, v);
}
SIMT_FN float sum_of_squares(const TeamValues& v) {
  TeamValues squares;
  SIMT_UNROLL for (u32 i = 0; i < SIMT_TEAM_VALUES; ++i) squares.at[i] = v.at[i] * v.at[i];
  return sum_of(squares);
}
// Adds the moments of this thread's values of a part to `all`, its moments of earlier parts. If `centred` is true, also
// replaces the values with their distances from their mean.
template <bool packed>
SIMT_FN void add_moments(const TeamRow<6>& t, u32 first, bool centred, TeamValues& v, Moments& all) {
  float mean = 0.0f;
  if (centred) {
    mean = sum_of(v) * (1.0f / SIMT_TEAM_VALUES);
    centre<packed>(t, first, mean, v);
  }
  const float squares = sum_of_squares(v), count = all.count + (float)SIMT_TEAM_VALUES;
  const float distance = mean - all.mean, share = (float)SIMT_TEAM_VALUES / count;
  all.squares += squares + distance * distance * all.count * share;
  all.mean += distance * share;
  all.count = count;
}

template <bool packed>
SIMT_FN void norm_row(const NormTeams& p, const TeamRow<6>& t, Pointer y, Pointer x, Pointer gamma, Pointer beta,
                      Pointer mean_out, Pointer rstd_out, SIMT_LOCAL float* parts) {
  SIMT_GLOBAL const SIMT_T::Bits* from = team_place<SIMT_T::Bits>(x, p, t, 1);
  SIMT_GLOBAL SIMT_T::Bits* to = team_place<SIMT_T::Bits>(y, p, t, 0);
  const bool centred = (p.rows.option & SIMT_NORM_CENTRED) != 0;
  const u32 part = team_part(t);
  TeamValues v;
  Moments own;
  own.mean = own.squares = own.count = 0.0f;
  u32 first = 0;
  for (; first + part < p.extent; first += part) {
    team_load<packed>(from, t, first, 0.0f, v);
    add_moments<packed>(t, first, centred, v, own);
  }
  team_load<packed>(from, t, first, 0.0f, v);
  float mean = 0.0f;
  if (centred) mean = divide_f32(team_sum(t.size, sum_of(v) + own.mean * own.count, parts), p.rows.count);
  centre<packed>(t, first, mean, v);
  const float distance = own.mean - mean;
  const float squares = sum_of_squares(v) + (own.squares + distance * distance * own.count);
  const float variance = divide_f32(team_sum(t.size, squares, parts + SIMT_MAX_SUBGROUPS), p.rows.count);
  const float rstd = rsqrt_f32(variance + p.rows.numbers[0]);
  if (t.index == 0u && t.is_row) {
    if (present(p.rows, 4)) team_place<u32>(mean_out, p, t, 4)[0] = bits_of_float(mean);
    if (present(p.rows, 5)) team_place<u32>(rstd_out, p, t, 5)[0] = bits_of_float(rstd);
  }
  if (!present(p.rows, 0)) return;
  for (;;) {
    SIMT_UNROLL for (u32 i = 0; i < SIMT_TEAM_VALUES; ++i) v.at[i] *= rstd;
    if (present(p.rows, 2))
      for_team_shared<packed>(p, t, gamma, 2, first, [&](u32 i, float factor) { v.at[i] *= factor; });
    if (present(p.rows, 3)) for_team_shared<packed>(p, t, beta, 3, first, [&](u32 i, float term) { v.at[i] += term; });
    team_store<packed>(to, t, first, v);
    if (first == 0u) break;
    first -= part;
    team_load<packed>(from, t, first, 0.0f, v);
    centre<packed>(t, first, mean, v);
  }
}
SIMT_KERNEL(norm_teams)
(Pointer y, Pointer x, Pointer gamma, Pointer beta, Pointer mean_out, Pointer rstd_out, Pointer, Pointer, Pointer,
 Pointer, Pointer, NormTeams p) {
  SIMT_SHARED(float, parts, SIMT_TEAM_PARTS);
  for_team_rows(p, [&](const TeamRow<6>& t) { norm_row<true>(p, t, y, x, gamma, beta, mean_out, rstd_out, parts); });
}
SIMT_KERNEL(norm_teams_unaligned)
(Pointer y, Pointer x, Pointer gamma, Pointer beta, Pointer mean_out, Pointer rstd_out, Pointer, Pointer, Pointer,
 Pointer, Pointer, NormTeams p) {
  SIMT_SHARED(float, parts, SIMT_TEAM_PARTS);
  for_team_rows(p, [&](const TeamRow<6>& t) { norm_row<false>(p, t, y, x, gamma, beta, mean_out, rstd_out, parts); });
}
