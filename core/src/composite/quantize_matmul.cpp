// SPDX-License-Identifier: Apache-2.0
// Lowers quantized_matmul in tiles of the output's columns, which are rows of the weight. Multiplies integers if both
// operands are integers and each row of the weight is one block with one scale. Otherwise multiplies dequantised
// values.
#include <algorithm>

#include "composite/quantize.hpp"
#include "composite/window.hpp"

namespace backplane::core::composite {

namespace {

// Returns whether the operand `a` consists of integers.
bool is_integer(Builder& b) { return b.input(0).dtype() == BP_I8 || b.input(0).dtype() == BP_U8; }

// The columns [start, start + cols) of the product.
struct Problem {
  int64_t rows, start, cols, depth, block;
  Value a;  // shape [M,K]; dequantised, unless the product is computed in integers
  Value w;  // shape [cols,K], dtype i8 or u8
};

// Returns input `index`, a parameter of the weight (scale, zero point or minimum), for the columns of
// `p`. The result has the shape [cols or 1, blocks or 1] and the dtype `dtype`.
Value of_weight(Builder& b, const Problem& p, uint32_t index, uint32_t dtype) {
  Value value = b.input(index);
  if (elements_of(value) == 1) return b.reshape(b.cast(value, dtype), {1, 1});
  value = b.cast(slice(value, 0, p.start, p.cols), dtype);
  return value.rank() == 2 ? value : b.reshape(value, {p.cols, 1});
}

// Returns the scale or zero point of the operand `a` with shape [M or 1, 1], in `dtype`.
Value of_rows(Builder& b, uint32_t index, uint32_t dtype) {
  const Value value = b.cast(b.input(index), dtype);
  return b.reshape(value, {elements_of(value), 1});
}

// Dequantises elements [start, start + blocks * block) of each row of p.w, and stores them in
// `weights`: (value - zero point) * scale + minimum. Each parameter has the shape [cols or 1, blocks or
// 1, 1].
void dequantise(Builder& b, const Problem& p, const Value& weights, int64_t start, int64_t blocks, int64_t block) {
  const auto part_of = [&](const Value& whole) {
    const Value part = slice(whole, 1, start, blocks * block);
    return *try_reshape(part, {p.cols, blocks, block});
  };
  const auto parameter = [&](uint32_t index) {
    Value value = of_weight(b, p, index, b.number());
    if (value.extent(1) > 1) value = slice(value, 1, start / p.block, blocks);
    return insert(value, 2);
  };
  Value steps = b.widen(part_of(p.w));
  if (b.has_input(3)) steps = b.sub(steps, parameter(3));
  steps = b.mul(steps, parameter(2));
  if (b.has_input(7)) steps = b.add(steps, parameter(7));
  b.store(part_of(weights), steps);
}

// Dequantises the operand `a`: (value - zero point) * scale.
Value dequantised_a(Builder& b, const Value& plain) {
  Value a = b.widen(plain);
  if (b.has_input(5)) a = b.sub(a, of_rows(b, 5, b.number()));
  if (b.has_input(4)) a = b.mul(a, of_rows(b, 4, b.number()));
  return a;
}

Value by_dequantising(Builder& b, const Problem& p) {
  const Value weights = b.temporary(b.number(), {p.cols, p.depth});
  const int64_t full = p.depth / p.block, remainder = p.depth % p.block;
  if (full > 0) dequantise(b, p, weights, 0, full, p.block);
  if (remainder > 0) dequantise(b, p, weights, full * p.block, 1, remainder);
  // Precision-relaxation flags do not apply to an integer `a`.
  const uint32_t precision = is_integer(b) ? 0 : b.attributes<bp_quantized_matmul_attributes>().precision;
  return b.matmul(p.a, transpose(weights), precision);
}

// Computes sum((a - za)(w - zw)) as sum(a w) - za sum(w) - zw sum(a) + K za zw, which is exact
// modulo 2^32. Then applies the scales, and adds the minimum times sum(a - za).
Value in_integers(Builder& b, const Problem& p) {
  const Value w = b.cast(p.w, BP_I8);  // unpacked 4-bit values are u8 and fit into i8
  Value sum = b.matmul(p.a, transpose(w), BP_PRECISION_FULL, BP_I32);
  const bool a_zero = b.has_input(5), w_zero = b.has_input(3);
  Value za, zw;
  if (a_zero) za = of_rows(b, 5, BP_I32);
  if (w_zero) zw = transpose(of_weight(b, p, 3, BP_I32));  // shape [1, cols or 1]
  if (a_zero) sum = b.sub(sum, b.mul(za, transpose(b.reduce(BP_OP_REDUCE_SUM, w, 0b10, BP_I32))));
  if (w_zero) sum = b.sub(sum, b.mul(zw, b.reduce(BP_OP_REDUCE_SUM, p.a, 0b10, BP_I32)));
  if (a_zero && w_zero) sum = b.add(sum, b.mul(b.mul(za, b.integer(BP_I32, p.depth)), zw));
  const Value row_scale = of_rows(b, 4, b.number());
  const Value result = b.mul(b.widen(sum), b.mul(row_scale, transpose(of_weight(b, p, 2, b.number()))));
  if (!b.has_input(7)) return result;
  Value row_sum = b.reduce(BP_OP_REDUCE_SUM, p.a, 0b10, BP_I32);
  if (a_zero) row_sum = b.sub(row_sum, b.mul(za, b.integer(BP_I32, p.depth)));
  return b.add(result, b.mul(b.mul(b.widen(row_sum), row_scale), transpose(of_weight(b, p, 7, b.number()))));
}

}  // namespace

void quantized_matmul(Builder& b) {
  const auto& attributes = b.attributes<bp_quantized_matmul_attributes>();
  const Value a = b.input(0), y = b.output(0);
  const uint32_t last = y.rank() - 1;
  Problem p{};
  p.depth = a.extent(a.rank() - 1);
  p.rows = count_of(Extents(a.view.shape, a.view.shape + a.rank() - 1));
  p.block = attributes.block == 0 ? std::max<int64_t>(p.depth, 1) : attributes.block;
  p.a = b.reshape(a, {p.rows, p.depth});
  const bool in_whole_numbers = is_integer(b) && p.depth <= p.block, four = attributes.weight_bits == 4;
  if (!in_whole_numbers) p.a = dequantised_a(b, p.a);
  // The size of a tile counts two arrays of weights, whose elements have `number` bytes.
  const int64_t number = in_whole_numbers ? 1 : dtype_bytes(b.number());
  const int64_t tile = in_whole_numbers && !four ? y.extent(last) : tile_of(y.extent(last), p.depth * 2 * number);
  each_tile(y.extent(last), std::max<int64_t>(tile, 1), [&](int64_t start, int64_t count) {
    p.start = start, p.cols = count;
    p.w = slice(b.input(1), 0, start, count);
    if (four) p.w = unpacked(b, p.w, p.depth);
    if (!in_whole_numbers) p.w = b.dense(p.w);
    Value result = in_whole_numbers ? in_integers(b, p) : by_dequantising(b, p);
    if (b.has_input(6)) result = b.add(result, insert(b.widen(slice(b.input(6), 0, start, count)), 0));
    const Value target = slice(y, last, start, count);
    b.store(target, b.reshape(result, target.shape()));
  });
}

}  // namespace backplane::core::composite
