// SPDX-License-Identifier: Apache-2.0
// norm_bwd. Let s = (x - mean) * rstd and g = dy * gamma. Then
// dx = rstd * (g - mean(g) - s * mean(g * s)), where rms_norm omits mean(g). dgamma is the sum of
// dy * s, and dbeta is the sum of dy, over the dimensions along which parameters are broadcast.
//
// Operands of norm_bwd: dx, x, dy, gamma, mean and rstd. Operands of norm_bwd_parameters: dgamma, x,
// dy, dbeta, mean and rstd. mean and rstd are f32.
#include "tile.h"

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

// Adds g and g * s of a split to the sums. If `cached` is true, also keeps g and s in the cache.
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
