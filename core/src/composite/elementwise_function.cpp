// SPDX-License-Identifier: Apache-2.0
// Lowers the composite `unary`. Each function is computed without cancellation, so that its relative error is small
// even for small results. The series have as many terms as the dtype of the computation needs.
#include <cmath>
#include <numbers>

#include "composite/families.hpp"

namespace backplane::core::composite {

namespace {

Value magnitude(Builder& b, const Value& x) { return b.unary(BP_OP_ABS, x); }
Value below(Builder& b, const Value& x, double limit) { return b.compare(BP_COMPARE_LT, x, b.constant(limit)); }
Value plus(Builder& b, const Value& x, double number) { return b.add(x, b.constant(number)); }
Value times(Builder& b, const Value& x, double number) { return b.mul(x, b.constant(number)); }
// Returns -y if x is negative, otherwise y.
Value with_sign_of(Builder& b, const Value& x, const Value& y) { return b.select(below(b, x, 0), b.neg(y), y); }

// ---- Exponentials and logarithms

// Returns e^x - 1. Near x = 0, the result is x (e - 1) / log(e) with e = exp(x). The rounding error of e affects the
// numerator and the denominator almost equally, so their quotient is accurate.
Value expm1(Builder& b, const Value& x) {
  const Value e = b.exp(x), less = plus(b, e, -1);
  const Value corrected = b.mul(less, b.div(x, b.log(e)));
  const Value near = b.select(b.compare(BP_COMPARE_EQ, e, b.constant(1)), x, corrected);
  return b.select(below(b, magnitude(b, x), 1), near, less);
}

// Returns log(1 + x). Near x = 0, the result is x log(m) / (m - 1) with m = 1 + x. As in expm1, the rounding error of m
// affects the numerator and the denominator almost equally.
Value log1p(Builder& b, const Value& x) {
  const Value more = plus(b, x, 1), logarithm = b.log(more);
  const Value corrected = b.mul(logarithm, b.div(x, plus(b, more, -1)));
  const Value near = b.select(b.compare(BP_COMPARE_EQ, more, b.constant(1)), x, corrected);
  return b.select(below(b, magnitude(b, x), 0.5), near, logarithm);
}

// Returns 2^x as e^(n high) e^(n low + f log 2), where n is the integer nearest to x, f is x - n, and high + low
// is log 2. `high` has 12 significant bits, so n * high is exact, and the error of the exponential does not
// grow with n.
Value exp2(Builder& b, const Value& x) {
  constexpr double high = 0.693115234375, low = 3.1946184945309417e-05;
  constexpr double limit = 2048;  // if |x| is at least this, the result is 0 or infinity
  const Value inside = b.binary(BP_OP_MAX, b.binary(BP_OP_MIN, x, b.constant(limit)), b.constant(-limit));
  const Value whole = b.unary(BP_OP_RINT, inside), rest = b.sub(inside, whole);
  const Value fraction = b.exp(b.add(times(b, whole, low), times(b, rest, std::numbers::ln2)));
  return b.mul(b.exp(times(b, whole, high)), fraction);
}

// Returns log(1 + e^x), which is max(x, 0) + log(1 + e^-|x|).
Value softplus(Builder& b, const Value& x) {
  return b.add(b.binary(BP_OP_MAX, x, b.constant(0)), log1p(b, b.exp(b.neg(magnitude(b, x)))));
}

// Returns x tanh(log(1 + e^x)), which is x n / (n + 2) with n = e^x (e^x + 2). If x is at least 20,
// the quotient is 1.
Value mish(Builder& b, const Value& x) {
  const Value e = b.exp(b.binary(BP_OP_MIN, x, b.constant(20)));
  const Value n = b.mul(e, plus(b, e, 2));
  return b.mul(x, b.div(n, plus(b, n, 2)));
}

// ---- Hyperbolic functions and their inverses

struct Halves {
  Value rising, falling;  // e^|x| / 2 and e^-|x| / 2
};
// Multiplies two exponentials of |x| / 2, since e^|x| overflows before the result does.
Halves halves(Builder& b, const Value& x) {
  const Value root = b.exp(times(b, magnitude(b, x), 0.5));
  return {b.mul(times(b, root, 0.5), root), b.div(b.div(b.constant(0.5), root), root)};
}

// Sums the Taylor series for |x| < 2, where the difference of the exponentials would cancel.
Value sinh(Builder& b, const Value& x) {
  const int terms = b.number() == BP_F64 ? 13 : 8;
  const Value square = b.mul(x, x);
  Value sum = b.constant(1);
  for (int k = terms - 1; k > 0; --k) sum = plus(b, times(b, b.mul(sum, square), 1.0 / (2 * k * (2 * k + 1))), 1);
  const auto [rising, falling] = halves(b, x);
  const Value far = with_sign_of(b, x, b.sub(rising, falling));
  return b.select(below(b, magnitude(b, x), 2), b.mul(x, sum), far);
}

Value cosh(Builder& b, const Value& x) {
  const auto [rising, falling] = halves(b, x);
  return b.add(rising, falling);
}

// Returns log(1 + less) for asinh and acosh, where 1 + less is x + sqrt(x^2 +- 1). If x is above
// 2^28, returns log(2 x), because x^2 may overflow and the term +-1 is negligible.
Value log_of_twice(Builder& b, const Value& x, const Value& less) {
  const Value far = b.compare(BP_COMPARE_GT, x, b.constant(0x1p28));
  return b.select(far, plus(b, b.log(x), std::numbers::ln2), log1p(b, less));
}

Value asinh(Builder& b, const Value& x) {
  const Value size = magnitude(b, x), square = b.mul(x, x);
  const Value root = b.unary(BP_OP_SQRT, plus(b, square, 1));
  return with_sign_of(b, x, log_of_twice(b, size, b.add(size, b.div(square, plus(b, root, 1)))));
}

Value acosh(Builder& b, const Value& x) {
  const Value more = plus(b, x, -1);
  const Value root = b.mul(b.unary(BP_OP_SQRT, more), b.unary(BP_OP_SQRT, plus(b, x, 1)));
  return log_of_twice(b, x, b.add(more, root));
}

Value atanh(Builder& b, const Value& x) {
  const Value size = magnitude(b, x);
  const Value quotient = b.div(times(b, size, 2), b.sub(b.constant(1), size));
  return with_sign_of(b, x, times(b, log1p(b, quotient), 0.5));
}

// ---- Inverse trigonometric functions

// Returns tan(a / 2) for t = tan(a).
Value halved(Builder& b, const Value& t) { return b.div(t, plus(b, b.unary(BP_OP_SQRT, plus(b, b.mul(t, t), 1)), 1)); }

// Returns atan(t) * factor for |t| at most 1. The Taylor series is in the tangent of a quarter of
// the angle, which is below 0.2.
Value short_atan(Builder& b, const Value& t, double factor) {
  const int terms = b.number() == BP_F64 ? 12 : 6;
  const Value quarter = halved(b, halved(b, t)), square = b.mul(quarter, quarter);
  const auto coefficient = [](int k) { return (k % 2 == 0 ? 1.0 : -1.0) / (2 * k + 1); };
  Value sum = b.constant(coefficient(terms - 1));
  for (int k = terms - 2; k >= 0; --k) sum = plus(b, b.mul(sum, square), coefficient(k));
  return times(b, b.mul(quarter, sum), 4 * factor);
}

// Returns `y`, which is f(x), or x if x is so small that f(x) rounds to x. short_atan divides x by 4, and a device that
// flushes subnormals would make the quotient 0.
Value unless_tiny(Builder& b, const Value& x, const Value& y) {
  return b.select(below(b, magnitude(b, x), 0x1p-30), x, y);
}

Value atan(Builder& b, const Value& x) {
  const Value wide = b.compare(BP_COMPARE_GT, magnitude(b, x), b.constant(1));
  const Value angle = short_atan(b, b.select(wide, b.div(b.constant(1), x), x), 1);
  const Value quarter = b.select(below(b, x, 0), b.constant(-std::numbers::pi / 2), b.constant(std::numbers::pi / 2));
  return unless_tiny(b, x, b.select(wide, b.sub(quarter, angle), angle));
}

// The product (1 - x) (1 + x) does not cancel, as 1 - x^2 would.
Value asin(Builder& b, const Value& x) {
  const Value cosine = b.unary(BP_OP_SQRT, b.mul(b.sub(b.constant(1), x), plus(b, x, 1)));
  return unless_tiny(b, x, short_atan(b, b.div(x, plus(b, cosine, 1)), 2));
}

Value acos(Builder& b, const Value& x) {
  const Value size = magnitude(b, x);
  const Value half = b.unary(BP_OP_SQRT, b.div(b.sub(b.constant(1), size), plus(b, size, 1)));
  const Value angle = short_atan(b, half, 2);
  return b.select(below(b, x, 0), b.sub(b.constant(std::numbers::pi), angle), angle);
}

// ---- Piecewise functions

Value hard_sigmoid(Builder& b, const Value& x) {
  const Value inside = b.binary(BP_OP_MIN, b.binary(BP_OP_MAX, plus(b, x, 3), b.constant(0)), b.constant(6));
  return times(b, inside, 1.0 / 6);
}

Value ceil(Builder& b, const Value& x) { return b.neg(b.unary(BP_OP_FLOOR, b.neg(x))); }

Value trunc(Builder& b, const Value& x) {
  return b.select(b.compare(BP_COMPARE_LT, x, b.constant(x.dtype(), 0)), ceil(b, x), b.unary(BP_OP_FLOOR, x));
}

Value sign(Builder& b, const Value& x) {
  const auto is = [&](uint32_t predicate) { return b.compare(predicate, x, b.constant(x.dtype(), 0)); };
  const Value negative = b.select(is(BP_COMPARE_LT), b.constant(x.dtype(), -1), x);
  return b.select(is(BP_COMPARE_GT), b.constant(x.dtype(), 1), negative);
}

// Appends the steps of a function. sign, ceil, trunc and frac are exact, so they compute in the
// dtype of the input. All other functions compute in number().
Value apply(Builder& b, uint32_t function) {
  const auto x = [&] { return b.load(0); };
  switch (function) {
    case BP_UNARY_EXPM1:
      return expm1(b, x());
    case BP_UNARY_EXP2:
      return exp2(b, x());
    case BP_UNARY_LOG1P:
      return log1p(b, x());
    case BP_UNARY_LOG2:
      return times(b, b.log(x()), std::numbers::log2e);
    case BP_UNARY_LOG10:
      return times(b, b.log(x()), std::numbers::log10e);
    case BP_UNARY_SIGN:
      return sign(b, b.input(0));
    case BP_UNARY_CEIL:
      return ceil(b, b.input(0));
    case BP_UNARY_TRUNC:
      return trunc(b, b.input(0));
    case BP_UNARY_FRAC:
      return b.sub(b.input(0), trunc(b, b.input(0)));
    case BP_UNARY_TAN: {
      const Value angle = x();
      return b.div(b.unary(BP_OP_SIN, angle), b.unary(BP_OP_COS, angle));
    }
    case BP_UNARY_ASIN:
      return asin(b, x());
    case BP_UNARY_ACOS:
      return acos(b, x());
    case BP_UNARY_ATAN:
      return atan(b, x());
    case BP_UNARY_SINH:
      return sinh(b, x());
    case BP_UNARY_COSH:
      return cosh(b, x());
    case BP_UNARY_ASINH:
      return asinh(b, x());
    case BP_UNARY_ACOSH:
      return acosh(b, x());
    case BP_UNARY_ATANH:
      return atanh(b, x());
    case BP_UNARY_SOFTPLUS:
      return softplus(b, x());
    case BP_UNARY_LOG_SIGMOID:  // for a large x, the result is -0 if the device flushes subnormals
      return b.neg(softplus(b, b.neg(x())));
    case BP_UNARY_MISH:
      return mish(b, x());
    case BP_UNARY_HARD_SIGMOID:
      return hard_sigmoid(b, x());
    default: {  // BP_UNARY_HARD_SWISH
      const Value in = x();
      return b.mul(in, hard_sigmoid(b, in));
    }
  }
}

}  // namespace

void unary(Builder& b) { b.store(b.output(0), apply(b, b.attributes<bp_unary_attributes>().function)); }

}  // namespace backplane::core::composite
