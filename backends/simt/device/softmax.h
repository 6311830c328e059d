// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and softmax_bwd.
#include "tile.h"

// A row's maximum, and the sum of e^(x - maximum). If the maximum is -inf, the sum uses 0 in its
// place. The sum is therefore NaN if and only if the row contains NaN or +inf.
struct Softmax {
  float greatest, sum;
};
SIMT_FN float finite_shift(float greatest) { return greatest == -infinity() ? 0.0f : greatest; }

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

// Operands: out and x. With option 1, the result is the logarithm.
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
