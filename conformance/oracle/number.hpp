// SPDX-License-Identifier: Apache-2.0
// Converts numbers of every dtype to long double and back with a single rounding, and computes ulps
// and adjacent numbers.
#pragma once

#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include <backplane/rules/dtypes.hpp>

#include "oracle.hpp"

namespace backplane::conformance::oracle {

// long double represents every i64 and f64 exactly, with at least 11 bits more than f64.
static_assert(LDBL_MANT_DIG >= 64, "the oracle needs a long double of 64 bits");

inline constexpr long double kInfinity = std::numeric_limits<long double>::infinity();

using Kind = backplane::rules::DtypeKind;

struct Format {
  std::string_view name{};
  Kind kind = Kind::NONE;
  bool core = false;  // whether CORE requires the dtype; otherwise it is an extension
  uint32_t bytes = 0;
  int precision = 0;       // significant bits of a float, including the hidden bit
  int least_exponent = 0;  // a float's minimum normal number is 2^least_exponent
  int greatest_exponent = 0;
};

constexpr std::array<Format, BP_DTYPE_LIMIT> make_formats() {
  std::array<Format, BP_DTYPE_LIMIT> kFormats{};
  for (const backplane::rules::DtypeInfo& row : backplane::rules::dtype_rows()) {
    kFormats[row.id] = {.name = row.name, .kind = row.kind, .core = row.core, .bytes = row.bytes};
  }
  struct FloatShape {
    uint32_t dtype;
    int precision;
    int greatest_exponent;
  };
  for (const FloatShape& shape : {FloatShape{BP_F16, 11, 15}, FloatShape{BP_BF16, 8, 127}, FloatShape{BP_F32, 24, 127},
                                  FloatShape{BP_F64, 53, 1023}}) {
    kFormats[shape.dtype].precision = shape.precision;
    kFormats[shape.dtype].greatest_exponent = shape.greatest_exponent;
    kFormats[shape.dtype].least_exponent = 1 - shape.greatest_exponent;
  }
  return kFormats;
}
inline constexpr std::array<Format, BP_DTYPE_LIMIT> kFormats = make_formats();

// Returns a Format of kind NONE for a number that is not a dtype.
constexpr const Format& format_of(uint32_t dtype) { return kFormats[dtype < BP_DTYPE_LIMIT ? dtype : 0]; }
inline uint32_t bytes_of(uint32_t dtype) { return format_of(dtype).bytes; }
inline bool is_float(uint32_t dtype) { return format_of(dtype).kind == Kind::FLOAT; }
inline bool is_signed(uint32_t dtype) { return format_of(dtype).kind == Kind::INT; }
inline bool is_integer(uint32_t dtype) {
  return format_of(dtype).kind == Kind::INT || format_of(dtype).kind == Kind::UINT;
}

// Loads the element `index` of a dense tensor into the low bytes of the result.
inline uint64_t load(const Tensor& tensor, int64_t index) {
  const unsigned char* const at = tensor.bytes.data() + static_cast<size_t>(index) * bytes_of(tensor.dtype);
  uint64_t bits = 0;
  switch (bytes_of(tensor.dtype)) {
    case 1:
      return *at;
    case 2:
      std::memcpy(&bits, at, 2);
      break;
    case 4:
      std::memcpy(&bits, at, 4);
      break;
    default:
      std::memcpy(&bits, at, 8);
  }
  return bits;
}
inline void store(Tensor& tensor, int64_t index, uint64_t bits) {
  const size_t bytes = bytes_of(tensor.dtype);
  std::memcpy(tensor.bytes.data() + static_cast<size_t>(index) * bytes, &bits, bytes);
}
inline uint64_t mask_of(uint32_t dtype) { return ~uint64_t{0} >> (64 - 8 * bytes_of(dtype)); }

// Decodes every dtype exactly. Every non-zero bool becomes 1.
long double decode(uint32_t dtype, uint64_t bits);
// Returns 2^exponent. Most exponents need no call of the C library, which is slow for long double.
inline long double power_of_two(int exponent) {
  if (exponent < -1022 || exponent > 1023) return std::ldexp(1.0L, exponent);
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}
// Returns the exponent e of a finite number above 0, where 2^e <= value < 2^(e + 1).
inline int exponent_of(long double value) {
  if (value < 0x1p-1022L || value >= 0x1p1023L) return std::ilogb(value);
  // The conversion may round up to the next power of two.
  const auto bits = std::bit_cast<uint64_t>(static_cast<double>(value));
  const int exponent = static_cast<int>(bits >> 52) - 1023;
  return power_of_two(exponent) > value ? exponent - 1 : exponent;
}
inline long double value_at(const Tensor& tensor, int64_t index) { return decode(tensor.dtype, load(tensor, index)); }
// Returns the integer, extended to 64 bits. Unsigned 64-bit arithmetic on the result, followed by
// mask_of, wraps like arithmetic in the dtype.
int64_t decode_integer(uint32_t dtype, uint64_t bits);
inline int64_t integer_at(const Tensor& tensor, int64_t index) {
  return decode_integer(tensor.dtype, load(tensor, index));
}

// If `dtype` is a float, rounds `value` once to nearest even, including subnormal numbers. Overflow
// gives infinity, and every NaN becomes the canonical quiet NaN. An integer dtype or bool must
// represent `value` exactly.
uint64_t encode(uint32_t dtype, long double value);
inline uint64_t encode_integer(uint32_t dtype, int64_t value) { return static_cast<uint64_t>(value) & mask_of(dtype); }

// These functions return the minimum and the maximum of an integer dtype or bool.
long double least_integer(uint32_t dtype);
long double greatest_integer(uint32_t dtype);

// Returns the ulp at |value|, which is at least the minimum subnormal number. For an infinity or
// NaN, returns the ulp of the maximum finite number. `dtype` must be a float.
long double ulp(uint32_t dtype, long double value);
long double roundoff(uint32_t dtype);  // returns u, which is half an ulp of 1
long double greatest_finite(uint32_t dtype);
long double least_normal(uint32_t dtype);
long double least_subnormal(uint32_t dtype);
uint64_t infinity_bits(uint32_t dtype, bool negative = false);
uint64_t quiet_nan_bits(uint32_t dtype);
uint64_t signalling_nan_bits(uint32_t dtype);
uint64_t sign_bit(uint32_t dtype);
bool is_nan(uint32_t dtype, uint64_t bits);   // returns false for every integer dtype
bool is_zero(uint32_t dtype, uint64_t bits);  // returns true for a zero of either sign
bool is_subnormal(uint32_t dtype, uint64_t bits);
// These functions return the next greater and the next smaller float after the finite float `bits`. Infinity follows
// the maximum finite float.
uint64_t next_up(uint32_t dtype, uint64_t bits);
uint64_t next_down(uint32_t dtype, uint64_t bits);

// Returns text for messages, for example "1.5 (0x3fc00000)".
std::string text(uint32_t dtype, uint64_t bits);

// Each of these functions creates an Element with one criterion.
inline Element exact_bits(uint32_t dtype, uint64_t bits) { return {decode(dtype, bits), 0, bits, Criterion::bits}; }
inline Element exact_value(uint32_t dtype, uint64_t bits) { return {decode(dtype, bits), 0, bits, Criterion::value}; }
inline Element rounded(uint32_t dtype, long double value) { return {value, 0, encode(dtype, value), Criterion::value}; }
// Returns an Element that accepts `got` if |got - value| <= bound. `bound` must include half an ulp for the final
// rounding if the accuracy class has that term.
inline Element bounded(uint32_t dtype, long double value, long double bound) {
  return {value, bound, encode(dtype, value), Criterion::bound};
}
inline Element nan_or_zero(uint32_t dtype) { return {0, 0, encode(dtype, 0), Criterion::nan_or_zero}; }
inline Element anything(uint32_t dtype, long double value) { return {value, 0, encode(dtype, value), Criterion::any}; }

}  // namespace backplane::conformance::oracle
