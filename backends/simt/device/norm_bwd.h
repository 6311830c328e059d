// SPDX-License-Identifier: Apache-2.0
// norm_bwd. Let s = (x - mean) * rstd and g = dy * gamma. Then
// dx = rstd * (g - mean(g) - s * mean(g * s)), where rms_norm omits mean(g). dgamma is the sum of
// dy * s, and dbeta is the sum of dy, over the dimensions along which parameters are broadcast.
//
// Operands of norm_bwd: dx, x, dy, gamma, mean and rstd. Operands of norm_bwd_parameters: dgamma, x,
// dy, dbeta, mean and rstd. mean and rstd are f32.
#include "rows.h"

#include "norm_params.h"

typedef TileParams<7, 6> NormBwdParams;

struct Terms {
  float g, s;
};
template <class S>
SIMT_FN Terms terms_of(const NormBwdParams& p, const Tile<6>& t, const S& s, Pointer x, Pointer dy, float mean,
                       float rstd) {
  Terms out;
  out.s = (tile_value(x, p, t, 1, s) - mean) * rstd;
  out.g = tile_value(dy, p, t, 2, s);
  return out;
}
SIMT_FN float statistic(const NormBwdParams& p, const Tile<6>& t, Pointer base, int k) {
  return present(p, k) ? float_of_bits(tile_load<SIMT_ACCESS_ANY, u32>(base, p, t, k, t.at[k])) : 0.0f;
}
SIMT_FN void add_partials(const NormBwdParams& p, const Tile<6>& t, Pointer partials, Sum& a, Sum& b) {
  SIMT_GLOBAL const Partial* from = partials_of(partials, p, t);
  for (u32 i = first_partial(p, t); i < p.row_splits; i += partial_step(p, t)) {
    add(a, from[i].values[0]);
    add(b, from[i].values[1]);
  }
}
SIMT_FN void put_partial(const NormBwdParams& p, const Tile<6>& t, Pointer partials, float a, float b) {
  if (!leads(p, t)) return;
  SIMT_GLOBAL Partial* to = partials_of(partials, p, t) + t.split;
  to->values[0] = a;
  to->values[1] = b;
}

// Adds g and g * s of each element of a split to `of_g` and `of_gs`. If `cached` is true, also stores g and s in the
// cache.
template <bool cached, bool wide>
SIMT_FN void add_terms(const NormBwdParams& p, const Tile<6>& t, Pointer x, Pointer dy, const SharedOperand& gamma,
                       float mean, float rstd, Sum& of_g, Sum& of_gs, SIMT_LOCAL float* cache) {
  for_each_shared(p, t, [&](const auto& s) {
    Terms each = terms_of(p, t, s, x, dy, mean, rstd);
    each.g *= tile_shared<3, 3, wide>(gamma, p, t, s);
    if (cached) {
      cache[2 * s.slot + t.index] = each.g;
      cache[2 * s.slot + t.size + t.index] = each.s;
    }
    add(of_g, each.g);
    add(of_gs, each.g * each.s);
  });
}
template <bool wide>
SIMT_FN void put_gradient(const NormBwdParams& p, const Tile<6>& t, Pointer dx, Pointer x, Pointer dy,
                          const SharedOperand& gamma, float mean, float rstd, float mean_g, float mean_gs) {
  for_each_shared(p, t, [&](const auto& s) {
    const Terms each = terms_of(p, t, s, x, dy, mean, rstd);
    const float g = each.g * tile_shared<3, 3, wide>(gamma, p, t, s);
    tile_put<false>(dx, p, t, 0, s, rstd * (g - mean_g - each.s * mean_gs));
  });
}

// `option` is 1 if the norm subtracts the mean.
SIMT_KERNEL(norm_bwd)
(Pointer dx, Pointer x, Pointer dy, Pointer gamma_base, Pointer means, Pointer rstds, Pointer partials,
 NormBwdParams p) {
  SIMT_SHARED(Sum, parts, SIMT_MAX_SUBGROUPS);
  SIMT_SHARED(float, cache, SIMT_CACHE);
  const SharedOperand gamma = shared_operand<3, 3>(p, gamma_base, gamma_base, x, 1.0f);
  const bool wide = present(p, 3) && is_wide(p, 3);
  for (u32 item = first_item(p); item < p.blocks * p.splits; item += item_step(p)) {
    const Tile<6> t = tile_of(p, item, 2);
    const bool has_row = t.index < t.lanes;
    const float mean = has_row ? statistic(p, t, means, 4) : 0.0f, rstd = has_row ? statistic(p, t, rstds, 5) : 0.0f;
    Sum of_g, of_gs;
    clear(of_g);
    clear(of_gs);
    if (p.phase == SIMT_PHASE_COMBINE) {
      add_partials(p, t, partials, of_g, of_gs);
    } else if (t.is_cached && wide) {
      add_terms<true, true>(p, t, x, dy, gamma, mean, rstd, of_g, of_gs, cache);
    } else if (t.is_cached) {
      add_terms<true, false>(p, t, x, dy, gamma, mean, rstd, of_g, of_gs, cache);
    } else if (wide) {
      add_terms<false, true>(p, t, x, dy, gamma, mean, rstd, of_g, of_gs, cache);
    } else {
      add_terms<false, false>(p, t, x, dy, gamma, mean, rstd, of_g, of_gs, cache);
    }
    const float sum_g = tile_sum(p, of_g, parts), sum_gs = tile_sum(p, of_gs, parts);
    if (p.phase == SIMT_PHASE_PARTIALS) {
      put_partial(p, t, partials, sum_g, sum_gs);
      continue;
    }
    const float mean_g = p.option != 0 ? divide_f32(sum_g, p.count) : 0.0f, mean_gs = divide_f32(sum_gs, p.count);
    if (t.is_cached) {
      for_each(p, t, [&](const auto& s) {
        const float g = cache[2 * s.slot + t.index], straight = cache[2 * s.slot + t.size + t.index];
        tile_put<false>(dx, p, t, 0, s, rstd * (g - mean_g - straight * mean_gs));
      });
    } else if (wide) {
      put_gradient<true>(p, t, dx, x, dy, gamma, mean, rstd, mean_g, mean_gs);
    } else {
      put_gradient<false>(p, t, dx, x, dy, gamma, mean, rstd, mean_g, mean_gs);
    }
  }
}

SIMT_KERNEL(norm_bwd_parameters)
(Pointer dgamma, Pointer x, Pointer dy, Pointer dbeta, Pointer means, Pointer rstds, Pointer partials,
 NormBwdParams p) {
  SIMT_SHARED(Sum, parts, SIMT_MAX_SUBGROUPS);
  const SharedOperand mean_of = shared_operand<4, 5>(p, means, rstds, x, 0.0f),
                      rstd_of = shared_operand<5, 5>(p, rstds, rstds, x, 0.0f);
  for (u32 item = first_item(p); item < p.blocks * p.splits; item += item_step(p)) {
    const Tile<6> t = tile_of(p, item, 1);
    Sum of_dy, of_product;
    clear(of_dy);
    clear(of_product);
    if (p.phase == SIMT_PHASE_COMBINE) {
      add_partials(p, t, partials, of_dy, of_product);
    } else {
      for_each_shared(p, t, [&](const auto& s) {
        const float mean = tile_shared<4, 5, true>(mean_of, p, t, s), rstd = tile_shared<5, 5, true>(rstd_of, p, t, s);
        const Terms each = terms_of(p, t, s, x, dy, mean, rstd);
        add(of_dy, each.g);
        add(of_product, each.g * each.s);
      });
    }
    const float sum = tile_sum(p, of_dy, parts), product = tile_sum(p, of_product, parts);
    if (p.phase == SIMT_PHASE_PARTIALS) {
      put_partial(p, t, partials, sum, product);
    } else if (leads(p, t)) {
      if (present(p, 0)) row_put(dgamma, p, t, 0, product);
      if (present(p, 3)) row_put(dbeta, p, t, 3, sum);
    }
  }
}

// The kernel for rows in registers.
typedef TeamParams<7, 6> NormBwdTeams;

// Computes g and s of a part of a row. Values past the end of the row are 0.
template <bool packed>
SIMT_FN void load_terms(const NormBwdTeams& p, const TeamRow<6>& t, Pointer x, Pointer dy, Pointer gamma, u32 first,
                        float mean, float rstd, TeamValues& g, TeamValues& s) {
  team_load<packed>(team_place<SIMT_T::Bits>(x, p, t, 1), t, first, 0.0f, s);
  team_load<packed>(team_place<SIMT_T::Bits>(dy, p, t, 2), t, first, 0.0f, g);
  SIMT_UNROLL for (u32 i = 0; i < SIMT_TEAM_VALUES; ++i) s.at[i] = (s.at[i] - mean) * rstd;
  team_clear_rest<packed>(t, first, s);
  if (present(p.rows, 3))
    for_team_shared<packed>(p, t, gamma, 3, first, [&](u32 i, float factor) { g.at[i] *= factor; });
}
template <bool packed>
SIMT_FN void norm_bwd_row(const NormBwdTeams& p, const TeamRow<6>& t, Pointer dx, Pointer x, Pointer dy, Pointer gamma,
                          Pointer means, Pointer rstds, SIMT_LOCAL float* parts) {
  SIMT_GLOBAL SIMT_T::Bits* to = team_place<SIMT_T::Bits>(dx, p, t, 0);
  const float mean = present(p.rows, 4) ? float_of_bits(team_place<u32>(means, p, t, 4)[0]) : 0.0f,
              rstd = float_of_bits(team_place<u32>(rstds, p, t, 5)[0]);
  const u32 part = team_part(t);
  TeamValues g, s;
  Sum of_g, of_gs;
  clear(of_g);
  clear(of_gs);
  u32 first = 0;
  for (;; first += part) {
    load_terms<packed>(p, t, x, dy, gamma, first, mean, rstd, g, s);
    add(of_g, sum_of(g));
    TeamValues products;
    SIMT_UNROLL for (u32 i = 0; i < SIMT_TEAM_VALUES; ++i) products.at[i] = g.at[i] * s.at[i];
    add(of_gs, sum_of(products));
    if (first + part >= p.extent) break;
  }
  const float sum_g = team_sum(t.size, total(of_g), parts),
              sum_gs = team_sum(t.size, total(of_gs), parts + SIMT_MAX_SUBGROUPS);
  const float mean_g = p.rows.option != 0 ? divide_f32(sum_g, p.rows.count) : 0.0f,
              mean_gs = divide_f32(sum_gs, p.rows.count);
  for (;;) {
    SIMT_UNROLL for (u32 i = 0; i < SIMT_TEAM_VALUES; ++i) g.at[i] = rstd * (g.at[i] - mean_g - s.at[i] * mean_gs);
    team_store<packed>(to, t, first, g);
    if (first == 0u) break;
    first -= part;
    load_terms<packed>(p, t, x, dy, gamma, first, mean, rstd, g, s);
  }
}
SIMT_KERNEL(norm_bwd_teams)
(Pointer dx, Pointer x, Pointer dy, Pointer gamma, Pointer means, Pointer rstds, Pointer, NormBwdTeams p) {
  SIMT_SHARED(float, parts, SIMT_TEAM_PARTS);
  for_team_rows(p, [&](const TeamRow<6>& t) { norm_bwd_row<true>(p, t, dx, x, dy, gamma, means, rstds, parts); });
}
SIMT_KERNEL(norm_bwd_teams_unaligned)
(Pointer dx, Pointer x, Pointer dy, Pointer gamma, Pointer means, Pointer rstds, Pointer, NormBwdTeams p) {
  SIMT_SHARED(float, parts, SIMT_TEAM_PARTS);
  for_team_rows(p, [&](const TeamRow<6>& t) { norm_bwd_row<false>(p, t, dx, x, dy, gamma, means, rstds, parts); });
}

// dgamma and dbeta, if x and dy have the elements of adjacent parameters next to each other in memory. A group adds a
// split of the elements of p.team * SIMT_COLUMNS parameters.
enum { kTermsAtOnce = 16 };  // elements of each operand that a thread loads before it adds them
SIMT_FN void norm_bwd_columns_of(const NormBwdTeams& p, const TeamColumns<6>& t, Pointer dgamma, Pointer x, Pointer dy,
                                 Pointer dbeta, Pointer means, Pointer rstds, Pointer partials, u32 split,
                                 SIMT_LOCAL float* parts) {
  SIMT_GLOBAL const SIMT_T::Bits *of_x = team_place<SIMT_T::Bits>(x, p, t, 1),
                                 *of_dy = team_place<SIMT_T::Bits>(dy, p, t, 2);
  const u32 last = smaller(p.extent, (split + 1u) * p.rows.split_chunks);
  TeamColumns<6> within = t;
  within.count = t.count != 0u ? last : 0u;
  Sum sums[SIMT_COLUMNS], products[SIMT_COLUMNS];
  SIMT_UNROLL for (u32 c = 0; c < SIMT_COLUMNS; ++c) {
    clear(sums[c]);
    clear(products[c]);
  }
  for (u32 first = split * p.rows.split_chunks; first < last; first += t.size * kTermsAtOnce) {
    ColumnValues<kTermsAtOnce> s, g;
    columns_load(of_x, p.rows.steps[1], within, first, 0.0f, s);
    columns_load(of_dy, p.rows.steps[2], within, first, 0.0f, g);
    float sum[SIMT_COLUMNS], product[SIMT_COLUMNS];
    SIMT_UNROLL for (u32 c = 0; c < SIMT_COLUMNS; ++c) sum[c] = product[c] = 0.0f;
    SIMT_UNROLL for (u32 j = 0; j < kTermsAtOnce; ++j) {
      const u32 element = smaller(first + j * t.size + t.index, last - 1u);
      const float mean =
                      present(p.rows, 4)
                          ? float_of_bits(at_offset<u32>(means, p.rows.offsets[4])[t.at[4] + p.rows.steps[4] * element])
                          : 0.0f,
                  rstd = float_of_bits(at_offset<u32>(rstds, p.rows.offsets[5])[t.at[5] + p.rows.steps[5] * element]);
      const bool inside = first + j * t.size + t.index < within.count;
      SIMT_UNROLL for (u32 c = 0; c < SIMT_COLUMNS; ++c) {
        sum[c] += g.at[j][c];
        product[c] += inside ? g.at[j][c] * ((s.at[j][c] - mean) * rstd) : 0.0f;
      }
    }
    SIMT_UNROLL for (u32 c = 0; c < SIMT_COLUMNS; ++c) {
      add(sums[c], sum[c]);
      add(products[c], product[c]);
    }
  }
  float all[SIMT_COLUMNS], all_products[SIMT_COLUMNS];
  SIMT_UNROLL for (u32 c = 0; c < SIMT_COLUMNS; ++c) {
    all[c] = columns_sum(t, total(sums[c]), parts);
    group_barrier();
    all_products[c] = columns_sum(t, total(products[c]), parts);
    group_barrier();
  }
  if (t.index != 0u || t.count == 0u) return;
  SIMT_UNROLL for (u32 c = 0; c < SIMT_COLUMNS; ++c) {
    if (p.rows.splits != 1u) {
      SIMT_GLOBAL Partial* to =
          at_offset<Partial>(partials, p.rows.offsets[6]) + (u64)(t.first + c) * p.rows.row_splits + split;
      to->values[0] = all[c];
      to->values[1] = all_products[c];
    } else {
      if (present(p.rows, 0)) team_put(dgamma, p, 0, t.at[0] + p.rows.lane_strides[0] * (i64)c, all_products[c]);
      if (present(p.rows, 3)) team_put(dbeta, p, 3, t.at[3] + p.rows.lane_strides[3] * (i64)c, all[c]);
    }
  }
}
SIMT_KERNEL(norm_bwd_columns)
(Pointer dgamma, Pointer x, Pointer dy, Pointer dbeta, Pointer means, Pointer rstds, Pointer partials, NormBwdTeams p) {
  SIMT_SHARED(float, parts, SIMT_TEAM_THREADS);
  for (u32 item = group_id(); item < p.rows.blocks * p.rows.splits; item += group_count()) {
    const u32 block = item / p.rows.splits, split = item - block * p.rows.splits;
    norm_bwd_columns_of(p, team_columns(p, block), dgamma, x, dy, dbeta, means, rstds, partials, split, parts);
  }
}
