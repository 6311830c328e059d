// SPDX-License-Identifier: Apache-2.0
#include "comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "number.hpp"

namespace backplane::conformance::oracle {

namespace {

constexpr long double kNoRatio = -1;

// Whether an element is accepted, and the ratio of the element's error to its bound. The ratio is
// kNoRatio for an element without a bound.
struct Judgement {
  bool ok;
  long double ratio = kNoRatio;
};

Judgement within_bound(const Element& element, uint32_t dtype, uint64_t bits) {
  const long double got = decode(dtype, bits), value = element.value;
  if (std::isnan(value) || std::isnan(got)) return {std::isnan(value) && std::isnan(got)};
  if (std::isinf(value)) return {got == value};
  if (std::isinf(got)) {
    const long double greatest = greatest_finite(dtype);
    const bool reaches = std::fabs(value) + element.bound >= greatest + ulp(dtype, greatest) / 2;
    return {reaches && (got > 0) == (value > 0)};
  }
  const long double error = std::fabs(got - value);
  if (element.bound == 0) return {error == 0};
  const long double ratio = error / element.bound;
  return {ratio <= 1, ratio};
}

bool same_sign(const Element& element, uint32_t dtype, uint64_t bits) {
  return std::signbit(decode(dtype, bits)) == std::signbit(element.value);
}

Judgement judge(const Expected& expected, size_t index, uint32_t dtype, uint64_t bits) {
  const Element& element = expected.elements[index];
  switch (element.criterion) {
    case Criterion::bits:
      return {bits == element.bits};
    case Criterion::value:
      return {bits == element.bits || (is_nan(dtype, bits) && is_nan(dtype, element.bits))};
    case Criterion::unsigned_zero:
      return {bits == element.bits || (is_nan(dtype, bits) && is_nan(dtype, element.bits)) ||
              (is_zero(dtype, bits) && is_zero(dtype, element.bits))};
    case Criterion::bound:
      return within_bound(element, dtype, bits);
    case Criterion::signed_bound:
      if (is_zero(dtype, bits) && !same_sign(element, dtype, bits)) return {false};
      return within_bound(element, dtype, bits);
    case Criterion::any:
      return {true};
    case Criterion::nan_or_zero:
      return {is_nan(dtype, bits) || is_zero(dtype, bits)};
    case Criterion::one_of: {
      const std::vector<uint64_t>& choices = expected.choices[index];
      return {std::find(choices.begin(), choices.end(), bits) != choices.end()};
    }
  }
  return {false};
}

// Returns whether `bits` may be a result that the device flushed to zero. The magnitude of the exact result, minus its
// error bound, must be below 2^-125. An element with Criterion::bits is a copy, which keeps subnormals.
bool may_flush(const Element& element, uint32_t dtype, uint64_t bits) {
  return element.criterion != Criterion::bits && (dtype == BP_F32 || dtype == BP_BF16) && is_zero(dtype, bits) &&
         std::fabs(element.value) - element.bound < 0x1p-125L &&
         (element.value == 0 || same_sign(element, dtype, bits));
}

}  // namespace

Comparison compare(const Expected& expected, const Tensor& got, bool flushes) {
  Comparison result;
  long double worst = kNoRatio;
  const int64_t count = got.count();
  for (int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<size_t>(i);
    const Element& element = expected.elements[index];
    const uint64_t bits = load(got, i);
    Judgement judgement = judge(expected, index, got.dtype, bits);
    if (!judgement.ok && flushes && may_flush(element, got.dtype, bits)) judgement = {true};
    worst = std::max(worst, judgement.ratio);
    if (judgement.ok) continue;
    if (result.bad++ == 0) result.first = i;
  }
  result.worst_ratio = static_cast<double>(worst);
  return result;
}

std::string index_text(const std::vector<int64_t>& shape, int64_t flat) {
  std::vector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = flat % shape[d];
    flat /= shape[d];
  }
  return fmt::format("({})", fmt::join(index, ","));
}

std::string difference_text(const Expected& expected, const Tensor& got, int64_t index) {
  const Element& element = expected.elements[static_cast<size_t>(index)];
  const std::string had = text(got.dtype, load(got, index));
  if (element.criterion == Criterion::one_of) {
    std::vector<std::string> choices;
    for (const uint64_t bits : expected.choices[static_cast<size_t>(index)]) choices.push_back(text(got.dtype, bits));
    return fmt::format("expected one of {}, got {}", fmt::join(choices, ", "), had);
  }
  if (element.criterion == Criterion::nan_or_zero) return fmt::format("expected NaN or a zero, got {}", had);
  const bool bound = element.criterion == Criterion::bound || element.criterion == Criterion::signed_bound;
  if (!bound || !std::isfinite(element.value))
    return fmt::format("expected {}, got {}", text(got.dtype, element.bits), had);
  const auto value = static_cast<double>(element.value);
  return fmt::format("expected {:.17g}, rounded {}, within {:.3g}, got {}, which is off by {:.3g}", value,
                     text(got.dtype, element.bits), static_cast<double>(element.bound), had,
                     static_cast<double>(std::fabs(value_at(got, index) - element.value)));
}

}  // namespace backplane::conformance::oracle
