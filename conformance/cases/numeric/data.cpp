// SPDX-License-Identifier: Apache-2.0
#include "cases/numeric/data.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cases/numeric/values.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

constexpr std::string_view names[] = {"integers", "zero_mean", "spikes",   "positive", "tenth",
                                      "cancel",   "partial",   "one_inf",  "two_infs", "one_nan",
                                      "special",  "overflow",  "negative", "few",      "equal"};
static_assert(std::size(names) == static_cast<size_t>(Data::count));

constexpr long double infinity = std::numeric_limits<long double>::infinity();

// Any element, put by chance.
void plant(oracle::Tensor& tensor, uint64_t bits, Random& random) {
  if (tensor.count() > 0)
    oracle::store(tensor, static_cast<int64_t>(random() % static_cast<uint64_t>(tensor.count())), bits);
}

template <typename Value>
void fill_each(oracle::Tensor& tensor, Value value) {
  for (int64_t i = 0; i < tensor.count(); ++i) oracle::store(tensor, i, oracle::encode(tensor.dtype, value(i)));
}

void fill_float(oracle::Tensor& tensor, Data data, Random& random) {
  const uint32_t dtype = tensor.dtype;
  const int64_t half = tensor.count() / 2;
  const auto zero_mean = [&](int64_t) { return 2 * unit(random) - 1; };
  switch (data) {
    case Data::spikes:
      return fill_each(tensor, [&](int64_t i) { return zero_mean(i) * (i % 61 == 7 ? 1e4L : 1); });
    case Data::positive:
      return fill_each(tensor, [&](int64_t) { return unit(random); });
    case Data::tenth:
      return fill_each(tensor, [](int64_t) { return 0.1L; });
    case Data::cancel:
      // Each number is followed by its negative, one of many a little off.
      return fill_each(tensor, [&, last = 0.0L](int64_t i) mutable {
        if (i % 2 == 0) return last = 1000 * zero_mean(i);
        return i % 31 == 1 ? -last * (1 + 1e-4L) : -last;
      });
    case Data::partial: {
      // An odd number beyond the whole ones of the dtype is in reach after a few elements, and gone at the end.
      const long double step = static_cast<long double>(whole_limit(dtype)) / 4 - 1;
      return fill_each(tensor, [=](int64_t i) { return i < half ? step : i < 2 * half ? -step : 1; });
    }
    case Data::negative:
      return fill_each(tensor, [&](int64_t) { return -unit(random) - 0x1p-6L; });
    case Data::overflow: {
      const long double greatest = oracle::greatest_finite(dtype);
      return fill_each(tensor,
                       [&](int64_t i) { return greatest * (i % 2 == 0 ? 0.75L : -0.75L) * (1 - unit(random) / 8); });
    }
    case Data::few:
      return fill_each(tensor, [&](int64_t) { return static_cast<long double>(random() % 4); });
    case Data::equal:
      return fill_each(tensor, [](int64_t) { return 1.5L; });
    default:
      return fill_each(tensor, zero_mean);
  }
}

void fill_integer(oracle::Tensor& tensor, Data data, Random& random) {
  const std::vector<uint64_t>& specials = special_bits(tensor.dtype);
  for (int64_t i = 0; i < tensor.count(); ++i) {
    uint64_t bits = any_bits(tensor.dtype, random);
    if (data == Data::few) bits = tensor.dtype == BP_BOOL ? random() % 2 : random() % 4;
    if (data == Data::equal) bits = 1;
    if (data == Data::special) bits = specials[random() % specials.size()];
    if (data == Data::negative && oracle::is_signed(tensor.dtype))
      bits |= oracle::encode_integer(tensor.dtype, INT64_MIN >> (64 - 8 * oracle::bytes_of(tensor.dtype)));
    oracle::store(tensor, i, bits);
  }
}

}  // namespace

std::string_view name_of(Data data) { return names[static_cast<size_t>(data)]; }

std::string_view requirement_of(Data data) {
  switch (data) {
    case Data::one_inf:
    case Data::two_infs:
    case Data::one_nan:
      return "BP-NUM-043";
    case Data::zero_mean:
    case Data::spikes:
    case Data::positive:
    case Data::tenth:
    case Data::cancel:
      return "BP-NUM-041";
    default:
      return "BP-NUM-040";
  }
}

int64_t whole_limit(uint32_t dtype) { return int64_t{1} << std::min(oracle::format_of(dtype).precision, 24); }

void fill_integers(oracle::Tensor& tensor, int64_t limit, Random& random) {
  const auto span = static_cast<uint64_t>(2 * limit + 1);
  fill_each(tensor, [&](int64_t) { return static_cast<long double>(static_cast<int64_t>(random() % span) - limit); });
}

void fill(oracle::Tensor& tensor, Data data, int64_t terms, Random& random) {
  const uint32_t dtype = tensor.dtype;
  if (!oracle::is_float(dtype)) return fill_integer(tensor, data, random);
  if (data == Data::integers) {
    // The sum has to stay where one more or less still shows after the last rounding: it walks root n steps.
    const auto walk = static_cast<int64_t>(std::sqrt(static_cast<double>(terms))) + 1;
    const int64_t shown = whole_limit(dtype) / (4 * walk), exact = (int64_t{1} << 24) / std::max<int64_t>(terms, 1) - 1;
    return fill_integers(tensor, std::clamp<int64_t>(std::min(shown, exact), 1, 1000), random);
  }
  if (data == Data::special) {
    const std::vector<uint64_t>& specials = special_bits(dtype);
    for (int64_t i = 0; i < tensor.count(); ++i) oracle::store(tensor, i, specials[random() % specials.size()]);
    return;
  }
  fill_float(tensor, data, random);
  if (data == Data::one_inf || data == Data::two_infs) plant(tensor, oracle::encode(dtype, infinity), random);
  if (data == Data::two_infs) plant(tensor, oracle::encode(dtype, -infinity), random);
  if (data == Data::one_nan) plant(tensor, oracle::quiet_nan_bits(dtype), random);
}

std::vector<Layout> layouts_for(const std::vector<Operand>& inputs, const std::vector<Operand>& outputs) {
  std::vector<Layout> layouts;
  for (int i = 0; i < static_cast<int>(Layout::count); ++i) {
    if (applies(static_cast<Layout>(i), inputs, outputs, false)) layouts.push_back(static_cast<Layout>(i));
  }
  return layouts;
}

}  // namespace backplane::conformance::numeric
