// SPDX-License-Identifier: Apache-2.0
#include "cases/numeric/values.hpp"

#include <algorithm>
#include <cmath>

#include "oracle/number.hpp"
#include "oracle/table.hpp"

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

// A float whose exponent lies in [from, to], any sign and fraction.
uint64_t with_exponent(uint32_t dtype, int from, int to, Random& random) {
  const int exponent = from + static_cast<int>(random() % static_cast<uint64_t>(to - from + 1));
  const long double magnitude = std::ldexp(1 + unit(random), exponent);
  const uint64_t bits = std::min(encode(dtype, magnitude), infinity_bits(dtype) - 1);
  return random() % 2 == 0 ? bits : bits | sign_bit(dtype);
}

uint64_t bounds_bits(uint32_t dtype, Random& random) {
  if (!is_float(dtype)) {
    const std::vector<uint64_t>& ends = special_bits(dtype);
    return (ends[random() % ends.size()] + random() % 5 - 2) & mask_of(dtype);
  }
  const Format& format = format_of(dtype);
  switch (random() % 4) {
    case 0:
      return with_exponent(dtype, format.greatest_exponent - 1, format.greatest_exponent, random);
    case 1:
      return with_exponent(dtype, format.least_exponent - 3, format.least_exponent + 1, random);
    case 2:
      return with_exponent(dtype, format.greatest_exponent / 2 - 1, format.greatest_exponent / 2 + 1, random);
    default:
      return with_exponent(dtype, -format.precision - 2, format.precision + 2, random);
  }
}

uint64_t zeros_bits(uint32_t dtype, Random& random) {
  switch (random() % 4) {
    case 0:
      return 0;
    case 1:
      return is_float(dtype) ? sign_bit(dtype) : 0;
    default:
      return uniform_bits(dtype, random);
  }
}

uint64_t near_bits(uint32_t dtype, uint64_t other, Random& random) {
  if (!is_float(dtype)) return (other + random() % 3 - 1) & mask_of(dtype) & (dtype == BP_BOOL ? 1 : ~uint64_t{0});
  if (is_nan(dtype, other) || (other & infinity_bits(dtype)) == infinity_bits(dtype)) return other;
  uint64_t bits = other;
  for (uint64_t steps = random() % 3; steps > 0; --steps)
    bits = random() % 2 == 0 ? next_up(dtype, bits) : next_down(dtype, bits);
  return random() % 2 == 0 ? bits : bits ^ sign_bit(dtype);
}

// In the middle of two neighbours of `to`, or one step of `from` beside it.
uint64_t halfway_bits(uint32_t from, uint32_t to, Random& random) {
  long double middle = 0;
  if (is_float(to)) {
    const uint64_t low = random() % 2 == 0
                             ? random() % infinity_bits(to)
                             : encode(to, unit(random) * std::ldexp(1.0L, static_cast<int>(random() % 24)));
    const long double below = decode(to, low);
    middle = low + 1 >= infinity_bits(to) ? below + ulp(to, below) / 2 : (below + decode(to, low + 1)) / 2;
  } else {
    const long double end = random() % 2 == 0 ? greatest_integer(to) : least_integer(to);
    const long double whole = random() % 2 == 0 ? end : static_cast<long double>(random() % 300);
    middle = whole + (static_cast<long double>(random() % 5) - 2) / 2;
  }
  if (random() % 2 == 0) middle = -middle;
  if (!is_float(from)) {
    const long double whole = std::nearbyint(middle);
    return encode_integer(from, static_cast<int64_t>(std::clamp(whole, least_integer(from), greatest_integer(from))));
  }
  uint64_t bits = encode(from, middle);
  if ((bits & infinity_bits(from)) == infinity_bits(from)) return bits;
  const uint64_t step = random() % 3;
  return step == 0 ? bits : step == 1 ? next_up(from, bits) : next_down(from, bits);
}

// Where an elementary function, a table or a reduction of its argument may change its way.
constexpr long double thresholds[] = {0,       0x1p-126L, 0x1p-24L, 0x1p-12L, 0x1p-5L,   0.25L,   0.5L,    0.625L,
                                      0.6931L, 0.7853L,   0.8442L,  1,        1.25L,     1.4142L, 1.5707L, 2,
                                      2.3562L, 2.857L,    3.1415L,  3.9L,     4,         4.7123L, 5.9L,    6.2831L,
                                      8,       9.01L,     10.3972L, 11.0898L, 16.6L,     17.32L,  20,      25.1327L,
                                      64,      87.3365L,  88.7228L, 88.3762L, 103.9720L, 708.39L, 709.78L, 745.13L,
                                      0x1p13L, 0x1p15L,   0x1p20L,  0x1p22L,  0x1p24L,   0x1p31L, 0x1p32L, 0x1p63L};

void fill_windows(Tensor& tensor, Random& random) {
  const int64_t count = tensor.count();
  const auto windows = static_cast<int64_t>(2 * std::size(thresholds));
  const int64_t length = std::max<int64_t>(count / windows, 1);
  const uint64_t shift = random() % 64;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t window = i / length % windows;
    const uint64_t middle = encode(tensor.dtype, thresholds[window / 2]);
    const int64_t step = i % length - length / 2 + static_cast<int64_t>(shift);
    const auto magnitude =
        std::clamp<int64_t>(static_cast<int64_t>(middle) + step, 0, static_cast<int64_t>(infinity_bits(tensor.dtype)));
    store(tensor, i, static_cast<uint64_t>(magnitude) | (window % 2 == 0 ? 0 : sign_bit(tensor.dtype)));
  }
}

// Tags within what the function tells apart, where plain integers would all end at one value.
uint64_t tag_of(uint32_t op, uint32_t dtype, int64_t index, size_t operand) {
  const Operator& row = *operator_of(op);
  if (row.accuracy.letter != 'U' || row.inputs_max != 1) return tag_bits(dtype, index, operand);
  const long double fraction = static_cast<long double>((index * 37 + 1) % 127) / 64;  // below 2
  const bool negative = op != BP_OP_SQRT && op != BP_OP_RSQRT && op != BP_OP_LOG && index % 3 == 0;
  return encode(dtype, negative ? -fraction : fraction + 1.0L / 64);
}

}  // namespace

Tensor make_tensor(uint32_t dtype, const std::vector<int64_t>& shape) {
  Tensor tensor{dtype, shape, {}};
  tensor.bytes.resize(static_cast<size_t>(tensor.count()) * bytes_of(dtype));
  return tensor;
}

long double unit(Random& random) { return std::ldexp(static_cast<long double>(random()), -64); }

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
  // Primes, so that no power of two of a tile or a vector makes two tags equal.
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

void fill_inputs(std::vector<Tensor>& inputs, const Spec& spec, uint32_t to, Random& random) {
  for (size_t operand = 0; operand < inputs.size(); ++operand) {
    Tensor& tensor = inputs[operand];
    const uint32_t dtype = tensor.dtype;
    const int64_t count = tensor.count();
    if (spec.values == Values::windows && is_float(dtype)) {
      fill_windows(tensor, random);
      continue;
    }
    const std::vector<uint64_t>& specials = special_bits(dtype);
    const uint64_t start = random();
    for (int64_t i = 0; i < count; ++i) {
      const auto index = static_cast<uint64_t>(i);
      uint64_t bits = 0;
      switch (spec.values) {
        case Values::tags:
          bits = tag_of(spec.op, dtype, i, operand);
          break;
        case Values::uniform:
          bits = uniform_bits(dtype, random);
          break;
        case Values::bits:
          bits = any_bits(dtype, random);
          break;
        case Values::special: {
          // Digit `operand` of the element's number: every pair in turn.
          uint64_t digit = index + start;
          for (size_t k = 0; k < operand; ++k) digit /= special_bits(inputs[k].dtype).size();
          bits = specials[(operand == 0 ? index + start : digit) % specials.size()];
          break;
        }
        case Values::bounds:
          bits = bounds_bits(dtype, random);
          break;
        case Values::cancel:
          bits = operand == 0 || inputs[operand - 1].dtype != dtype
                     ? any_finite(dtype, random)
                     : near_bits(dtype, load(inputs[operand - 1], i), random);
          break;
        case Values::zeros:
          bits = zeros_bits(dtype, random);
          break;
        case Values::halfway:
          bits = halfway_bits(dtype, to, random);
          break;
        case Values::exhaustive:
          bits = (operand == 0 ? index : index >> (8 * bytes_of(dtype))) & mask_of(dtype) &
                 (dtype == BP_BOOL ? 1 : ~uint64_t{0});
          break;
        default:
          bits = any_bits(dtype, random);
      }
      store(tensor, i, bits);
    }
  }
}

}  // namespace backplane::conformance::numeric
