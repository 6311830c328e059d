// SPDX-License-Identifier: Apache-2.0
// Parses, formats and generates elements and tensors.
#include "values.hpp"

#include <backplane/backplane.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace tool {
namespace {

// The maximum number of elements. A larger tensor would exhaust a small machine before the device
// could report an error.
constexpr int64_t kMostElements = int64_t{1} << 32;

bool is_float(uint32_t dtype) { return (BP_SET_FLOATS & BP_DTYPE_BIT(dtype)) != 0; }
bool is_signed(uint32_t dtype) { return dtype == BP_I8 || dtype == BP_I32 || dtype == BP_I64; }

float half_to_float(uint16_t half) {
  const float sign = (half & 0x8000) != 0 ? -1.0f : 1.0f;
  const int exponent = half >> 10 & 0x1F;
  const int mantissa = half & 0x3FF;
  if (exponent == 31) return mantissa != 0 ? std::numeric_limits<float>::quiet_NaN() : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

double to_double(uint32_t dtype, uint64_t bits) {
  switch (dtype) {
    case BP_F16:
      return half_to_float(static_cast<uint16_t>(bits));
    case BP_BF16:
      return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
    case BP_F32:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    default:
      return std::bit_cast<double>(bits);
  }
}

int64_t to_integer(uint32_t dtype, uint64_t bits) {
  switch (dtype) {
    case BP_I8:
      return static_cast<int8_t>(bits);
    case BP_I32:
      return static_cast<int32_t>(bits);
    default:
      return static_cast<int64_t>(bits);
  }
}

}  // namespace

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

bool parse_number(std::string_view text, double* out) {
  if (text == "true" || text == "false") {
    *out = text == "true" ? 1 : 0;
    return true;
  }
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return failure == std::errc() && end == text.data() + text.size() && !text.empty();
}

Extents parse_shape(std::string_view text) {
  Extents shape;
  if (text == "scalar") return shape;
  int64_t elements = 1;
  for (const std::string_view part : split(text, 'x')) {
    int64_t extent = 0;
    const auto [end, failure] = std::from_chars(part.data(), part.data() + part.size(), extent);
    if (failure != std::errc() || end != part.data() + part.size() || part.empty() || extent < 0) {
      fail_usage("shape '{}' has the extent '{}'; write extents of at least 0 with x between, as 64x32, or scalar",
                 text, part);
    }
    if (extent > 0 && elements > kMostElements / extent) {
      fail_usage("shape '{}' has more than {} elements, the most that this command makes", text, kMostElements);
    }
    elements *= extent > 0 ? extent : 1;
    shape.push_back(extent);
  }
  if (shape.size() > BP_MAX_RANK) fail_usage("shape '{}' has rank {}; the most is {}", text, shape.size(), BP_MAX_RANK);
  return shape;
}

Extents parse_strides(std::string_view text) {
  Extents strides;
  if (text == "scalar") return strides;
  for (const std::string_view part : split(text, ',')) {
    int64_t stride = 0;
    const auto [end, failure] = std::from_chars(part.data(), part.data() + part.size(), stride);
    if (failure != std::errc() || end != part.data() + part.size() || part.empty() || stride > kMostElements ||
        stride < -kMostElements) {
      fail_usage("strides '{}' have '{}'; write whole numbers of elements with commas between, as 32,1", text, part);
    }
    strides.push_back(stride);
  }
  return strides;
}

std::string shape_text(const Extents& shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

int64_t element_count(const Extents& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

Extents dense_strides(const Extents& shape) {
  Extents strides(shape.size(), 1);
  for (size_t i = shape.size(); i > 1; --i) strides[i - 2] = strides[i - 1] * std::max<int64_t>(shape[i - 1], 1);
  return strides;
}

Values::Values(uint32_t element_type, Extents extents) : dtype(element_type), shape(std::move(extents)) {
  bytes.resize(count() * bph_dtype_bytes(dtype));
}

void Values::store(size_t index, uint64_t bits) {
  const size_t size = bph_dtype_bytes(dtype);
  std::memcpy(bytes.data() + index * size, &bits, size);
}

uint64_t Values::bits(size_t index) const {
  const size_t size = bph_dtype_bytes(dtype);
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + index * size, size);
  return bits;
}

uint64_t parse_element(uint32_t dtype, std::string_view text) {
  int64_t integer = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), integer);
  if (failure == std::errc() && end == text.data() + text.size() && !text.empty()) {
    return bph_scalar_from_i64(dtype, integer);
  }
  double number = 0;
  if (!parse_number(text, &number)) fail_usage("'{}' is not a value of dtype {}", text, bph_dtype_name(dtype));
  return bph_scalar_from_f64(dtype, number);
}

std::string element_text(uint32_t dtype, uint64_t bits) {
  if (dtype == BP_BOOL) return bits != 0 ? "true" : "false";
  if (!is_float(dtype)) return fmt::format("{}", to_integer(dtype, bits));
  const double value = to_double(dtype, bits);
  if (dtype == BP_F64) return fmt::format("{:.8g}", value);
  return dtype == BP_F32 ? fmt::format("{:.6g}", value) : fmt::format("{:.4g}", value);
}

Json element_json(uint32_t dtype, uint64_t bits) {
  if (dtype == BP_BOOL) return bits != 0;
  if (!is_float(dtype)) return to_integer(dtype, bits);
  const double value = to_double(dtype, bits);
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

void fill_random(Values& values, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < values.count(); ++i) {
    const uint64_t draw = random();
    if (values.dtype == BP_BOOL) {
      values.store(i, draw >> 63);
    } else if (is_float(values.dtype)) {
      values.store(i, bph_scalar_from_f64(values.dtype, static_cast<double>(draw >> 11) * 0x1p-52 - 1.0));
    } else {
      const bool negative = is_signed(values.dtype);
      const int64_t number = static_cast<int64_t>(draw % (negative ? 17 : 9)) - (negative ? 8 : 0);
      values.store(i, bph_scalar_from_i64(values.dtype, number));
    }
  }
}

void fill_random_index(Values& values, int64_t limit, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < values.count(); ++i) {
    values.store(i, bph_scalar_from_i64(values.dtype,
                                        limit > 0 ? static_cast<int64_t>(random() % static_cast<uint64_t>(limit)) : 0));
  }
}

}  // namespace tool
