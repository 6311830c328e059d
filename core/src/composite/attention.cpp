// SPDX-License-Identifier: Apache-2.0
// Lowers attention and attention_bwd in tiles of batches, groups of heads, and query rows. If there
// are few scores, one tile computes all scores.
#include <algorithm>
#include <cmath>

#include "composite/families.hpp"

namespace backplane::core::composite {

namespace {

// The operands of attention. The dimensions are B batches, G groups, R query heads of each group
// (grouped queries, GQA), L queries, S keys, D elements of a query or key, and E elements of a value.
struct Operands {
  Value q, k, v;  // shapes: [B,G,R,L,D], [B,G,1,S,D], [B,G,1,S,E]
  std::optional<Value> mask;
  std::optional<Value> sinks;  // shape: [1,G,R,1,1]
  int64_t batches, groups, repeats, queries, keys;
};

struct Tile {
  int64_t batch, batches, group, groups, query, queries;
  Value of(Value value, bool rows) const {
    value = slice(slice(value, 0, batch, batches), 1, group, groups);
    return rows ? slice(value, 3, query, queries) : value;
  }
};

// Multiplies `left` by `right`, which is broadcast along dimension 2 of `left`. If the strides of `left` allow it,
// folds that dimension into the rows, so that a matmul with fewer batches suffices.
Value product(Builder& b, const Value& left, const Value& right, uint32_t precision) {
  const Extents shape = left.shape();
  Extents result = shape, repeated = right.shape();
  result[4] = right.extent(4);
  repeated[2] = shape[2];
  if (const std::optional<Value> rows = try_reshape(left, {shape[0], shape[1], shape[2] * shape[3], shape[4]})) {
    const Value matrix = *try_reshape(slice(right, 2, 0, 1), {shape[0], shape[1], right.extent(3), right.extent(4)});
    return *try_reshape(b.matmul(*rows, matrix, precision), result);
  }
  return b.matmul(left, expand(right, repeated), precision);
}

// Returns a mask that is true where the causal mask lets a query of the tile attend to a key.
// LOWER_RIGHT aligns the last query with the last key; otherwise the first query aligns with the
// first key.
Value seen_by(Builder& b, const Operands& o, const Tile& tile, uint32_t causal) {
  const int64_t ahead = causal == BP_CAUSAL_LOWER_RIGHT ? o.keys - o.queries : 0;
  const Value column = b.iota(BP_I32, {1, 1, 1, 1, o.keys}, 4, 0);
  const Value row = b.iota(BP_I32, {1, 1, 1, tile.queries, 1}, 3, tile.query + ahead);
  return b.compare(BP_COMPARE_LE, column, row);
}

constexpr uint32_t kLast = 1u << 4;  // the mask that selects the last axis of a tile, such as the keys of scores

// Returns the scores of a tile. The score of a masked key is -inf. With a softcap, sets `bounded` to
// tanh(score / softcap), where score is the value before the limit.
Value scores_of(Builder& b, const Operands& o, const Tile& tile, Value* bounded = nullptr) {
  const auto& attributes = b.attributes<bp_attention_attributes>();
  const Value lowest = b.constant(-HUGE_VAL);
  Value scores = product(b, tile.of(o.q, true), transpose(tile.of(o.k, false)), attributes.precision);
  scores = b.mul(scores, b.constant(static_cast<double>(attributes.scale)));
  if (attributes.softcap > 0) {
    const Value softcap = b.constant(static_cast<double>(attributes.softcap));
    const Value ratio = b.unary(BP_OP_TANH, b.div(scores, softcap));
    scores = b.mul(ratio, softcap);
    if (bounded != nullptr) *bounded = ratio;
  }
  if (o.mask) {
    const Value mask = tile.of(*o.mask, true);
    scores = mask.dtype() == BP_BOOL ? b.select(mask, scores, lowest) : b.add(scores, b.widen(mask));
  }
  if (attributes.causal != BP_CAUSAL_NONE) {
    scores = b.select(seen_by(b, o, tile, attributes.causal), scores, lowest);
  }
  return scores;
}

void attend(Builder& b, const Operands& o, const Tile& tile) {
  const auto& attributes = b.attributes<bp_attention_attributes>();
  const Value lowest = b.constant(-HUGE_VAL);
  const Value scores = scores_of(b, o, tile);
  const std::optional<Value> sink = o.sinks ? std::optional(slice(*o.sinks, 1, tile.group, tile.groups)) : std::nullopt;
  Value greatest = b.reduce(BP_OP_REDUCE_MAX, scores, kLast);
  if (sink) greatest = b.binary(BP_OP_MAX, greatest, *sink);
  // If all keys of a row are masked and the row has no sink, exp(-inf - -inf) would be NaN. The
  // selects below therefore store 0 for the output and -inf for the logarithm of the sum.
  const Value nothing = b.compare(BP_COMPARE_EQ, greatest, lowest);
  const Value e = b.exp(b.sub(scores, greatest));
  Value total = b.sum(e, kLast);
  if (sink) total = b.add(total, b.exp(b.sub(*sink, greatest)));
  if (b.has_output(1)) {
    const Value sum = b.select(nothing, lowest, b.add(greatest, b.log(total)));
    const Value target = tile.of(insert(split(b.output(1), 1, o.groups), 4), true);
    b.store(target, sum);
  }
  const Value weighed = product(b, e, tile.of(o.v, false), attributes.precision);
  const Value target = tile.of(split(b.output(0), 1, o.groups), true);
  b.store(target, b.select(nothing, b.constant(0), b.div(weighed, total)));
}

// The operands that only attention_bwd has, and copies of q and k in the dtype of the computation. These copies are
// multiplied by the gradients of the scores.
struct Backward {
  Value dy, y, sum, q, k;  // sum is the logsumexp, with shape [B,G,R,L,1]
};

// Multiplies the transpose of `left` by `right`, and sums over the query heads and rows of each group.
Value summed_product(Builder& b, const Value& left, const Value& right, uint32_t precision) {
  const auto folded = [&](const Value& x) {
    return b.reshape(x, {x.extent(0), x.extent(1), x.extent(2) * x.extent(3), x.extent(4)});
  };
  return b.matmul(transpose(folded(left)), folded(right), precision);
}

// Stores dq of a tile, and adds the tile's contributions to `dk` and `dv`.
void attend_backward(Builder& b, const Operands& o, const Backward& g, const Tile& tile, std::optional<Value>& dk,
                     std::optional<Value>& dv) {
  const auto& attributes = b.attributes<bp_attention_attributes>();
  const Value scale = b.constant(static_cast<double>(attributes.scale));
  const Value sum = tile.of(g.sum, true), dy = tile.of(g.dy, true);
  // If all keys of a row are masked, exp(-inf - -inf) would be NaN. The select therefore sets the row's weights to 0.
  const Value nothing = b.compare(BP_COMPARE_EQ, sum, b.constant(-HUGE_VAL));
  Value bounded;
  const Value weight = b.select(nothing, b.constant(0), b.exp(b.sub(scores_of(b, o, tile, &bounded), sum)));
  const auto add_part = [&](std::optional<Value>& total, const Value& part) {
    total = total ? b.add(*total, part) : part;
  };
  if (b.has_output(2)) add_part(dv, summed_product(b, weight, dy, attributes.precision));
  const Value slope = product(b, dy, transpose(tile.of(o.v, false)), attributes.precision);
  const Value mean = b.sum(b.mul(dy, tile.of(g.y, true)), kLast);
  Value gradient = b.mul(weight, b.sub(slope, mean));
  if (attributes.softcap > 0) gradient = b.mul(gradient, b.sub(b.constant(1), b.mul(bounded, bounded)));
  if (b.has_output(1)) {
    add_part(dk, b.mul(summed_product(b, gradient, tile.of(g.q, true), attributes.precision), scale));
  }
  const Value dq = b.mul(product(b, gradient, tile.of(g.k, false), attributes.precision), scale);
  b.store(tile.of(split(b.output(0), 1, o.groups), true), dq);
}

// The sizes of a tile: numbers of batches, groups and queries.
struct TileSizes {
  int64_t batches, groups, queries;
};
TileSizes tile_sizes(const Builder& b, const Operands& o) {
  const int64_t row_bytes = count_of({o.repeats, o.keys, dtype_bytes(b.number())});
  const int64_t group_bytes = count_of({row_bytes, o.queries}), batch_bytes = count_of({group_bytes, o.groups});
  const int64_t budget = tile_bytes(count_of({batch_bytes, o.batches}));
  const auto fits = [budget](int64_t bytes) { return std::max<int64_t>(budget / std::max<int64_t>(bytes, 1), 1); };
  const int64_t batches = std::min(o.batches, fits(batch_bytes));
  const int64_t groups = batches > 1 ? o.groups : std::min(o.groups, fits(group_bytes));
  return {batches, groups, groups > 1 || batches > 1 ? o.queries : std::min(o.queries, fits(row_bytes))};
}

// Divides the batches and groups into sets, and the queries of each set into tiles. Calls `part` for each
// tile, and `whole` once per set, after the set's last tile.
template <class Part, class Whole>
void for_tiles(const TileSizes& size, const Operands& o, const Part& part, const Whole& whole) {
  for (int64_t batch = 0; batch < o.batches; batch += size.batches) {
    for (int64_t group = 0; group < o.groups; group += size.groups) {
      Tile tile{batch, std::min(size.batches, o.batches - batch), group, std::min(size.groups, o.groups - group), 0, 0};
      for (int64_t query = 0; query < o.queries; query += size.queries) {
        tile.query = query, tile.queries = std::min(size.queries, o.queries - query);
        part(tile);
      }
      whole(tile);
    }
  }
}

// Reads q, k and v, which are the inputs from `first` on.
Operands operands_of(Builder& b, uint32_t first) {
  const Value q = b.input(first), k = b.cast(b.input(first + 1), q.dtype()), v = b.load(first + 2);
  Operands o{};
  o.batches = q.extent(0), o.groups = k.extent(1), o.repeats = q.extent(1) / o.groups;
  o.queries = q.extent(2), o.keys = k.extent(2);
  o.q = split(q, 1, o.groups), o.k = insert(k, 2), o.v = insert(v, 2);
  return o;
}

}  // namespace

void attention(Builder& b) {
  Operands o = operands_of(b, 0);
  if (b.has_input(3)) o.mask = split(b.input(3), 1, o.groups);
  if (b.has_input(4)) o.sinks = insert(insert(insert(split(b.load(4), 0, o.groups), 0), 3), 4);
  for_tiles(
      tile_sizes(b, o), o, [&](const Tile& tile) { attend(b, o, tile); }, [](const Tile&) {});
}

void attention_bwd(Builder& b) {
  Operands o = operands_of(b, 1);
  if (b.has_input(6)) o.mask = split(b.input(6), 1, o.groups);
  const auto rows = [&](uint32_t index) { return split(b.load(index), 1, o.groups); };
  const Backward g{rows(0), rows(4), insert(rows(5), 4), rows(1), insert(b.load(2), 2)};
  std::optional<Value> dk, dv;
  const auto part = [&](const Tile& tile) { attend_backward(b, o, g, tile, dk, dv); };
  const auto whole = [&](const Tile& tile) {
    const auto store = [&](uint32_t index, std::optional<Value>& total) {
      if (!b.has_output(index)) return;
      const Value target = slice(slice(b.output(index), 0, tile.batch, tile.batches), 1, tile.group, tile.groups);
      // Fills with 0 if there are no queries, because `part` is then never called and `total` is empty.
      total ? void(b.store(target, *total)) : b.fill(target, 0);
      total.reset();
    };
    store(1, dk), store(2, dv);
  };
  for_tiles(tile_sizes(b, o), o, part, whole);
}

}  // namespace backplane::core::composite
