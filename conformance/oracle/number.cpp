// SPDX-License-Identifier: Apache-2.0
#include "number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace backplane::conformance::oracle {

namespace {

// Returns the mask of the fraction bits, which are below the sign and the exponent.
uint64_t fraction_mask(const Format& format) { return (uint64_t{1} << (format.precision - 1)) - 1; }

// Decodes a float that has no hardware type. Integer arithmetic makes the result exact.
long double decode_float(const Format& format, uint64_t bits) {
  const uint64_t fraction = bits & fraction_mask(format);
  const auto field =
      static_cast<int>(bits >> (format.precision - 1) & ((1u << (8 * format.bytes - format.precision)) - 1));
  const bool negative = (bits >> (8 * format.bytes - 1) & 1) != 0;
  long double magnitude = 0;
  if (field == 2 * format.greatest_exponent + 1) {
    magnitude =
        fraction == 0 ? std::numeric_limits<long double>::infinity() : std::numeric_limits<long double>::quiet_NaN();
  } else {
    const uint64_t significand = field == 0 ? fraction : fraction | (fraction_mask(format) + 1);
    const int exponent = (field == 0 ? 1 : field) - 1 + format.least_exponent - (format.precision - 1);
    magnitude = static_cast<long double>(significand) * power_of_two(exponent);
  }
  return negative ? -magnitude : magnitude;
}

uint64_t encode_float(uint32_t dtype, const Format& format, long double value) {
  if (std::isnan(value)) return quiet_nan_bits(dtype);
  const uint64_t sign = std::signbit(value) ? sign_bit(dtype) : 0;
  const uint64_t infinity = infinity_bits(dtype);
  const long double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (std::isinf(magnitude)) return sign | infinity;
  const int exponent = std::max(exponent_of(magnitude), format.least_exponent);
  if (exponent > format.greatest_exponent) return sign | infinity;
  // Rounds to a whole number of ulps, with ties to even. A carry out of the significand increments
  // the exponent.
  const long double scaled = magnitude * power_of_two(format.precision - 1 - exponent);
  auto units = static_cast<uint64_t>(scaled);
  const long double remainder = scaled - static_cast<long double>(units);
  if (remainder > 0.5L || (remainder == 0.5L && (units & 1) != 0)) ++units;
  const uint64_t field = static_cast<uint64_t>(exponent - format.least_exponent) << (format.precision - 1);
  return sign | std::min(infinity, field + units);
}

}  // namespace

int64_t decode_integer(uint32_t dtype, uint64_t bits) {
  const Format& format = format_of(dtype);
  if (format.kind == Kind::BOOL) return (bits & mask_of(dtype)) != 0 ? 1 : 0;
  const auto shift = 64 - 8 * format.bytes;
  const uint64_t high = bits << shift;
  return format.kind == Kind::INT ? static_cast<int64_t>(high) >> shift : static_cast<int64_t>(high >> shift);
}

long double decode(uint32_t dtype, uint64_t bits) {
  if (dtype == BP_F32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (dtype == BP_F64) return std::bit_cast<double>(bits);
  const Format& format = format_of(dtype);
  if (format.kind == Kind::FLOAT) return decode_float(format, bits);
  return static_cast<long double>(decode_integer(dtype, bits));
}

uint64_t encode(uint32_t dtype, long double value) {
  const Format& format = format_of(dtype);
  if (format.kind == Kind::FLOAT) {
    if (std::isnan(value)) return quiet_nan_bits(dtype);
    if (dtype == BP_F32) return std::bit_cast<uint32_t>(static_cast<float>(value));
    if (dtype == BP_F64) return std::bit_cast<uint64_t>(static_cast<double>(value));
    return encode_float(dtype, format, value);
  }
  return encode_integer(dtype, static_cast<int64_t>(value));
}

long double least_integer(uint32_t dtype) {
  return is_signed(dtype) ? -power_of_two(static_cast<int>(8 * bytes_of(dtype) - 1)) : 0;
}

long double greatest_integer(uint32_t dtype) {
  if (format_of(dtype).kind == Kind::BOOL) return 1;
  return power_of_two(static_cast<int>(8 * bytes_of(dtype) - (is_signed(dtype) ? 1 : 0))) - 1;
}

long double ulp(uint32_t dtype, long double value) {
  const Format& format = format_of(dtype);
  int exponent = format.least_exponent;
  if (!std::isfinite(value)) {
    exponent = format.greatest_exponent;
  } else if (value != 0) {
    exponent = std::max(exponent, std::min(exponent_of(std::fabs(value)), format.greatest_exponent));
  }
  return power_of_two(exponent - (format.precision - 1));
}

long double roundoff(uint32_t dtype) { return power_of_two(-format_of(dtype).precision); }

long double greatest_finite(uint32_t dtype) { return decode(dtype, infinity_bits(dtype) - 1); }

long double least_normal(uint32_t dtype) { return power_of_two(format_of(dtype).least_exponent); }

long double least_subnormal(uint32_t dtype) { return ulp(dtype, 0); }

uint64_t sign_bit(uint32_t dtype) { return uint64_t{1} << (8 * bytes_of(dtype) - 1); }

uint64_t infinity_bits(uint32_t dtype, bool negative) {
  const uint64_t magnitude = (sign_bit(dtype) - 1) & ~fraction_mask(format_of(dtype));
  return negative ? magnitude | sign_bit(dtype) : magnitude;
}

uint64_t quiet_nan_bits(uint32_t dtype) { return infinity_bits(dtype) | (fraction_mask(format_of(dtype)) + 1) >> 1; }

uint64_t signalling_nan_bits(uint32_t dtype) {
  return infinity_bits(dtype) | (fraction_mask(format_of(dtype)) + 1) >> 2;
}

bool is_nan(uint32_t dtype, uint64_t bits) {
  return is_float(dtype) && (bits & (sign_bit(dtype) - 1)) > infinity_bits(dtype);
}

bool is_zero(uint32_t dtype, uint64_t bits) {
  return is_float(dtype) ? (bits & (sign_bit(dtype) - 1)) == 0 : (bits & mask_of(dtype)) == 0;
}

bool is_subnormal(uint32_t dtype, uint64_t bits) {
  if (!is_float(dtype)) return false;
  const uint64_t magnitude = bits & (sign_bit(dtype) - 1);
  return magnitude != 0 && magnitude <= fraction_mask(format_of(dtype));
}

uint64_t next_up(uint32_t dtype, uint64_t bits) {
  const uint64_t sign = sign_bit(dtype);
  // The next float above -0 and +0 is the minimum subnormal float.
  if ((bits & (sign - 1)) == 0) return 1;
  return (bits & sign) == 0 ? bits + 1 : bits - 1;
}

uint64_t next_down(uint32_t dtype, uint64_t bits) {
  const uint64_t sign = sign_bit(dtype);
  if ((bits & (sign - 1)) == 0) return sign | 1;
  return (bits & sign) == 0 ? bits - 1 : bits + 1;
}

std::string text(uint32_t dtype, uint64_t bits) {
  const Format& format = format_of(dtype);
  const int digits = static_cast<int>(2 * format.bytes);
  if (format.kind != Kind::FLOAT) {
    return format.kind == Kind::INT ? fmt::format("{} (0x{:0{}x})", decode_integer(dtype, bits), bits, digits)
                                    : fmt::format("{} (0x{:0{}x})", bits & mask_of(dtype), bits, digits);
  }
  return fmt::format("{:.{}g} (0x{:0{}x})", static_cast<double>(decode(dtype, bits)), format.bytes > 4 ? 17 : 9, bits,
                     digits);
}

}  // namespace backplane::conformance::oracle
