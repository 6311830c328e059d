// SPDX-License-Identifier: Apache-2.0
#include "sum.hpp"

#include <algorithm>
#include <bit>

#include "number.hpp"

namespace bp::conformance::oracle {

namespace {

constexpr long double infinity = std::numeric_limits<long double>::infinity();
constexpr long double not_a_number = std::numeric_limits<long double>::quiet_NaN();

// No accumulator that counts is wider: terms that need more bits than this are not watched any further.
constexpr int widest_precision = 53;

}  // namespace

Accumulator accumulator_for(uint32_t dtype, uint32_t precision) {
  const Format& format = format_of(dtype == BP_F64 ? BP_F64 : BP_F32);
  Accumulator accumulator{format.precision, format.least_exponent, format.precision,
                          greatest_finite(dtype == BP_F64 ? BP_F64 : BP_F32)};
  if (dtype == BP_F64 || precision == BP_PRECISION_FULL) return accumulator;
  accumulator.exact_precision = 0;
  switch (precision) {
    case BP_PRECISION_RELAXED_TF32:
      accumulator.precision = 11;
      break;
    case BP_PRECISION_RELAXED_BF16X3:
      accumulator.precision = 16;  // two parts of 8 bits each
      break;
    default:
      accumulator.precision = format_of(BP_F16).precision;
      accumulator.least_exponent = format_of(BP_F16).least_exponent;
      accumulator.greatest = greatest_finite(BP_F16);
      break;
  }
  return accumulator;
}

long double operand_roundoff(uint32_t format) {
  return format == BP_F16 || format == BP_BF16 ? roundoff(format) / 2 : 0;
}

bool is_held(uint32_t format, long double value) { return decode(format, encode(format, value)) == value; }

long double rho(int64_t terms) {
  const auto n = static_cast<long double>(terms);
  return std::min(2 * n, 4 * std::sqrt(n) + 64);
}

int lowest_bit(long double value) {
  int exponent = 0;
  const long double fraction = std::frexp(std::fabs(value), &exponent);
  const auto bits = static_cast<uint64_t>(std::ldexp(fraction, 64));
  return exponent - 64 + std::countr_zero(bits);
}

void Sum::add_special(long double term) {
  nan_ = nan_ || std::isnan(term);
  plus_ = plus_ || term == infinity;
  minus_ = minus_ || term == -infinity;
}

void Sum::note_grid(long double term) {
  if (term == 0) return;
  // The usual integers, without taking them apart.
  const auto whole = std::fabs(term) < 0x1p62L ? static_cast<int64_t>(term) : 0;
  const bool is_whole = whole != 0 && static_cast<long double>(whole) == term;
  grid_ = std::min(grid_, is_whole ? std::countr_zero(static_cast<uint64_t>(whole)) : lowest_bit(term));
  exact_ = magnitude_ < std::ldexp(1.0L, widest_precision + grid_);
}

Element Sum::judge(uint32_t dtype, const Accumulator& accumulator, long double factor) const {
  return oracle::judge(dtype, total(), accumulator, factor);
}

Verdict weigh(const Total& total, const Accumulator& accumulator, long double factor) {
  if (total.nan || (total.plus && total.minus)) return {Rule::value, not_a_number};
  // A partial sum may overflow on the way.
  if (total.magnitude >= accumulator.greatest / 2) return {Rule::any, total.plus ? infinity : total.value};
  if (total.plus || total.minus) return {Rule::value, total.plus ? infinity : -infinity};
  // Nothing but zeros has no grid.
  const bool on_grid =
      total.magnitude == 0 || (total.grid != INT_MIN && total.grid >= accumulator.least_exponent &&
                               total.magnitude < std::ldexp(1.0L, accumulator.exact_precision + total.grid));
  if (on_grid) return {Rule::unsigned_zero, total.value};
  return {Rule::bound, total.value,
          factor * accumulator.roundoff() * total.magnitude +
              static_cast<long double>(total.count + 1) * accumulator.tiny()};
}

Element finish(uint32_t dtype, const Verdict& verdict) {
  if (verdict.rule == Rule::any) return anything(dtype, verdict.value);
  if (verdict.rule == Rule::bound) return bounded(dtype, verdict.value, verdict.lost + ulp(dtype, verdict.value) / 2);
  Element element = rounded(dtype, verdict.value);
  element.rule = verdict.rule;
  return element;
}

}  // namespace bp::conformance::oracle
