// SPDX-License-Identifier: Apache-2.0
// Lowers attention in tiles of batches, groups of heads, and query rows. If there are few scores,
// one tile computes all scores.
#include <algorithm>
#include <cmath>

#include "composite/families.hpp"

namespace backplane::core::composite {

namespace {

// The operands of attention. Dimension R contains the query heads of one group (grouped queries,
// GQA).
struct Operands {
  Value q, k, v;  // shapes: [B,G,R,L,D], [B,G,1,S,D], [B,G,1,S,E]
  std::optional<Value> mask;
  int64_t batches, groups, repeats, queries, keys;
};

struct Tile {
  int64_t batch, batches, group, groups, query, queries;
  Value of(Value value, bool rows) const {
    value = slice(slice(value, 0, batch, batches), 1, group, groups);
    return rows ? slice(value, 3, query, queries) : value;
  }
};

// Multiplies left by right, with right broadcast along dimension 2 of left. If left's strides allow
// it, folds that dimension into the rows, so that a matmul with fewer batches suffices.
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

void attend(Builder& b, const Operands& o, const Tile& tile) {
  const auto& attributes = b.attributes<bp_attention_attributes>();
  constexpr uint32_t axes = 1u << 4;
  const Value lowest = b.constant(-HUGE_VAL);
  Value scores = product(b, tile.of(o.q, true), transpose(tile.of(o.k, false)), attributes.precision);
  scores = b.mul(scores, b.constant(static_cast<double>(attributes.scale)));
  if (o.mask) {
    const Value mask = tile.of(*o.mask, true);
    scores = mask.dtype() == BP_BOOL ? b.select(mask, scores, lowest) : b.add(scores, b.widen(mask));
  }
  if (attributes.causal != BP_CAUSAL_NONE) {
    scores = b.select(seen_by(b, o, tile, attributes.causal), scores, lowest);
  }

  const Value greatest = b.reduce(BP_OP_REDUCE_MAX, scores, axes);
  // If all keys of a row are masked, exp(-inf - -inf) would be NaN. The selects below therefore
  // store 0 for the output and -inf for the logarithm of the sum.
  const Value nothing = b.compare(BP_COMPARE_EQ, greatest, lowest);
  const Value e = b.exp(b.sub(scores, greatest));
  const Value total = b.sum(e, axes);
  if (b.has_output(1)) {
    const Value sum = b.select(nothing, lowest, b.add(greatest, b.log(total)));
    const Value target = tile.of(insert(split(b.output(1), 1, o.groups), 4), true);
    b.store(target, sum);
  }
  const Value weighed = product(b, e, tile.of(o.v, false), attributes.precision);
  const Value target = tile.of(split(b.output(0), 1, o.groups), true);
  b.store(target, b.select(nothing, b.constant(0), b.div(weighed, total)));
}

}  // namespace

void attention(Builder& b) {
  const Value q = b.input(0), k = b.cast(b.input(1), q.dtype()), v = b.load(2);
  Operands o{};
  o.batches = q.extent(0), o.groups = k.extent(1), o.repeats = q.extent(1) / o.groups;
  o.queries = q.extent(2), o.keys = k.extent(2);
  o.q = split(q, 1, o.groups), o.k = insert(k, 2), o.v = insert(v, 2);
  if (b.has_input(3)) o.mask = split(b.input(3), 1, o.groups);

  const int64_t row_bytes = count_of({o.repeats, o.keys, dtype_bytes(b.number())});
  const int64_t group_bytes = count_of({row_bytes, o.queries}), batch_bytes = count_of({group_bytes, o.groups});
  const int64_t budget = tile_bytes(count_of({batch_bytes, o.batches}));
  const auto fits = [budget](int64_t bytes) { return std::max<int64_t>(budget / std::max<int64_t>(bytes, 1), 1); };
  const int64_t batches = std::min(o.batches, fits(batch_bytes));
  const int64_t groups = batches > 1 ? o.groups : std::min(o.groups, fits(group_bytes));
  const int64_t queries = groups > 1 || batches > 1 ? o.queries : std::min(o.queries, fits(row_bytes));
  for (int64_t batch = 0; batch < o.batches; batch += batches) {
    for (int64_t group = 0; group < o.groups; group += groups) {
      for (int64_t query = 0; query < o.queries; query += queries) {
        attend(b, o,
               {batch, std::min(batches, o.batches - batch), group, std::min(groups, o.groups - group), query,
                std::min(queries, o.queries - query)});
      }
    }
  }
}

}  // namespace backplane::core::composite
