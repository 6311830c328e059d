// SPDX-License-Identifier: Apache-2.0
// Numbers of every dtype: conversion to long double and back with one rounding, ulps, adjacent
// numbers.
#pragma once

#include <array>
#include <cfloat>
#include <cstring>
#include <string>
#include <string_view>

#include <backplane/rules/dtypes.hpp>

#include "oracle.hpp"

namespace backplane::conformance::oracle {

// long double holds every i64 and f64 exactly, and has at least 11 bits more than f64.
static_assert(LDBL_MANT_DIG >= 64, "the oracle needs a long double of 64 bits");

using Kind = backplane::rules::DtypeKind;

struct Format {
  std::string_view name{};
  Kind kind = Kind::NONE;
  bool core = false;  // required by CORE; otherwise an extension
  uint32_t bytes = 0;
  int precision = 0;       // floats: significant bits, including the hidden one
  int least_exponent = 0;  // floats: the minimum normal number is 2^least_exponent
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

// Loads element `index` of a dense tensor into the low bytes.
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

// Exact for every dtype. Any non-zero bool is 1.
long double decode(uint32_t dtype, uint64_t bits);
inline long double value_at(const Tensor& tensor, int64_t index) { return decode(tensor.dtype, load(tensor, index)); }
// The sign-extended integer. u64 arithmetic on it wraps like the dtype once the result is masked.
int64_t decode_integer(uint32_t dtype, uint64_t bits);
inline int64_t integer_at(const Tensor& tensor, int64_t index) {
  return decode_integer(tensor.dtype, load(tensor, index));
}

// Floats are rounded once to nearest even, with subnormals, and overflow to infinity. Every NaN
// becomes the canonical quiet NaN. For integers and bool `value` must be representable.
uint64_t encode(uint32_t dtype, long double value);
inline uint64_t encode_integer(uint32_t dtype, int64_t value) { return static_cast<uint64_t>(value) & mask_of(dtype); }

// The minimum and maximum of an integer dtype or bool.
long double least_integer(uint32_t dtype);
long double greatest_integer(uint32_t dtype);

// The functions below are for floats.
// The ulp at |value|, at least the least subnormal. For inf and NaN: the ulp of the greatest finite
// number.
long double ulp(uint32_t dtype, long double value);
long double roundoff(uint32_t dtype);  // u, half an ulp of 1
long double greatest_finite(uint32_t dtype);
long double least_normal(uint32_t dtype);
long double least_subnormal(uint32_t dtype);
uint64_t infinity_bits(uint32_t dtype, bool negative = false);
uint64_t quiet_nan_bits(uint32_t dtype);
uint64_t signalling_nan_bits(uint32_t dtype);
uint64_t sign_bit(uint32_t dtype);
bool is_nan(uint32_t dtype, uint64_t bits);   // false for every integer
bool is_zero(uint32_t dtype, uint64_t bits);  // either sign
bool is_subnormal(uint32_t dtype, uint64_t bits);
// The next greater or smaller number after finite `bits`. Infinity follows the maximum finite
// number.
uint64_t next_up(uint32_t dtype, uint64_t bits);
uint64_t next_down(uint32_t dtype, uint64_t bits);

// For example "1.5 (0x3fc00000)", for messages.
std::string text(uint32_t dtype, uint64_t bits);

// Create elements of each criterion.
inline Element exact_bits(uint32_t dtype, uint64_t bits) { return {decode(dtype, bits), 0, bits, Criterion::bits}; }
inline Element exact_value(uint32_t dtype, uint64_t bits) { return {decode(dtype, bits), 0, bits, Criterion::value}; }
inline Element rounded(uint32_t dtype, long double value) { return {value, 0, encode(dtype, value), Criterion::value}; }
// |got - value| <= bound. The caller has included half an ulp of the output if the class allows it.
inline Element bounded(uint32_t dtype, long double value, long double bound) {
  return {value, bound, encode(dtype, value), Criterion::bound};
}
inline Element anything(uint32_t dtype, long double value) { return {value, 0, encode(dtype, value), Criterion::any}; }

}  // namespace backplane::conformance::oracle
