// SPDX-License-Identifier: Apache-2.0
// cross_entropy and its gradient with respect to the logits.
//
// Operands: dlogits, logits, target, weight and loss. Place 5 contains SIMT_LOSS_GROUPS slots for the
// groups of cross_entropy, followed by one slot for each group of cross_entropy_weights. extra[0]:
// ignore_index. extra[1]: number of classes. extra[2], extra[3]: strides of weight and logits along the
// classes. extra[4]: stride of target between rows. extra[5]: number of slots that the kernel reads.
// numbers[0]: the share of the target distribution that label smoothing gives to each class.
// numbers[1]: the share that remains for the target. `option` is a set of SIMT_LOSS_*.
#include "rows.h"

#include "loss_params.h"

typedef TileParams<7, 5> LossParams;

// The sums of losses and weights over the rows that a group processes.
struct Slot {
  Sum loss, weight;
};
SIMT_FN i64 target_at(const LossParams& p, Pointer target, i64 at) {
  return p.bytes[2] == 8 ? (i64)at_offset<u64>(target, p.offsets[2])[at]
                         : (i64)(i32)at_offset<u32>(target, p.offsets[2])[at];
}
SIMT_FN float weight_of(const LossParams& p, Pointer weight, i64 index) {
  if (!present(p, 3)) return 1.0f;
  return SIMT_T::value(at_offset<SIMT_T::Bits>(weight, p.offsets[3])[p.extra[2] * index]);
}
// Returns the weight of a target. The weight of an ignored target is 0. The weight of any other target
// that is not a class is 0 if the operand `weight` is present, and 1 otherwise.
SIMT_FN float target_weight(const LossParams& p, Pointer weight, i64 target) {
  if (target == p.extra[0]) return 0.0f;
  if (target >= 0 && target < p.extra[1]) return weight_of(p, weight, target);
  return present(p, 3) ? 0.0f : 1.0f;
}

// The maximum m of a row, the sum of e^(x - m), the sum of weight * (x - m), and the sum of weights.
// If m is -inf, the sums use 0 instead of m. Only label smoothing uses the last two sums.
struct LossRow {
  float greatest, sum, weighted, weights;
};

// Returns the results of a split. If `cached` is true, also keeps e^(x - m) in the cache.
template <bool cached>
SIMT_FN LossRow loss_of_split(const LossParams& p, const Tile<5>& t, Pointer logits, Pointer weight,
                              SIMT_LOCAL Sum* parts, SIMT_LOCAL float* cache) {
  LossRow out;
  float greatest = -infinity();
  for_each(p, t, [&](const auto& s) {
    const float v = tile_value(logits, p, t, 1, s);
    if (cached) (cache + s.slot + t.first_index)[lane()] = v;
    greatest = v > greatest ? v : greatest;
  });
  out.greatest = tile_max(p, greatest, parts);
  const float shift = finite_shift(out.greatest);
  const bool smooths = p.numbers[0] != 0.0f;
  Sum sum, weighted, weights;
  clear(sum);
  clear(weighted);
  clear(weights);
  if (smooths) {
    const SharedOperand weight_at = shared_operand<3, 3>(p, weight, weight, logits, 1.0f);
    for_each_shared(p, t, [&](const auto& s) {
      const float distance = tile_value(logits, p, t, 1, s) - shift;
      const float each = tile_shared<3, 3, false>(weight_at, p, t, s);
      add(weighted, each != 0.0f ? each * distance : 0.0f);
      add(weights, each);
    });
  }
  for_each(p, t, [&](const auto& s) {
    const float e =
        exp_f32((cached ? (cache + s.slot + t.first_index)[lane()] : tile_value(logits, p, t, 1, s)) - shift);
    if (cached) (cache + s.slot + t.first_index)[lane()] = e;
    add(sum, e);
  });
  out.sum = tile_sum(p, sum, parts);
  out.weighted = smooths ? tile_sum(p, weighted, parts) : 0.0f;
  out.weights = smooths ? tile_sum(p, weights, parts) : 0.0f;
  return out;
}
SIMT_FN LossRow combined_loss(const LossParams& p, const Tile<5>& t, Pointer partials, SIMT_LOCAL Sum* parts) {
  SIMT_GLOBAL const Partial* from = partials_of(partials, p, t);
  const u32 first = first_partial(p, t), step = partial_step(p, t);
  LossRow out;
  float greatest = -infinity();
  for (u32 i = first; i < p.row_splits; i += step) {
    greatest = from[i].values[0] > greatest ? from[i].values[0] : greatest;
  }
  out.greatest = tile_max(p, greatest, parts);
  const float shift = finite_shift(out.greatest);
  Sum sum, weighted, weights;
  clear(sum);
  clear(weighted);
  clear(weights);
  for (u32 i = first; i < p.row_splits; i += step) {
    const float each = from[i].values[3];
    add(sum, from[i].values[1] * exp_f32(from[i].values[0] - shift));
    if (each != 0.0f) {
      add(weighted, from[i].values[2]);
      add(weighted, each * (finite_shift(from[i].values[0]) - shift));
    }
    add(weights, each);
  }
  out.sum = tile_sum(p, sum, parts);
  out.weighted = tile_sum(p, weighted, parts);
  out.weights = tile_sum(p, weights, parts);
  return out;
}

// The values that all gradients of a row share.
struct Slope {
  i64 goal;
  float scale, whole, share, greatest, divisor;
  bool ignored;
};
template <bool cached>
SIMT_FN void put_gradient(const LossParams& p, const Tile<5>& t, Pointer dlogits, Pointer logits, Pointer weight,
                          const Slope& slope, SIMT_LOCAL float* cache) {
  const float even = p.numbers[0];
  const bool divides = (p.option & SIMT_LOSS_DIVIDES) != 0;
  const SharedOperand weight_at = shared_operand<3, 3>(p, weight, weight, logits, 1.0f);
  const auto gradient_of = [&](float e, u32 element, float smoothed) {
    float gradient = e * slope.scale * slope.whole;
    if ((i64)element == slope.goal) gradient -= slope.share;
    gradient -= smoothed;
    if (divides) gradient = divide_f32(gradient, slope.divisor);
    return slope.ignored ? 0.0f : gradient;
  };
  if (even != 0.0f) {
    for_each_shared(p, t, [&](const auto& s) {
      const float e =
          cached ? (cache + s.slot + t.first_index)[lane()] : exp_f32(tile_value(logits, p, t, 1, s) - slope.greatest);
      const float smoothed = tile_shared<3, 3, false>(weight_at, p, t, s) * even;
      tile_put<false>(dlogits, p, t, 0, s, gradient_of(e, s.element, smoothed));
    });
  } else {
    for_each(p, t, [&](const auto& s) {
      const float e =
          cached ? (cache + s.slot + t.first_index)[lane()] : exp_f32(tile_value(logits, p, t, 1, s) - slope.greatest);
      tile_put<false>(dlogits, p, t, 0, s, gradient_of(e, s.element, 0.0f));
    });
  }
}

// Adds the sums of a group's threads, and stores the results in slot `index`.
SIMT_FN void put_slot(const LossParams& p, Pointer slots, u32 index, Sum& loss, Sum& weight, SIMT_LOCAL Sum* parts) {
  sum_group(loss, parts);
  sum_group(weight, parts);
  if (local_id() != 0) return;
  SIMT_GLOBAL Slot* to = at_offset<Slot>(slots, p.offsets[5]) + index;
  to->loss.high = loss.high;
  to->loss.low = loss.low;
  to->weight.high = weight.high;
  to->weight.low = weight.low;
}
// Returns the sum of the weights in the slots of cross_entropy_weights. Each thread adds all slots.
// If a loop divided the slots among lanes, compilers for CPUs would process one lane at a time
// after the loop.
SIMT_FN float sum_of_weights(const LossParams& p, Pointer slots) {
  SIMT_GLOBAL const Slot* from = at_offset<Slot>(slots, p.offsets[5]) + SIMT_LOSS_GROUPS;
  Sum sum;
  clear(sum);
  for (u32 i = 0; i < (u32)p.extra[5]; ++i) join(sum, from[i].weight.high, from[i].weight.low);
  return total(sum);
}
// Adds the extra[5] slots of cross_entropy. All threads return the same results.
SIMT_FN Slot sum_slots(const LossParams& p, Pointer slots, SIMT_LOCAL Sum* parts) {
  SIMT_GLOBAL const Slot* from = at_offset<Slot>(slots, p.offsets[5]);
  Slot out;
  clear(out.loss);
  clear(out.weight);
  for (u32 i = local_id(); i < (u32)p.extra[5]; i += group_size()) {
    join(out.loss, from[i].loss.high, from[i].loss.low);
    join(out.weight, from[i].weight.high, from[i].weight.low);
  }
  sum_group(out.loss, parts);
  sum_group(out.weight, parts);
  return out;
}

// Each group stores the sum of its targets' weights in a slot.
SIMT_KERNEL(cross_entropy_weights)
(Pointer, Pointer, Pointer target, Pointer weight, Pointer, Pointer slots, Pointer, LossParams p) {
  SIMT_SHARED(Sum, parts, SIMT_MAX_SUBGROUPS);
  Sum sum, none;
  clear(sum);
  clear(none);
  for (u32 i = global_id(); i < p.blocks; i += global_size()) {
    add(sum, target_weight(p, weight, target_at(p, target, p.extra[4] * i)));
  }
  put_slot(p, slots, SIMT_LOSS_GROUPS + group_id(), none, sum, parts);
}

SIMT_KERNEL(cross_entropy)
(Pointer dlogits, Pointer logits, Pointer target, Pointer weight, Pointer losses, Pointer slots, Pointer partials,
 LossParams p) {
  SIMT_SHARED(Sum, parts, SIMT_MAX_SUBGROUPS);
  SIMT_SHARED(float, cache, SIMT_CACHE);
  const bool divides = (p.option & SIMT_LOSS_DIVIDES) != 0;
  float divisor = 1.0f;
  if (divides && p.phase != SIMT_PHASE_PARTIALS) divisor = sum_of_weights(p, slots);
  const float even = p.numbers[0], kept = p.numbers[1];
  Sum loss_sum, weight_sum;
  clear(loss_sum);
  clear(weight_sum);
  for (u32 item = first_item(p); item < p.blocks * p.splits; item += item_step(p)) {
    const Tile<5> t = tile_of(p, item, 1);
    LossRow row;
    if (p.phase == SIMT_PHASE_COMBINE) {
      row = combined_loss(p, t, partials, parts);
    } else if (t.is_cached) {
      row = loss_of_split<true>(p, t, logits, weight, parts, cache);
    } else {
      row = loss_of_split<false>(p, t, logits, weight, parts, cache);
    }
    if (p.phase == SIMT_PHASE_PARTIALS) {
      if (leads(p, t)) {
        SIMT_GLOBAL Partial* to = partials_of(partials, p, t) + t.split;
        to->values[0] = row.greatest;
        to->values[1] = row.sum;
        to->values[2] = row.weighted;
        to->values[3] = row.weights;
      }
      continue;
    }
    const bool has_row = t.index < t.lanes, none = row.greatest == -infinity();
    const i64 lane_row = p.tile == SIMT_TILE_THREADS && has_row ? (i64)t.index : 0;
    const i64 goal = target_at(p, target, t.at[2] + p.lane_strides[2] * lane_row);
    const bool ignored = goal == p.extra[0], inside = goal >= 0 && goal < p.extra[1];
    const float own_weight = target_weight(p, weight, goal), greatest = row.greatest;
    if (leads(p, t) && t.split == 0) {
      const float logarithm = none ? not_a_number() : log_f32(row.sum);
      float loss = 0.0f;
      if (inside && own_weight != 0.0f) {
        const i64 at = t.at[1] + (p.tile == SIMT_TILE_THREADS ? p.lane_strides[1] * lane_row : 0) + p.extra[3] * goal;
        const float v = SIMT_T::value(tile_place<SIMT_T::Bits>(logits, p, 1, at)[0]);
        loss = (logarithm - (v - greatest)) * own_weight;
      }
      if (even != 0.0f) loss = (kept != 0.0f ? loss * kept : 0.0f) + (logarithm * row.weights - row.weighted) * even;
      if (none) loss = not_a_number();
      if (ignored) loss = 0.0f;
      if ((p.option & SIMT_LOSS_REDUCES) != 0) {
        add(loss_sum, loss);
        add(weight_sum, own_weight);
      } else {
        row_put(losses, p, t, 4, loss);
      }
    }
    if (!present(p, 0)) continue;
    Slope slope;
    slope.goal = goal;
    slope.scale = none ? not_a_number() : 1.0f / row.sum;
    slope.share = own_weight * kept;
    slope.whole = slope.share + row.weights * even;
    slope.greatest = greatest;
    slope.divisor = divisor;
    slope.ignored = ignored;
    if (t.is_cached) {
      put_gradient<true>(p, t, dlogits, logits, weight, slope, cache);
    } else {
      put_gradient<false>(p, t, dlogits, logits, weight, slope, cache);
    }
  }
  if ((p.option & SIMT_LOSS_REDUCES) != 0 && p.phase != SIMT_PHASE_PARTIALS) {
    put_slot(p, slots, group_id(), loss_sum, weight_sum, parts);
  }
}

// The kernel for rows in registers, without label smoothing. The powers and their sums have the factor 2^64 of
// scaled_exp.
typedef TeamParams<7, 5> LossTeams;

// Replaces each value with scaled_exp(value - shift), and returns the sum of these powers.
SIMT_FN float sum_of_powers(TeamValues& v, float shift) {
  SIMT_UNROLL for (u32 i = 0; i < SIMT_TEAM_VALUES; ++i) v.at[i] = scaled_exp(v.at[i] - shift);
  return sum_of(v);
}
template <bool packed>
SIMT_FN void loss_row(const LossTeams& p, const TeamRow<5>& t, Pointer dlogits, Pointer logits, Pointer target,
                      Pointer weight, Pointer losses, float divisor, Sum& loss_sum, Sum& weight_sum,
                      SIMT_LOCAL float* parts) {
  SIMT_GLOBAL const SIMT_T::Bits* from = team_place<SIMT_T::Bits>(logits, p, t, 1);
  const u32 part = team_part(t);
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
    add(sum, sum_of_powers(v, finite_shift(greatest)));
  }
  team_load<packed>(from, t, first, -infinity(), v);
  const i64 goal = t.is_row ? target_at(p.rows, target, t.at[2]) : p.rows.extra[0];
  const bool ignored = goal == p.rows.extra[0], inside = goal >= 0 && goal < p.rows.extra[1];
  const float own_weight = target_weight(p.rows, weight, goal);
  const float before = greatest;
  greatest = team_max(t.size, greatest_of(v, greatest), parts);
  if (first != 0u) change_maximum(sum, before, greatest);
  add(sum, sum_of_powers(v, finite_shift(greatest)));
  const float all = team_sum(t.size, total(sum), parts + SIMT_MAX_SUBGROUPS);
  const bool none = greatest == -infinity();
  if (t.index == 0u && t.is_row) {
    float loss = 0.0f;
    if (inside && own_weight != 0.0f) {
      loss = (log_f32(all * SIMT_EXP_SCALE) - (SIMT_T::value(from[goal]) - greatest)) * own_weight;
    }
    if (none) loss = not_a_number();
    if (ignored) loss = 0.0f;
    if ((p.rows.option & SIMT_LOSS_REDUCES) != 0) {
      add(loss_sum, loss);
      add(weight_sum, own_weight);
    } else {
      team_put(losses, p, 4, t.at[4], loss);
    }
  }
  if (!present(p.rows, 0)) return;
  SIMT_GLOBAL SIMT_T::Bits* to = team_place<SIMT_T::Bits>(dlogits, p, t, 0);
  const float share = divide_f32(own_weight, divisor), scale = (none ? not_a_number() : 1.0f / all) * share;
  for (;;) {
    SIMT_UNROLL for (u32 i = 0; i < SIMT_TEAM_VALUES; ++i) {
      const u32 each = packed ? SIMT_TEAM_PACK : 1, element = team_element<packed>(t, first, i / each) + i % each;
      const float gradient = v.at[i] * scale;
      v.at[i] = ignored ? 0.0f : (i64)element == goal ? gradient - share : gradient;
    }
    team_store<packed>(to, t, first, v);
    if (first == 0u) break;
    first -= part;
    team_load<packed>(from, t, first, -infinity(), v);
    sum_of_powers(v, finite_shift(greatest));
  }
}
template <bool packed>
SIMT_FN void loss_rows(const LossTeams& p, Pointer dlogits, Pointer logits, Pointer target, Pointer weight,
                       Pointer losses, Pointer slots, SIMT_LOCAL Sum* sums, SIMT_LOCAL float* parts) {
  const float divisor = (p.rows.option & SIMT_LOSS_DIVIDES) != 0 ? sum_of_weights(p.rows, slots) : 1.0f;
  Sum loss, weights;
  clear(loss);
  clear(weights);
  for_team_rows(p, [&](const TeamRow<5>& t) {
    loss_row<packed>(p, t, dlogits, logits, target, weight, losses, divisor, loss, weights, parts);
  });
  if ((p.rows.option & SIMT_LOSS_REDUCES) != 0) put_slot(p.rows, slots, group_id(), loss, weights, sums);
}
SIMT_KERNEL(cross_entropy_teams)
(Pointer dlogits, Pointer logits, Pointer target, Pointer weight, Pointer losses, Pointer slots, Pointer, LossTeams p) {
  SIMT_SHARED(Sum, sums, SIMT_MAX_SUBGROUPS);
  SIMT_SHARED(float, parts, SIMT_TEAM_PARTS);
  loss_rows<true>(p, dlogits, logits, target, weight, losses, slots, sums, parts);
}
SIMT_KERNEL(cross_entropy_teams_unaligned)
(Pointer dlogits, Pointer logits, Pointer target, Pointer weight, Pointer losses, Pointer slots, Pointer, LossTeams p) {
  SIMT_SHARED(Sum, sums, SIMT_MAX_SUBGROUPS);
  SIMT_SHARED(float, parts, SIMT_TEAM_PARTS);
  loss_rows<false>(p, dlogits, logits, target, weight, losses, slots, sums, parts);
}

// Adds the slots of all groups of cross_entropy. The launch has one group.
SIMT_KERNEL(cross_entropy_total)
(Pointer, Pointer, Pointer, Pointer, Pointer losses, Pointer slots, Pointer, LossParams p) {
  SIMT_SHARED(Sum, parts, SIMT_MAX_SUBGROUPS);
  const Slot all = sum_slots(p, slots, parts);
  const float loss = total(all.loss);
  if (local_id() != 0) return;
  const float result = (p.option & SIMT_LOSS_MEAN) != 0 ? divide_f32(loss, total(all.weight)) : loss;
  if (p.bytes[4] == 4) {
    at_offset<u32>(losses, p.offsets[4])[0] = bits_of_float(result);
  } else {
    at_offset<SIMT_T::Bits>(losses, p.offsets[4])[0] = SIMT_T::bits(result);
  }
}
