// SPDX-License-Identifier: Apache-2.0
// Computes sums of floats and their error bounds (classes S and D of docs/spec/accuracy.md), and
// exact sums of integers.
#pragma once

#include <climits>
#include <cmath>
#include <limits>

#include "number.hpp"
#include "oracle.hpp"

namespace backplane::conformance::oracle {

// The least precise accumulator that an implementation may use.
struct Accumulator {
  int precision = 24;         // significant bits
  int least_exponent = -126;  // exponent of the minimum normal number
  // A sum of integers is exact if the sum of their magnitudes is below 2^exact_precision; 0 means
  // no guarantee.
  int exact_precision = 24;
  long double greatest = 0;    // maximum finite value
  long double narrowed = 0;    // relative error of a product due to the narrowing of both operands
  bool open_infinity = false;  // an infinite operand may produce NaN
  bool flushes = false;        // numbers below the normal range of f16 may become zero
  long double roundoff() const { return power_of_two(-precision); }
  // Returns the maximum error that underflow causes in one operation.
  long double tiny() const { return power_of_two(flushes ? least_exponent : least_exponent - precision); }
};
// Returns the f64 accumulator for f64, and the f32 accumulator for every other dtype.
Accumulator accumulator_for(uint32_t dtype);
// Returns the accumulator for products of `dtype` operands with the caller's precision-relaxation
// flags. The accumulator has the largest errors that these flags allow for sums and for rounded
// operands.
Accumulator accumulator_for(uint32_t dtype, uint32_t precision);

// The minimum normal number of f16. BP_PRECISION_ALLOW_FLUSH_F16 allows a zero instead of a smaller
// number.
constexpr long double kLeastNormalF16 = 0x1p-14L;
inline bool flushable(long double value) { return value != 0 && std::fabs(value) < kLeastNormalF16; }

// Returns the unit in which the rounding errors of computed operands are measured. The unit is half
// the unit roundoff of their 16-bit format: 2^-12 for f16 and 2^-9 for bf16. Returns 0 for any
// other format, because operands are then not rounded. `format` is the format of the products'
// operands, or a narrower format that the flags allow.
//
// Attention weights and dequantized weights are computed and then multiplied, so a matrix unit
// rounds them to 16 bits. Rounding to nearest has an error of at most 2 units, with a root mean
// square of 0.85 units. Truncation has an error of at most 4 units.
long double operand_roundoff(uint32_t format);
// Returns whether `format` represents `value` exactly.
bool is_representable(uint32_t format, long double value);

// Returns min(2n, 4 sqrt(n) + 64), the maximum relative error of a sum of n terms, in units of u.
long double rho(int64_t terms);

// Returns the exponent e for which a finite non-zero number is an odd multiple of 2^e.
int lowest_bit(long double value);

// A sum with the data for its error bound. Every finite term is a multiple of 2^grid. The grid
// INT_MIN means that no such exponent is known.
struct Total {
  long double value = 0;      // sum of the finite terms
  long double magnitude = 0;  // sum of the magnitudes of the finite terms
  int64_t count = 0;
  int grid = INT_MIN;
  // Sum of the magnitudes of products with a flushable factor. Computed only if
  // Accumulator::flushes is true.
  long double flushable = 0;
  bool nan = false, plus = false, minus = false;  // whether a term is NaN, +inf or -inf
};
// Computes a compensated sum (Neumaier's algorithm).
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
  // Returns the sum of the finite terms.
  long double value() const { return sum_ + lost_; }
  long double magnitude() const { return magnitude_; }
  int64_t count() const { return count_; }
  Total total() const {
    return {value(), magnitude_, count_, exact_ ? grid_ : INT_MIN, flushable_, nan_, plus_, minus_};
  }
  // Returns the expected element for this sum. The maximum error is factor * u * magnitude, plus
  // the rounding to `dtype`.
  Element judge(uint32_t dtype, const Accumulator& accumulator, long double factor) const;

 private:
  void add_special(long double term);
  void note_grid(long double term);

  long double sum_ = 0, lost_ = 0, magnitude_ = 0, flushable_ = 0;
  int64_t count_ = 0;
  int grid_ = INT_MAX;  // every finite term is a multiple of 2^grid_
  // Whether all terms are small multiples of 2^grid_, so that addition in any order is exact.
  bool exact_ = true;
  bool nan_ = false, plus_ = false, minus_ = false;
};

// The expected sum before it is rounded to the output's dtype.
struct Verdict {
  // `value` for NaN or a certain infinity, `unsigned_zero` for an exact sum, `bound` for an inexact sum. `any` if a
  // partial sum may overflow or an infinity may become NaN.
  Criterion criterion = Criterion::bound;
  long double value = 0;
  long double lost = 0;  // error bound
};
Verdict weigh(const Total& total, const Accumulator& accumulator, long double factor);
// Rounds the expected sum to `dtype`.
Element finish(uint32_t dtype, const Verdict& verdict);
inline Element judge(uint32_t dtype, const Total& total, const Accumulator& accumulator, long double factor) {
  return finish(dtype, weigh(total, accumulator, factor));
}

}  // namespace backplane::conformance::oracle
