// SPDX-License-Identifier: Apache-2.0
// Lowers rope and rotate. In rope, the angle of position p at frequency f is p * f. The sine needs the
// angle modulo 2 pi with an error of at most 2^-20 for any p. An f32 cannot represent a large angle so
// accurately.
//
// Therefore f / (2 pi), the frequency in revolutions, is split into a multiple of 2^-32 revolutions
// and a small remainder. The integer product of p and the multiple wraps at whole revolutions, and
// the product of p and the remainder is small.
#include <cmath>
#include <numbers>

#include "composite/families.hpp"

namespace backplane::core::composite {

namespace {

struct Table {
  Value cosine, sine;  // shape [..,L,half]; axes along which positions are broadcast have extent 1
};

// Rotates `half` pairs of the leading elements of x, and copies the other elements.
void rotate_pairs(Builder& b, const Table& table, int64_t half, bool adjacent) {
  const Value x = b.input(0), y = b.output(0);
  const uint32_t last = x.rank() - 1;
  const int64_t depth = x.extent(last), rotated = 2 * half;
  const auto part = [&](const Value& whole, int64_t which) {
    return adjacent ? slice(whole, last, which, half, 2) : slice(whole, last, which * half, half);
  };
  if (half > 0) {
    const Value first = b.widen(part(x, 0)), second = b.widen(part(x, 1));
    b.store(part(y, 0), b.sub(b.mul(first, table.cosine), b.mul(second, table.sine)));
    b.store(part(y, 1), b.add(b.mul(second, table.cosine), b.mul(first, table.sine)));
  }
  if (rotated < depth) {
    b.store(slice(y, last, rotated, depth - rotated), slice(x, last, rotated, depth - rotated));
  }
}

Table table_of(Builder& b, int64_t half, float base) {
  const Value position = without_repeats(insert(b.input(1), b.input(1).rank()));
  Extents row(position.rank(), 1);
  row.back() = half;
  const Value steps = b.temporary(BP_I32, row), rests = b.temporary(b.number(), row);
  constexpr long double two_pi = 2 * std::numbers::pi_v<long double>;
  const uint32_t last = position.rank() - 1;
  for (int64_t i = 0; i < half; ++i) {
    const long double exponent = -static_cast<long double>(i) / static_cast<long double>(half);
    const long double turns = std::pow(static_cast<long double>(base), exponent) / two_pi;
    const long double scaled = std::ldexp(turns - std::floor(turns), 32);
    const long double whole = std::floor(scaled);
    b.fill(slice(steps, last, i, 1), static_cast<int32_t>(static_cast<uint32_t>(whole)));
    b.fill(slice(rests, last, i, 1), static_cast<double>(std::ldexp((scaled - whole) * two_pi, -32)));
  }
  // The product needs only the position modulo 2^32, so an i64 position may be truncated first.
  const Value wrapped = b.cast(b.mul(b.cast(position, BP_I32), steps), b.number());
  const Value angle = b.add(b.mul(wrapped, b.constant(std::ldexp(static_cast<double>(two_pi), -32))),
                            b.mul(b.cast(position, b.number()), rests));
  return {b.unary(BP_OP_COS, angle), b.unary(BP_OP_SIN, angle)};
}

}  // namespace

void rope(Builder& b) {
  const auto& attributes = b.attributes<bp_rope_attributes>();
  const int64_t depth = b.input(0).extent(b.input(0).rank() - 1);
  const int64_t half = (attributes.rotary_extent == 0 ? depth : attributes.rotary_extent) / 2;
  rotate_pairs(b, table_of(b, half, attributes.base), half, attributes.interleaved != 0);
}

void rotate(Builder& b) {
  const auto table = [&](uint32_t index) { return b.widen(without_repeats(b.input(index))); };
  const int64_t half = b.input(1).extent(b.input(1).rank() - 1);
  rotate_pairs(b, {table(1), table(2)}, half, b.attributes<bp_rotate_attributes>().interleaved != 0);
}

}  // namespace backplane::core::composite
