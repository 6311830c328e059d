// SPDX-License-Identifier: Apache-2.0
// Lowers quantize and dequantize.
#include "composite/quantize.hpp"

namespace backplane::core::composite {

Value unpacked(Builder& b, const Value& packed, int64_t extent) {
  const uint32_t last = packed.rank() - 1;
  Extents shape = packed.shape();
  shape[last] = extent;
  const Value values = b.temporary(BP_U8, shape);
  const Value low = b.binary(BP_OP_AND, packed, b.integer(BP_U8, 15));
  b.store(slice(values, last, 0, (extent + 1) / 2, 2), low);
  const Value high = b.binary(BP_OP_SHR, slice(packed, last, 0, extent / 2), b.integer(BP_U8, 4));
  b.store(slice(values, last, 1, extent / 2, 2), high);
  return values;
}

namespace {

// Loads a scale or zero point. A parameter whose rank is not `rank` has one element.
Value parameter(Builder& b, uint32_t index, uint32_t rank) {
  const Value value = b.load(index);
  return value.rank() == rank ? value : b.reshape(value, Extents(rank, 1));
}

}  // namespace

// Quantizes x. The cast saturates at 8 bits and converts NaN to 0, so only 4-bit values need a
// clamp.
void quantize(Builder& b) {
  const bool four = b.attributes<bp_quantize_attributes>().bits == 4;
  const Value x = b.load(0), y = b.output(0);
  Value steps = b.unary(BP_OP_RINT, b.div(x, parameter(b, 1, x.rank())));
  if (b.has_input(2)) steps = b.add(steps, parameter(b, 2, x.rank()));
  if (!four) {
    b.store(y, steps);
    return;
  }
  const uint32_t last = x.rank() - 1;
  const int64_t extent = x.extent(last);
  steps = b.binary(BP_OP_MIN, b.binary(BP_OP_MAX, steps, b.constant(0)), b.constant(15));
  Extents shape = x.shape();
  shape[last] = (extent + 1) / 2 * 2;
  Value values = b.cast(steps, BP_U8);
  if (extent % 2 != 0) {
    const Value padded = b.temporary(BP_U8, shape);
    b.fill(slice(padded, last, extent, 1), 0);
    b.store(slice(padded, last, 0, extent), values);
    values = padded;
  }
  const Value low = slice(values, last, 0, (extent + 1) / 2, 2), high = slice(values, last, 1, (extent + 1) / 2, 2);
  b.store(y, b.binary(BP_OP_OR, low, b.binary(BP_OP_SHL, high, b.integer(BP_U8, 4))));
}

void dequantize(Builder& b) {
  const bool four = b.attributes<bp_quantize_attributes>().bits == 4;
  const Value y = b.output(0);
  const Value q = four ? unpacked(b, b.input(0), y.extent(y.rank() - 1)) : b.input(0);
  Value steps = b.widen(q);
  if (b.has_input(2)) steps = b.sub(steps, parameter(b, 2, y.rank()));
  b.store(y, b.mul(steps, parameter(b, 1, y.rank())));
}

}  // namespace backplane::core::composite
