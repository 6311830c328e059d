// SPDX-License-Identifier: Apache-2.0
// Converts elements of any dtype between bytes and text, and fills and prints tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "session.hpp"

namespace tool {

using Extents = std::vector<int64_t>;

std::vector<std::string_view> split(std::string_view text, char separator);
// Parses a complete decimal number (digits, sign, point, exponent), inf, nan, true or false.
// Returns false if the text is none of these.
bool parse_number(std::string_view text, double* out);

// Parses "64x32", or "scalar" for rank 0. Throws Failure.
Extents parse_shape(std::string_view text);
// Parses "32,1", or "scalar" for rank 0. Throws Failure.
Extents parse_strides(std::string_view text);
std::string shape_text(const Extents& shape);
int64_t element_count(const Extents& shape);
Extents dense_strides(const Extents& shape);

// The elements of a tensor in row-major order.
struct Values {
  uint32_t dtype = 0;
  Extents shape;
  std::vector<std::byte> bytes;

  Values() = default;
  Values(uint32_t element_type, Extents extents);
  size_t count() const { return static_cast<size_t>(element_count(shape)); }
  // Stores the low bytes of `bits`, which has the form that bph_scalar_from_f64 returns.
  void store(size_t index, uint64_t bits);
  uint64_t bits(size_t index) const;
};

// Parses an element and returns its bits. Throws Failure.
uint64_t parse_element(uint32_t dtype, std::string_view text);
std::string element_text(uint32_t dtype, uint64_t bits);
// Returns a number or a boolean. NaN and infinities become "nan", "inf" or "-inf", because JSON has
// no numbers for them.
Json element_json(uint32_t dtype, uint64_t bits);

// Fills the tensor with random values: floats uniform in [-1, 1), signed integers in -8..8,
// unsigned integers in 0..8, or booleans.
void fill_random(Values& values, uint64_t seed);
// Stores random integers that are uniform in [0, limit).
void fill_random_index(Values& values, int64_t limit, uint64_t seed);

// Formats a tensor as numpy does, with nested brackets and aligned elements. If there are more than
// `threshold` elements, shows at most `edge` items at each end of a dimension.
std::string array_text(const Values& values, size_t threshold = 1000, size_t edge = 3);
Json array_json(const Values& values, size_t limit);

}  // namespace tool
