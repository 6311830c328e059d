// SPDX-License-Identifier: Apache-2.0
// Sums of floats, and how far a conforming one may be off: classes S and D of docs/spec/accuracy.md, and whole numbers.
#pragma once

#include <climits>
#include <cmath>
#include <limits>

#include "oracle.hpp"

namespace backplane::conformance::oracle {

// What the least accumulator keeps that an implementation may use.
struct Accumulator {
  int precision = 24;          // significant bits
  int least_exponent = -126;   // of the least normal number
  int exact_precision = 24;    // sums of integers below 2^this are exact; 0: none are promised
  long double greatest = 0;    // finite
  long double narrowed = 0;    // the share that a product loses because both its operands were narrowed
  bool open_infinity = false;  // an infinite operand may give NaN
  bool flushes = false;        // operands and results below f16's normal numbers may be zero
  long double roundoff() const { return std::ldexp(1.0L, -precision); }
  // The most that one operation loses to underflow.
  long double tiny() const { return std::ldexp(1.0L, flushes ? least_exponent : least_exponent - precision); }
};
// f64 for f64, else f32.
Accumulator accumulator_for(uint32_t dtype);
// The same for products of operands of `dtype` with the caller's permissions `precision`: the greatest loss that one of
// the permissions for `dtype` allows a sum, and every rounding that they allow the operands.
Accumulator accumulator_for(uint32_t dtype, uint32_t precision);

// A number that may be zero under FLUSH_F16.
constexpr long double kLeastNormalF16 = 0x1p-14L;
inline bool flushable(long double value) { return value != 0 && std::fabs(value) < kLeastNormalF16; }

// Attention's weights and dequantised weights are computed and then multiplied: a matrix unit takes them in the format
// of its 16-bit operands. This is HALF the unit roundoff of that format: 2^-12 for f16, 2^-9 for bf16, and 0 where
// operands are not rounded. It is half on purpose. Rounding to nearest is off by at most 2 of it, with a root mean
// square of .85 of it. Cutting is off by at most 4. `format`: of the products' operands, or a narrower one that the
// caller permits.
long double operand_roundoff(uint32_t format);
// Whether `format` holds an operand of this value exactly.
bool is_representable(uint32_t format, long double value);

// min(2n, 4 root n + 64): the share of u that a sum of n terms may lose.
long double rho(int64_t terms);

// Exponent of the lowest bit of a finite number that is not 0: it is an odd multiple of 2^this.
int lowest_bit(long double value);

// A sum and what its judgement needs. `grid`: every term is a multiple of 2^grid; INT_MIN: nothing is known.
struct Total {
  long double value = 0;      // of the finite terms
  long double magnitude = 0;  // likewise
  int64_t count = 0;
  int grid = INT_MIN;
  long double flushable = 0;  // part of the magnitude: products with such a factor. Only where permissions need it
  bool nan = false, plus = false, minus = false;  // there is such a term
};
// Terms added up, compensated.
class Sum {
 public:
  void add(long double term) {
    ++count_;
    if (!std::isfinite(term)) [[unlikely]] {
      add_special(term);
      return;
    }
    const long double total = sum_ + term;
    lost_ += std::fabs(sum_) >= std::fabs(term) ? (sum_ - total) + term : (term - total) + sum_;
    sum_ = total;
    magnitude_ += std::fabs(term);
    if (exact_) note_grid(term);
  }
  void add_product(long double a, long double b) {
    if (oracle::flushable(a) || oracle::flushable(b)) flushable_ += std::fabs(a * b);
    add(a * b);
  }
  // The sum of the finite terms.
  long double value() const { return sum_ + lost_; }
  long double magnitude() const { return magnitude_; }
  int64_t count() const { return count_; }
  Total total() const {
    return {value(), magnitude_, count_, exact_ ? grid_ : INT_MIN, flushable_, nan_, plus_, minus_};
  }
  // The element for this sum, whose error may be factor * u * magnitude beside the last rounding.
  Element judge(uint32_t dtype, const Accumulator& accumulator, long double factor) const;

 private:
  void add_special(long double term);
  void note_grid(long double term);

  long double sum_ = 0, lost_ = 0, magnitude_ = 0, flushable_ = 0;
  int64_t count_ = 0;
  int grid_ = INT_MAX;  // every finite term is a multiple of 2^grid_
  bool exact_ = true;   // all of them are multiples of 2^grid_ and small: any order of adding is exact
  bool nan_ = false, plus_ = false, minus_ = false;
};

// What is known of a sum before its last rounding.
struct Verdict {
  Criterion criterion = Criterion::bound;  // value: an infinity or NaN; any; unsigned_zero: exact; bound
  long double value = 0;
  long double lost = 0;  // the most that it may be off
};
Verdict weigh(const Total& total, const Accumulator& accumulator, long double factor);
// Rounded to `dtype`.
Element finish(uint32_t dtype, const Verdict& verdict);
inline Element judge(uint32_t dtype, const Total& total, const Accumulator& accumulator, long double factor) {
  return finish(dtype, weigh(total, accumulator, factor));
}

}  // namespace backplane::conformance::oracle
