// SPDX-License-Identifier: Apache-2.0
// Sums of floats and the bounds of their errors: classes S and D of docs/spec/accuracy.md, and
// exact sums of integers.
#pragma once

#include <climits>
#include <cmath>
#include <limits>

#include "oracle.hpp"

namespace backplane::conformance::oracle {

// The least precise accumulator that an implementation may use.
struct Accumulator {
  int precision = 24;          // significant bits
  int least_exponent = -126;   // exponent of the minimum normal number
  int exact_precision = 24;    // sums of integers are exact below 2^this; 0: no such guarantee
  long double greatest = 0;    // maximum finite value
  long double narrowed = 0;    // relative error of a product whose operands were both narrowed
  bool open_infinity = false;  // an infinite operand may produce NaN
  bool flushes = false;        // operands and results below the normal numbers of f16 may become zero
  long double roundoff() const { return std::ldexp(1.0L, -precision); }
  // The maximum error that underflow causes in one operation.
  long double tiny() const { return std::ldexp(1.0L, flushes ? least_exponent : least_exponent - precision); }
};
// The accumulator of f64 for f64, of f32 for other dtypes.
Accumulator accumulator_for(uint32_t dtype);
// The accumulator for products of operands of `dtype` with the caller's `precision` permissions. It
// has the maximum error that a permission for `dtype` allows a sum, and every rounding of operands.
Accumulator accumulator_for(uint32_t dtype, uint32_t precision);

// FLUSH_F16 permits a zero in place of a number below this.
constexpr long double kLeastNormalF16 = 0x1p-14L;
inline bool flushable(long double value) { return value != 0 && std::fabs(value) < kLeastNormalF16; }

// The unit of the rounding error of computed operands. Attention's weights and dequantized weights
// are computed and then multiplied, so a matrix unit rounds them to the format of its 16-bit
// operands. Returns half the unit roundoff of that format: 2^-12 for f16, 2^-9 for bf16, and 0 if
// operands are not rounded. Rounding to nearest has an error of at most 2 of these units, with a
// root mean square of .85. Truncation has an error of at most 4. `format` is that of the products'
// operands, or a narrower one that the caller permits.
long double operand_roundoff(uint32_t format);
// Whether `format` represents the value exactly.
bool is_representable(uint32_t format, long double value);

// min(2n, 4 root n + 64): the maximum relative error of a sum of n terms, in units of u.
long double rho(int64_t terms);

// The exponent of the lowest set bit of a finite non-zero number: the number is an odd multiple of
// 2^this.
int lowest_bit(long double value);

// A sum with the data for its error bound. Every term is a multiple of 2^grid; INT_MIN: unknown.
struct Total {
  long double value = 0;      // sum of the finite terms
  long double magnitude = 0;  // sum of the magnitudes of the finite terms
  int64_t count = 0;
  int grid = INT_MIN;
  // sum of the magnitudes of products with a flushable factor; computed only if permissions need it
  long double flushable = 0;
  bool nan = false, plus = false, minus = false;  // a term is NaN, +inf, -inf
};
// A compensated sum.
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
  // Returns the element for this sum, with an error of factor * u * magnitude plus the last
  // rounding.
  Element judge(uint32_t dtype, const Accumulator& accumulator, long double factor) const;

 private:
  void add_special(long double term);
  void note_grid(long double term);

  long double sum_ = 0, lost_ = 0, magnitude_ = 0, flushable_ = 0;
  int64_t count_ = 0;
  int grid_ = INT_MAX;  // every finite term is a multiple of 2^grid_
  // all terms are small multiples of 2^grid_, so any order of addition is exact
  bool exact_ = true;
  bool nan_ = false, plus_ = false, minus_ = false;
};

// The expected sum before its last rounding.
struct Verdict {
  // `value` for an infinity or NaN, `unsigned_zero` for an exact sum, `any`, or `bound`
  Criterion criterion = Criterion::bound;
  long double value = 0;
  long double lost = 0;  // bound of the error
};
Verdict weigh(const Total& total, const Accumulator& accumulator, long double factor);
// Rounds the verdict to an element of `dtype`.
Element finish(uint32_t dtype, const Verdict& verdict);
inline Element judge(uint32_t dtype, const Total& total, const Accumulator& accumulator, long double factor) {
  return finish(dtype, weigh(total, accumulator, factor));
}

}  // namespace backplane::conformance::oracle
