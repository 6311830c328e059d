// SPDX-License-Identifier: Apache-2.0
#include "cases/numeric/deviations.hpp"

#include <fmt/format.h>

#include <cmath>

#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

constexpr double kLimit = 1;
constexpr int64_t kLeastOutputs = 1000;

}  // namespace

Deviations deviations_of(const oracle::Expected& expected, const oracle::Tensor& got) {
  long double squares = 0;
  Deviations found;
  for (size_t i = 0; i < expected.deviations.size(); ++i) {
    const oracle::Element& element = expected.elements[i];
    if (element.criterion != oracle::Criterion::bound) continue;
    const long double error = oracle::value_at(got, static_cast<int64_t>(i)) - element.value;
    if (!std::isfinite(error)) continue;
    const long double ratio = error / expected.deviations[i];
    squares += ratio * ratio;
    ++found.count;
  }
  if (found.count > 0) found.root_mean_square = static_cast<double>(std::sqrt(squares / found.count));
  return found;
}

std::string check_deviations(const Setup&, const std::vector<oracle::Expected>& expected,
                             const std::vector<oracle::Tensor>& got) {
  const Deviations found = deviations_of(expected[0], got[0]);
  if (found.count < kLeastOutputs || found.root_mean_square <= kLimit) return {};
  return fmt::format(
      "the root mean square of {} errors is {:.3g} times the error of rounding operands and result to 16 bits, which "
      "is u sqrt(sum of squared terms) + ulp / 2, with u = half the format's unit roundoff; at most {:g} is allowed",
      found.count, found.root_mean_square, kLimit);
}

}  // namespace backplane::conformance::numeric
