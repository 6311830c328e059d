// SPDX-License-Identifier: Apache-2.0
#include "cases/numeric/fill_data.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cases/numeric/values.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

using namespace oracle;

namespace {

// Stores `bits` in a random element.
void plant(Tensor& tensor, uint64_t bits, Random& random) {
  if (tensor.count() > 0) store(tensor, static_cast<int64_t>(random() % static_cast<uint64_t>(tensor.count())), bits);
}

template <typename Value>
void fill_each(Tensor& tensor, Value value) {
  for (int64_t i = 0; i < tensor.count(); ++i) store(tensor, i, encode(tensor.dtype, value(i)));
}

void fill_float(Tensor& tensor, DataPattern data, Random& random) {
  const uint32_t dtype = tensor.dtype;
  const int64_t half = tensor.count() / 2;
  const auto zero_mean = [&](int64_t) { return 2 * unit(random) - 1; };
  switch (data) {
    case DataPattern::spikes:
      return fill_each(tensor, [&](int64_t i) { return zero_mean(i) * (i % 61 == 7 ? 1e4L : 1); });
    case DataPattern::positive:
      return fill_each(tensor, [&](int64_t) { return unit(random); });
    case DataPattern::tenth:
      return fill_each(tensor, [](int64_t) { return 0.1L; });
    case DataPattern::cancel:
      // Each number is followed by its negative; a few negatives are slightly different.
      return fill_each(tensor, [&, last = 0.0L](int64_t i) mutable {
        if (i % 2 == 0) return last = 1000 * zero_mean(i);
        return i % 31 == 1 ? -last * (1 + 1e-4L) : -last;
      });
    case DataPattern::partial: {
      // After a few elements, the partial sum is an odd integer that the dtype cannot represent. The final sum is
      // small.
      const long double step = static_cast<long double>(whole_limit(dtype)) / 4 - 1;
      return fill_each(tensor, [=](int64_t i) { return i < half ? step : i < 2 * half ? -step : 1; });
    }
    case DataPattern::negative:
      return fill_each(tensor, [&](int64_t) { return -unit(random) - 0x1p-6L; });
    case DataPattern::overflow: {
      const long double greatest = greatest_finite(dtype);
      return fill_each(tensor,
                       [&](int64_t i) { return greatest * (i % 2 == 0 ? 0.75L : -0.75L) * (1 - unit(random) / 8); });
    }
    case DataPattern::few:
      return fill_each(tensor, [&](int64_t) { return static_cast<long double>(random() % 4); });
    case DataPattern::equal:
      return fill_each(tensor, [](int64_t) { return 1.5L; });
    default:
      return fill_each(tensor, zero_mean);
  }
}

void fill_integer(Tensor& tensor, DataPattern data, Random& random) {
  const std::vector<uint64_t>& specials = special_bits(tensor.dtype);
  for (int64_t i = 0; i < tensor.count(); ++i) {
    uint64_t bits = any_bits(tensor.dtype, random);
    if (data == DataPattern::few) bits = tensor.dtype == BP_BOOL ? random() % 2 : random() % 4;
    if (data == DataPattern::equal) bits = 1;
    if (data == DataPattern::special) bits = specials[random() % specials.size()];
    if (data == DataPattern::negative && is_signed(tensor.dtype))
      bits |= encode_integer(tensor.dtype, INT64_MIN >> (64 - 8 * bytes_of(tensor.dtype)));
    store(tensor, i, bits);
  }
}

// Returns a float with an exponent in [from, to], a random sign and a random fraction.
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

// Returns a value midway between two adjacent numbers of `to`, or a value whose distance from the
// midpoint is one ulp of `from`.
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

// Points at which an implementation of a function may switch its algorithm, table or range
// reduction.
constexpr long double kThresholds[] = {0,       0x1p-126L, 0x1p-24L, 0x1p-12L, 0x1p-5L,   0.25L,   0.5L,    0.625L,
                                       0.6931L, 0.7853L,   0.8442L,  1,        1.25L,     1.4142L, 1.5707L, 2,
                                       2.3562L, 2.857L,    3.1415L,  3.9L,     4,         4.7123L, 5.9L,    6.2831L,
                                       8,       9.01L,     10.3972L, 11.0898L, 16.6L,     17.32L,  20,      25.1327L,
                                       64,      87.3365L,  88.7228L, 88.3762L, 103.9720L, 708.39L, 709.78L, 745.13L,
                                       0x1p13L, 0x1p15L,   0x1p20L,  0x1p22L,  0x1p24L,   0x1p31L, 0x1p32L, 0x1p63L};

void fill_windows(Tensor& tensor, Random& random) {
  const int64_t count = tensor.count();
  const auto windows = static_cast<int64_t>(2 * std::size(kThresholds));
  const int64_t length = std::max<int64_t>(count / windows, 1);
  const uint64_t shift = random() % 64;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t window = i / length % windows;
    const uint64_t middle = encode(tensor.dtype, kThresholds[window / 2]);
    const int64_t step = i % length - length / 2 + static_cast<int64_t>(shift);
    const auto magnitude =
        std::clamp<int64_t>(static_cast<int64_t>(middle) + step, 0, static_cast<int64_t>(infinity_bits(tensor.dtype)));
    store(tensor, i, static_cast<uint64_t>(magnitude) | (window % 2 == 0 ? 0 : sign_bit(tensor.dtype)));
  }
}

// Returns the value of element `index` in the pattern `tags`. For unary functions of class U, the
// value is in a range in which different arguments give different results.
uint64_t tag_of(uint32_t op, uint32_t dtype, int64_t index, size_t operand) {
  const Operator& row = *operator_of(op);
  if (row.accuracy.letter != 'U' || row.inputs_max != 1) return tag_bits(dtype, index, operand);
  const long double fraction = static_cast<long double>((index * 37 + 1) % 127) / 64;
  const bool negative = op != BP_OP_SQRT && op != BP_OP_RSQRT && op != BP_OP_LOG && index % 3 == 0;
  return encode(dtype, negative ? -fraction : fraction + 1.0L / 64);
}

}  // namespace

int64_t whole_limit(uint32_t dtype) { return int64_t{1} << std::min(format_of(dtype).precision, 24); }

void fill_integers(Tensor& tensor, int64_t limit, Random& random) {
  const auto span = static_cast<uint64_t>(2 * limit + 1);
  fill_each(tensor, [&](int64_t) { return static_cast<long double>(static_cast<int64_t>(random() % span) - limit); });
}

void fill(Tensor& tensor, DataPattern data, int64_t terms, Random& random) {
  const uint32_t dtype = tensor.dtype;
  if (!is_float(dtype)) return fill_integer(tensor, data, random);
  if (data == DataPattern::integers) {
    // The sum must stay in the range in which the dtype represents every integer. The sum of n terms with random signs
    // is about sqrt(n) times as large as one term.
    const auto walk = static_cast<int64_t>(std::sqrt(static_cast<double>(terms))) + 1;
    const int64_t shown = whole_limit(dtype) / (4 * walk), exact = (int64_t{1} << 24) / std::max<int64_t>(terms, 1) - 1;
    return fill_integers(tensor, std::clamp<int64_t>(std::min(shown, exact), 1, 1000), random);
  }
  if (data == DataPattern::special) {
    const std::vector<uint64_t>& specials = special_bits(dtype);
    for (int64_t i = 0; i < tensor.count(); ++i) store(tensor, i, specials[random() % specials.size()]);
    return;
  }
  fill_float(tensor, data, random);
  if (data == DataPattern::one_inf || data == DataPattern::two_infs) plant(tensor, encode(dtype, kInfinity), random);
  if (data == DataPattern::two_infs) plant(tensor, encode(dtype, -kInfinity), random);
  if (data == DataPattern::one_nan) plant(tensor, quiet_nan_bits(dtype), random);
}

void fill_inputs(std::vector<Tensor>& inputs, const Problem& problem, uint32_t to, Random& random) {
  for (size_t operand = 0; operand < inputs.size(); ++operand) {
    Tensor& tensor = inputs[operand];
    const uint32_t dtype = tensor.dtype;
    const int64_t count = tensor.count();
    if (problem.pattern == DataPattern::windows && is_float(dtype)) {
      fill_windows(tensor, random);
      continue;
    }
    const std::vector<uint64_t>& specials = special_bits(dtype);
    const uint64_t start = random();
    for (int64_t i = 0; i < count; ++i) {
      const auto index = static_cast<uint64_t>(i);
      uint64_t bits = 0;
      switch (problem.pattern) {
        case DataPattern::tags:
          bits = tag_of(problem.op, dtype, i, operand);
          break;
        case DataPattern::uniform:
          bits = uniform_bits(dtype, random);
          break;
        case DataPattern::bits:
          bits = any_bits(dtype, random);
          break;
        case DataPattern::special: {
          // Operand k uses digit k of the element index, in a base equal to the number of special
          // values. So every combination of special values occurs.
          uint64_t digit = index + start;
          for (size_t k = 0; k < operand; ++k) digit /= special_bits(inputs[k].dtype).size();
          bits = specials[(operand == 0 ? index + start : digit) % specials.size()];
          break;
        }
        case DataPattern::bounds:
          bits = bounds_bits(dtype, random);
          break;
        case DataPattern::cancel_pairs:
          bits = operand == 0 || inputs[operand - 1].dtype != dtype
                     ? any_finite(dtype, random)
                     : near_bits(dtype, load(inputs[operand - 1], i), random);
          break;
        case DataPattern::zeros:
          bits = zeros_bits(dtype, random);
          break;
        case DataPattern::halfway:
          bits = halfway_bits(dtype, to, random);
          break;
        case DataPattern::exhaustive:
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
