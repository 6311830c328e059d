// SPDX-License-Identifier: Apache-2.0
#include "sum.hpp"

#include <algorithm>
#include <bit>

namespace backplane::conformance::oracle {

namespace {

constexpr long double kNotANumber = std::numeric_limits<long double>::quiet_NaN();

// Precision of f64, the widest accumulator. A sum that needs more bits is treated as inexact.
constexpr int kWidestPrecision = 53;

}  // namespace

Accumulator accumulator_for(uint32_t dtype) {
  const Format& format = format_of(dtype == BP_F64 ? BP_F64 : BP_F32);
  Accumulator accumulator;
  accumulator.precision = accumulator.exact_precision = format.precision;
  accumulator.least_exponent = format.least_exponent;
  accumulator.greatest = greatest_finite(dtype == BP_F64 ? BP_F64 : BP_F32);
  return accumulator;
}

Accumulator accumulator_for(uint32_t dtype, uint32_t precision) {
  Accumulator accumulator = accumulator_for(dtype);
  const auto allows = [&](uint32_t permitted_dtype, uint32_t permission) {
    return dtype == permitted_dtype && (precision & permission) != 0;
  };
  // Each of the two operands is rounded or truncated, with an error of at most twice the roundoff.
  // The roundoff is 2^-11 for TF32 and 2^-8 for BF16.
  if (allows(BP_F32, BP_PRECISION_ALLOW_TF32)) accumulator.narrowed += 4 * 0x1p-11L;
  if (allows(BP_F32, BP_PRECISION_ALLOW_BF16)) accumulator.narrowed += 4 * 0x1p-8L;
  // bf16x3 truncates the high parts and rounds the low parts, with an error of 2^-15 per operand.
  // bf16x3 omits the product of the low parts, which adds an error of 2^-14.
  if (allows(BP_F32, BP_PRECISION_ALLOW_BF16X3)) accumulator.narrowed += 8 * 0x1p-16L;
  // In bf16x3, the low part of an infinity is inf - inf, which is NaN.
  accumulator.open_infinity = allows(BP_F32, BP_PRECISION_ALLOW_BF16X3);
  accumulator.flushes = allows(BP_F16, BP_PRECISION_ALLOW_FLUSH_F16);
  if (allows(BP_F16, BP_PRECISION_ALLOW_F16_ACCUMULATE)) {
    accumulator.precision = format_of(BP_F16).precision;
    accumulator.least_exponent = format_of(BP_F16).least_exponent;
    accumulator.greatest = greatest_finite(BP_F16);
    accumulator.exact_precision = 0;
  }
  if (accumulator.narrowed != 0) accumulator.exact_precision = 0;
  return accumulator;
}

long double operand_roundoff(uint32_t format) {
  return format == BP_F16 || format == BP_BF16 ? roundoff(format) / 2 : 0;
}

bool is_representable(uint32_t format, long double value) { return decode(format, encode(format, value)) == value; }

long double rho(int64_t terms) {
  const auto n = static_cast<long double>(terms);
  return std::min(2 * n, 4 * std::sqrt(n) + 64);
}

int lowest_bit(long double value) {
  const auto narrow = static_cast<double>(value);
  if (static_cast<long double>(narrow) == value && std::isnormal(narrow)) {
    constexpr uint64_t implied = uint64_t{1} << 52;
    const auto bits = std::bit_cast<uint64_t>(narrow);
    return static_cast<int>(bits >> 52 & 2047) - 1075 + std::countr_zero(bits | implied);
  }
  int exponent = 0;
  const long double fraction = std::frexp(std::fabs(value), &exponent);
  const auto bits = static_cast<uint64_t>(std::ldexp(fraction, 64));
  return exponent - 64 + std::countr_zero(bits);
}

void Sum::add_special(long double term) {
  nan_ = nan_ || std::isnan(term);
  plus_ = plus_ || term == kInfinity;
  minus_ = minus_ || term == -kInfinity;
}

void Sum::note_grid(long double term) {
  if (term == 0) return;
  // Most terms are integers, whose lowest set bit is found without splitting a float.
  const auto whole = std::fabs(term) < 0x1p62L ? static_cast<int64_t>(term) : 0;
  const bool is_whole = whole != 0 && static_cast<long double>(whole) == term;
  grid_ = std::min(grid_, is_whole ? std::countr_zero(static_cast<uint64_t>(whole)) : lowest_bit(term));
  exact_ = magnitude_ < power_of_two(kWidestPrecision + grid_);
}

Element Sum::judge(uint32_t dtype, const Accumulator& accumulator, long double factor) const {
  return oracle::judge(dtype, total(), accumulator, factor);
}

Verdict weigh(const Total& total, const Accumulator& accumulator, long double factor) {
  if (total.nan || (total.plus && total.minus)) return {Criterion::value, kNotANumber};
  // With terms of this magnitude, a partial sum may overflow, so any result is accepted.
  if (total.magnitude >= accumulator.greatest / 2) return {Criterion::any, total.plus ? kInfinity : total.value};
  if (total.plus || total.minus) {
    const bool open = accumulator.open_infinity || (accumulator.flushes && total.flushable != 0);
    return {open ? Criterion::any : Criterion::value, total.plus ? kInfinity : -kInfinity};
  }
  const long double flushed = accumulator.flushes ? total.flushable : 0;
  // A sum of zeros is exact too, although its Total::grid does not fulfil the conditions below.
  const bool on_grid =
      total.magnitude == 0 || (total.grid != INT_MIN && total.grid >= accumulator.least_exponent &&
                               total.magnitude < power_of_two(accumulator.exact_precision + total.grid));
  if (on_grid && flushed == 0 && !(accumulator.flushes && flushable(total.value)))
    return {Criterion::unsigned_zero, total.value};
  const long double lost = (factor * accumulator.roundoff() + accumulator.narrowed) * total.magnitude +
                           static_cast<long double>(total.count + 1) * accumulator.tiny();
  // A device may also flush the result if its rounded value is below the normal range of f16.
  const bool near_flush = accumulator.flushes && std::fabs(total.value) < kLeastNormalF16 + lost + flushed;
  return {Criterion::bound, total.value, lost + flushed + (near_flush ? kLeastNormalF16 : 0)};
}

Element finish(uint32_t dtype, const Verdict& verdict) {
  if (verdict.criterion == Criterion::any) return anything(dtype, verdict.value);
  if (verdict.criterion == Criterion::bound)
    return bounded(dtype, verdict.value, verdict.lost + ulp(dtype, verdict.value) / 2);
  Element element = rounded(dtype, verdict.value);
  element.criterion = verdict.criterion;
  return element;
}

}  // namespace backplane::conformance::oracle
