// SPDX-License-Identifier: Apache-2.0
#include "cases/numeric/values.hpp"

#include <algorithm>
#include <cmath>

#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

using namespace oracle;

namespace {

void add_with_neighbours(std::vector<uint64_t>& list, uint32_t dtype, long double value) {
  const uint64_t bits = encode(dtype, value);
  for (const uint64_t each : {next_down(dtype, bits), bits, next_up(dtype, bits)}) {
    list.push_back(each);
    list.push_back(each ^ sign_bit(dtype));
  }
}

std::vector<uint64_t> special_floats(uint32_t dtype) {
  const uint64_t sign = sign_bit(dtype), infinity = infinity_bits(dtype);
  std::vector<uint64_t> list = {
      0, sign,     infinity,     infinity | sign,      quiet_nan_bits(dtype), signalling_nan_bits(dtype) | sign,
      1, 1 | sign, infinity - 1, (infinity - 1) | sign};
  add_with_neighbours(list, dtype, least_normal(dtype));
  add_with_neighbours(list, dtype, 1);
  for (const long double value : {0.5L, 1.5L, 2.0L, 2.5L, 3.0L}) {
    list.push_back(encode(dtype, value));
    list.push_back(encode(dtype, -value));
  }
  return list;
}

std::vector<uint64_t> special_integers(uint32_t dtype) {
  if (dtype == BP_BOOL) return {0, 1};
  const auto width = static_cast<int>(8 * bytes_of(dtype));
  const uint64_t mask = mask_of(dtype), top = uint64_t{1} << (width - 1);
  std::vector<uint64_t> list = {0, 1, mask, 2, 3, mask - 1, mask - 2, top, top - 1, top + 1, top - 2};
  for (const int bit : {width / 4, width / 2, width - 2}) list.push_back(uint64_t{1} << bit);
  for (const int amount : {width - 1, width, width + 1, 2 * width}) list.push_back(static_cast<uint64_t>(amount));
  list.push_back(7);
  list.push_back((uint64_t{0} - 7) & mask);
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

}  // namespace

Tensor make_tensor(uint32_t dtype, const std::vector<int64_t>& shape) {
  Tensor tensor{dtype, shape, {}};
  tensor.bytes.resize(static_cast<size_t>(tensor.count()) * bytes_of(dtype));
  return tensor;
}

long double unit(Random& random) { return static_cast<long double>(random()) * 0x1p-64L; }

uint64_t any_bits(uint32_t dtype, Random& random) { return random() & (dtype == BP_BOOL ? 1 : mask_of(dtype)); }

uint64_t uniform_bits(uint32_t dtype, Random& random) {
  return is_float(dtype) ? encode(dtype, 2 * unit(random) - 1) : any_bits(dtype, random);
}

uint64_t any_finite(uint32_t dtype, Random& random) {
  if (!is_float(dtype)) return any_bits(dtype, random);
  return random() % infinity_bits(dtype) | (random() % 2 == 0 ? 0 : sign_bit(dtype));
}

const std::vector<uint64_t>& special_bits(uint32_t dtype) {
  static const auto lists = [] {
    std::array<std::vector<uint64_t>, BP_DTYPE_LIMIT> made;
    for (uint32_t each = 0; each < BP_DTYPE_LIMIT; ++each) {
      if (bytes_of(each) != 0) made[each] = is_float(each) ? special_floats(each) : special_integers(each);
    }
    return made;
  }();
  return lists[dtype];
}

uint64_t tag_bits(uint32_t dtype, int64_t index, size_t operand) {
  // The widths of vectors and tiles are powers of two. The periods are odd, so two elements have
  // different tags if their distance is a power of two.
  constexpr int64_t periods[] = {241, 127, 113, 109};
  constexpr int64_t factors[] = {1, 5, 11, 17};
  if (dtype == BP_BOOL) return (static_cast<uint64_t>(index * factors[operand % 4]) * 2654435761u >> 13) & 1;
  const bool wide = bytes_of(dtype) >= 4;
  const int64_t period = (wide             ? 16
                          : dtype == BP_I8 ? 0
                                           : 1) *
                             periods[operand % 4] +
                         (wide             ? 3
                          : dtype == BP_I8 ? 61
                                           : 0);
  const int64_t tag = 1 + (index * factors[operand % 4]) % period;
  const bool negative = (is_float(dtype) || is_signed(dtype)) && index % 5 == 4;
  const int64_t value = negative ? -tag : tag;
  return is_float(dtype) ? encode(dtype, static_cast<long double>(value)) : encode_integer(dtype, value);
}

}  // namespace backplane::conformance::numeric
