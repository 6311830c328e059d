// SPDX-License-Identifier: Apache-2.0
// The kernels of softmax, log_softmax and softmax_bwd.
#include "rows.h"

// A row's maximum, and the sum of e^(x - maximum). If the maximum is -inf, the sum is that of e^x. The
// sum is therefore NaN if and only if the row contains NaN or +inf.
struct Softmax {
  float greatest, sum;
};

typedef TileParams<3, 2> SoftmaxParams;
// Returns the results of a split. If `cached` is true, also stores the elements in the cache: x with
// option 1, and e^(x - maximum) otherwise.
template <bool cached>
SIMT_FN Softmax softmax_of_split(const SoftmaxParams& p, const Tile<2>& t, Pointer x, SIMT_LOCAL Sum* parts,
                                 SIMT_LOCAL float* cache) {
  Softmax out;
  float greatest = -infinity();
  for_each(p, t, [&](const auto& s) {
    const float v = tile_value(x, p, t, 1, s);
    if (cached) (cache + s.slot + t.first_index)[lane()] = v;
    greatest = v > greatest ? v : greatest;
  });
  out.greatest = tile_max(p, greatest, parts);
  const float shift = finite_shift(out.greatest);
  Sum sum;
  clear(sum);
  for_each(p, t, [&](const auto& s) {
    const float e = exp_f32((cached ? (cache + s.slot + t.first_index)[lane()] : tile_value(x, p, t, 1, s)) - shift);
    if (cached && p.option == 0) (cache + s.slot + t.first_index)[lane()] = e;
    add(sum, e);
  });
  out.sum = tile_sum(p, sum, parts);
  return out;
}
SIMT_FN Softmax combined_softmax(const SoftmaxParams& p, const Tile<2>& t, Pointer partials, SIMT_LOCAL Sum* parts) {
  SIMT_GLOBAL const Partial* from = partials_of(partials, p, t);
  const u32 first = first_partial(p, t), step = partial_step(p, t);
  Softmax out;
  float greatest = -infinity();
  for (u32 i = first; i < p.row_splits; i += step) {
    greatest = from[i].values[0] > greatest ? from[i].values[0] : greatest;
  }
  out.greatest = tile_max(p, greatest, parts);
  const float shift = finite_shift(out.greatest);
  Sum sum;
  clear(sum);
  for (u32 i = first; i < p.row_splits; i += step) add(sum, from[i].values[1] * exp_f32(from[i].values[0] - shift));
  out.sum = tile_sum(p, sum, parts);
  return out;
}

template <bool cached, bool wide>
SIMT_FN void put_softmax(const SoftmaxParams& p, const Tile<2>& t, Pointer out, Pointer x, Softmax row,
                         SIMT_LOCAL float* cache) {
  const bool none = row.greatest == -infinity();
  const float shift = row.greatest;
  if (p.option == 0) {
    const float scale = none ? not_a_number() : 1.0f / row.sum;
    for_each(p, t, [&](const auto& s) {
      const float e = cached ? (cache + s.slot + t.first_index)[lane()] : exp_f32(tile_value(x, p, t, 1, s) - shift);
      tile_put<wide>(out, p, t, 0, s, e * scale);
    });
  } else {
    const float logarithm = none ? not_a_number() : log_f32(row.sum);
    for_each(p, t, [&](const auto& s) {
      const float v = cached ? (cache + s.slot + t.first_index)[lane()] : tile_value(x, p, t, 1, s);
      tile_put<wide>(out, p, t, 0, s, (v - shift) - logarithm);
    });
  }
}

// Operands: out and x. With option 1, the result is that of log_softmax.
SIMT_KERNEL(softmax)(Pointer out, Pointer x, Pointer partials, SoftmaxParams p) {
  SIMT_SHARED(Sum, parts, SIMT_MAX_SUBGROUPS);
  SIMT_SHARED(float, cache, SIMT_CACHE);
  for (u32 item = first_item(p); item < p.blocks * p.splits; item += item_step(p)) {
    const Tile<2> t = tile_of(p, item, 1);
    Softmax row;
    if (p.phase == SIMT_PHASE_COMBINE) {
      row = combined_softmax(p, t, partials, parts);
    } else if (t.is_cached) {
      row = softmax_of_split<true>(p, t, x, parts, cache);
    } else {
      row = softmax_of_split<false>(p, t, x, parts, cache);
    }
    if (p.phase == SIMT_PHASE_PARTIALS) {
      if (leads(p, t)) {
        SIMT_GLOBAL Partial* to = partials_of(partials, p, t) + t.split;
        to->values[0] = row.greatest;
        to->values[1] = row.sum;
      }
    } else if (t.is_cached && is_wide(p, 0)) {
      put_softmax<true, true>(p, t, out, x, row, cache);
    } else if (t.is_cached) {
      put_softmax<true, false>(p, t, out, x, row, cache);
    } else if (is_wide(p, 0)) {
      put_softmax<false, true>(p, t, out, x, row, cache);
    } else {
      put_softmax<false, false>(p, t, out, x, row, cache);
    }
  }
}

// Operands: dx, dy and y. With option 1, y is the result of log_softmax.
SIMT_KERNEL(softmax_bwd)(Pointer dx, Pointer dy, Pointer y, Pointer partials, TileParams<4, 3> p) {
  SIMT_SHARED(Sum, parts, SIMT_MAX_SUBGROUPS);
  for (u32 item = first_item(p); item < p.blocks * p.splits; item += item_step(p)) {
    const Tile<3> t = tile_of(p, item, 1);
    Sum sum;
    clear(sum);
    if (p.phase == SIMT_PHASE_COMBINE) {
      SIMT_GLOBAL const Partial* from = partials_of(partials, p, t);
      for (u32 i = first_partial(p, t); i < p.row_splits; i += partial_step(p, t)) add(sum, from[i].values[0]);
    } else if (p.option == 0) {
      for_each(p, t, [&](const auto& s) { add(sum, tile_value(dy, p, t, 1, s) * tile_value(y, p, t, 2, s)); });
    } else {
      for_each(p, t, [&](const auto& s) { add(sum, tile_value(dy, p, t, 1, s)); });
    }
    const float all = tile_sum(p, sum, parts);
    if (p.phase == SIMT_PHASE_PARTIALS) {
      if (leads(p, t)) partials_of(partials, p, t)[t.split].values[0] = all;
      continue;
    }
    if (p.option == 0) {
      for_each(p, t, [&](const auto& s) {
        const float each = tile_value(y, p, t, 2, s);
        tile_put<false>(dx, p, t, 0, s, each * (tile_value(dy, p, t, 1, s) - all));
      });
    } else {
      for_each(p, t, [&](const auto& s) {
        const float each = exp_f32(tile_value(y, p, t, 2, s));
        tile_put<false>(dx, p, t, 0, s, tile_value(dy, p, t, 1, s) - each * all);
      });
    }
  }
}

// The kernels for rows in registers. The powers and their sums have the factor 2^64 of scaled_exp.
typedef TeamParams<3, 2> SoftmaxTeams;

// Returns the sum of the powers scaled_exp(value - shift). If `keeps` is true, also replaces the values with the
// powers.
SIMT_FN float sum_of_powers(TeamValues& v, float shift, bool keeps) {
  TeamValues powers;
  SIMT_UNROLL for (u32 i = 0; i < SIMT_TEAM_VALUES; ++i) {
    powers.at[i] = scaled_exp(v.at[i] - shift);
    v.at[i] = keeps ? powers.at[i] : v.at[i];
  }
  return sum_of(powers);
}
// The numbers that give a row's results: power * scale for softmax, and x - shift - logarithm for log_softmax.
struct SoftmaxScale {
  float shift, scale, logarithm;
};
SIMT_FN SoftmaxScale softmax_scale(float greatest, float sum, u32 option) {
  const bool none = greatest == -infinity();
  SoftmaxScale out;
  out.shift = finite_shift(greatest);
  out.scale = none ? not_a_number() : 1.0f / sum;
  out.logarithm = option == 0u ? 0.0f : none ? not_a_number() : log_f32(sum * SIMT_EXP_SCALE);
  return out;
}

template <bool packed>
SIMT_FN void softmax_row(const SoftmaxTeams& p, const TeamRow<2>& t, Pointer out, Pointer x, SIMT_LOCAL float* parts) {
  SIMT_GLOBAL const SIMT_T::Bits* from = team_place<SIMT_T::Bits>(x, p, t, 1);
  SIMT_GLOBAL SIMT_T::Bits* to = team_place<SIMT_T::Bits>(out, p, t, 0);
  const u32 part = team_part(t);
  const bool powers = p.rows.option == 0u;
  TeamValues v;
  float greatest = -infinity();
  Sum sum;
  clear(sum);
  u32 first = 0;
  for (; first + part < p.extent; first += part) {
    team_load<packed>(from, t, first, -infinity(), v);
    const float before = greatest;
    greatest = greatest_of(v, greatest);
    if (greatest != before) change_maximum(sum, before, greatest);
    add(sum, sum_of_powers(v, finite_shift(greatest), false));
  }
  team_load<packed>(from, t, first, -infinity(), v);
  const float before = greatest;
  greatest = team_max(t.size, greatest_of(v, greatest), parts);
  if (first != 0u) change_maximum(sum, before, greatest);
  add(sum, sum_of_powers(v, finite_shift(greatest), powers));
  const SoftmaxScale row =
      softmax_scale(greatest, team_sum(t.size, total(sum), parts + SIMT_MAX_SUBGROUPS), p.rows.option);
  for (;;) {
    SIMT_UNROLL for (u32 i = 0; i < SIMT_TEAM_VALUES; ++i) {
      v.at[i] = powers ? v.at[i] * row.scale : (v.at[i] - row.shift) - row.logarithm;
    }
    team_store<packed>(to, t, first, v);
    if (first == 0u) break;
    first -= part;
    team_load<packed>(from, t, first, -infinity(), v);
    if (powers) sum_of_powers(v, row.shift, true);
  }
}
template <bool packed>
SIMT_FN void softmax_rows(Pointer out, Pointer x, const SoftmaxTeams& p, SIMT_LOCAL float* parts) {
  for_team_rows(p, [&](const TeamRow<2>& t) { softmax_row<packed>(p, t, out, x, parts); });
}
SIMT_KERNEL(softmax_teams)(Pointer out, Pointer x, Pointer, SoftmaxTeams p) {
  SIMT_SHARED(float, parts, SIMT_TEAM_PARTS);
  softmax_rows<true>(out, x, p, parts);
}
SIMT_KERNEL(softmax_teams_unaligned)(Pointer out, Pointer x, Pointer, SoftmaxTeams p) {
  SIMT_SHARED(float, parts, SIMT_TEAM_PARTS);
  softmax_rows<false>(out, x, p, parts);
}

enum { kColumnValues = SIMT_COLUMN_VALUES / SIMT_COLUMNS };  // elements of each row that a thread keeps in registers
SIMT_FN void softmax_columns_of(const SoftmaxTeams& p, const TeamColumns<2>& t, Pointer out, Pointer x,
                                SIMT_LOCAL float* parts) {
  SIMT_GLOBAL const SIMT_T::Bits* from = team_place<SIMT_T::Bits>(x, p, t, 1);
  SIMT_GLOBAL SIMT_T::Bits* to = team_place<SIMT_T::Bits>(out, p, t, 0);
  const u32 part = t.size * kColumnValues;
  const bool powers = p.rows.option == 0u;
  ColumnValues<kColumnValues> v;
  float greatest[SIMT_COLUMNS];
  Sum sum[SIMT_COLUMNS];
  SIMT_UNROLL for (u32 c = 0; c < SIMT_COLUMNS; ++c) {
    greatest[c] = -infinity();
    clear(sum[c]);
  }
  u32 first = 0;
  for (; first + part < p.extent; first += part) {
    columns_load(from, p.rows.steps[1], t, first, -infinity(), v);
    SIMT_UNROLL for (u32 c = 0; c < SIMT_COLUMNS; ++c) {
      const float before = greatest[c];
      SIMT_UNROLL for (u32 i = 0; i < kColumnValues; ++i) greatest[c] = greater(greatest[c], v.at[i][c]);
      change_maximum(sum[c], before, greatest[c]);
      float powers_sum = 0.0f;
      SIMT_UNROLL for (u32 i = 0; i < kColumnValues; ++i) {
        powers_sum += scaled_exp(v.at[i][c] - finite_shift(greatest[c]));
      }
      add(sum[c], powers_sum);
    }
  }
  columns_load(from, p.rows.steps[1], t, first, -infinity(), v);
  SoftmaxScale row[SIMT_COLUMNS];
  SIMT_UNROLL for (u32 c = 0; c < SIMT_COLUMNS; ++c) {
    const float before = greatest[c];
    SIMT_UNROLL for (u32 i = 0; i < kColumnValues; ++i) greatest[c] = greater(greatest[c], v.at[i][c]);
    greatest[c] = columns_max(t, greatest[c], parts + c * SIMT_TEAM_THREADS);
    if (first != 0u) change_maximum(sum[c], before, greatest[c]);
    const float shift = finite_shift(greatest[c]);
    float powers_sum = 0.0f;
    SIMT_UNROLL for (u32 i = 0; i < kColumnValues; ++i) {
      const float e = scaled_exp(v.at[i][c] - shift);
      if (powers) v.at[i][c] = e;
      powers_sum += e;
    }
    add(sum[c], powers_sum);
  }
  group_barrier();
  SIMT_UNROLL for (u32 c = 0; c < SIMT_COLUMNS; ++c) {
    row[c] = softmax_scale(greatest[c], columns_sum(t, total(sum[c]), parts + c * SIMT_TEAM_THREADS), p.rows.option);
  }
  group_barrier();
  for (;;) {
    SIMT_UNROLL for (u32 c = 0; c < SIMT_COLUMNS; ++c) {
      SIMT_UNROLL for (u32 i = 0; i < kColumnValues; ++i) {
        v.at[i][c] = powers ? v.at[i][c] * row[c].scale : (v.at[i][c] - row[c].shift) - row[c].logarithm;
      }
    }
    columns_store(to, p.rows.steps[0], t, first, v);
    if (first == 0u) break;
    first -= part;
    columns_load(from, p.rows.steps[1], t, first, -infinity(), v);
    if (!powers) continue;
    SIMT_UNROLL for (u32 c = 0; c < SIMT_COLUMNS; ++c) {
      SIMT_UNROLL for (u32 i = 0; i < kColumnValues; ++i) v.at[i][c] = scaled_exp(v.at[i][c] - row[c].shift);
    }
  }
}
SIMT_KERNEL(softmax_columns)(Pointer out, Pointer x, Pointer, SoftmaxTeams p) {
  SIMT_SHARED(float, parts, SIMT_COLUMNS* SIMT_TEAM_THREADS);
  for (u32 block = group_id(); block < p.rows.blocks; block += group_count()) {
    softmax_columns_of(p, team_columns(p, block), out, x, parts);
  }
}

// The kernel for rows in registers.
typedef TeamParams<4, 3> SoftmaxBwdTeams;

SIMT_FN float sum_of_products(const TeamValues& a, const TeamValues& b) {
  TeamValues products;
  SIMT_UNROLL for (u32 i = 0; i < SIMT_TEAM_VALUES; ++i) products.at[i] = a.at[i] * b.at[i];
  return sum_of(products);
}
template <bool packed>
SIMT_FN void softmax_bwd_row(const SoftmaxBwdTeams& p, const TeamRow<3>& t, Pointer dx, Pointer dy, Pointer y,
                             SIMT_LOCAL float* parts) {
  SIMT_GLOBAL const SIMT_T::Bits *of_dy = team_place<SIMT_T::Bits>(dy, p, t, 1),
                                 *of_y = team_place<SIMT_T::Bits>(y, p, t, 2);
  SIMT_GLOBAL SIMT_T::Bits* to = team_place<SIMT_T::Bits>(dx, p, t, 0);
  const u32 part = team_part(t);
  TeamValues a, b;
  Sum sum;
  clear(sum);
  u32 first = 0;
  for (;; first += part) {
    team_load<packed>(of_dy, t, first, 0.0f, a);
    team_load<packed>(of_y, t, first, 0.0f, b);
    add(sum, p.rows.option == 0u ? sum_of_products(a, b) : sum_of(a));
    if (first + part >= p.extent) break;
  }
  const float all = team_sum(t.size, total(sum), parts);
  for (;;) {
    SIMT_UNROLL for (u32 i = 0; i < SIMT_TEAM_VALUES; ++i) {
      a.at[i] = p.rows.option == 0u ? b.at[i] * (a.at[i] - all) : a.at[i] - exp_f32(b.at[i]) * all;
    }
    team_store<packed>(to, t, first, a);
    if (first == 0u) break;
    first -= part;
    team_load<packed>(of_dy, t, first, 0.0f, a);
    team_load<packed>(of_y, t, first, 0.0f, b);
  }
}
template <bool packed>
SIMT_FN void softmax_bwd_rows(Pointer dx, Pointer dy, Pointer y, const SoftmaxBwdTeams& p, SIMT_LOCAL float* parts) {
  u32 turn = 0;
  for_team_rows(p, [&](const TeamRow<3>& t) {
    softmax_bwd_row<packed>(p, t, dx, dy, y, parts + (turn & 1u) * SIMT_MAX_SUBGROUPS);
    ++turn;
  });
}
SIMT_KERNEL(softmax_bwd_teams)(Pointer dx, Pointer dy, Pointer y, Pointer, SoftmaxBwdTeams p) {
  SIMT_SHARED(float, parts, SIMT_TEAM_PARTS);
  softmax_bwd_rows<true>(dx, dy, y, p, parts);
}
SIMT_KERNEL(softmax_bwd_teams_unaligned)(Pointer dx, Pointer dy, Pointer y, Pointer, SoftmaxBwdTeams p) {
  SIMT_SHARED(float, parts, SIMT_TEAM_PARTS);
  softmax_bwd_rows<false>(dx, dy, y, p, parts);
}
