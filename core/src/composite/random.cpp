// SPDX-License-Identifier: Apache-2.0
// Lowers uniform, normal and dropout to philox. All steps before the logarithm, the sine and the
// cosine are exact, so that every device gets the same uniform numbers.
#include <cmath>
#include <numbers>

#include "composite/families.hpp"

namespace backplane::core::composite {

namespace {

// Returns the leading `bits` bits of each word as numbers of `dtype`.
Value leading_bits(Builder& b, const Value& words, int64_t bits, uint32_t dtype) {
  return b.cast(b.binary(BP_OP_SHR, words, b.integer(BP_U32, 32 - bits)), dtype);
}

// Returns `count` numbers k / 2^bits in [0, 1), as a vector of f32, or of f64 with 53 bits.
Value uniform_numbers(Builder& b, int64_t count, int64_t bits) {
  if (bits <= 24) {
    return b.mul(leading_bits(b, b.philox(count), bits, BP_F32),
                 b.constant(BP_F32, std::ldexp(1.0, -static_cast<int>(bits))));
  }
  const Value words = *try_reshape(b.philox(2 * count), {count, 2});
  const Value high = leading_bits(b, slice(words, 1, 0, 1), 27, BP_F64);
  const Value low = leading_bits(b, slice(words, 1, 1, 1), 26, BP_F64);
  const Value sum = b.add(b.mul(high, b.constant(BP_F64, 0x1p26)), low);
  return *try_reshape(b.mul(sum, b.constant(BP_F64, 0x1p-53)), {count});
}

// The number of bits of a uniform number, which is the precision of its dtype.
int64_t bits_of(uint32_t dtype) { return dtype == BP_BF16 ? 8 : dtype == BP_F16 ? 11 : dtype == BP_F32 ? 24 : 53; }

}  // namespace

void uniform(Builder& b) {
  const Value y = b.output(0);
  b.store(y, *try_reshape(uniform_numbers(b, elements_of(y), bits_of(y.dtype())), y.shape()));
}

void normal(Builder& b) {
  const Value y = b.output(0);
  const int64_t count = elements_of(y), pairs = (count + 1) / 2;
  const Value numbers = *try_reshape(uniform_numbers(b, 2 * pairs, bits_of(b.number())), {pairs, 2});
  // 1 minus the first number is positive, so its logarithm is finite.
  const Value positive = b.sub(b.constant(1), slice(numbers, 1, 0, 1));
  const Value radius = b.unary(BP_OP_SQRT, b.mul(b.log(positive), b.constant(-2)));
  const Value angle = b.mul(slice(numbers, 1, 1, 1), b.constant(2 * std::numbers::pi));
  const std::optional<Value> direct = count % 2 == 0 ? try_reshape(y, {pairs, 2}) : std::nullopt;
  const Value results = direct ? *direct : b.temporary(b.number(), {pairs, 2});
  b.store(slice(results, 1, 0, 1), b.mul(radius, b.unary(BP_OP_COS, angle)));
  b.store(slice(results, 1, 1, 1), b.mul(radius, b.unary(BP_OP_SIN, angle)));
  if (!direct) b.store(y, *try_reshape(slice(*try_reshape(results, {2 * pairs}), 0, 0, count), y.shape()));
}

void dropout(Builder& b) {
  const double p = static_cast<double>(b.attributes<bp_dropout_attributes>().p);
  const Value y = b.output(0);
  const Value numbers = *try_reshape(uniform_numbers(b, elements_of(y), bits_of(BP_F32)), y.shape());
  const Value kept = b.compare(BP_COMPARE_GE, numbers, b.constant(BP_F32, p));
  // If p is 1, no number is at least p, and the infinite factor has no effect.
  const Value scaled = b.mul(b.load(0), b.constant(1 / (1 - p)));
  b.store(y, b.select(kept, scaled, b.constant(0)));
  if (b.has_output(1)) b.store(b.output(1), kept);
}

}  // namespace backplane::core::composite
