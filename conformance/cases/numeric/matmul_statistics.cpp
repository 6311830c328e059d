// SPDX-License-Identifier: Apache-2.0
#include "cases/numeric/matmul_statistics.hpp"

#include <fmt/format.h>

#include <cmath>

#include "oracle/dot.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

std::string check_statistics(const Setup& setup, const std::vector<oracle::Expected>& expected,
                             const std::vector<oracle::Tensor>& got) {
  constexpr int64_t least_outputs = 1000;
  const int64_t depth = setup.call.inputs[0].shape.back();
  const uint32_t dtype = got[0].dtype;
  const long double factor = 2 + 0.3L * std::sqrt(static_cast<long double>(depth));
  long double squares = 0, sum = 0;
  int64_t count = 0;
  for (int64_t i = 0; i < got[0].count(); ++i) {
    const oracle::Element& element = expected[0].elements[static_cast<size_t>(i)];
    if (element.criterion != oracle::Criterion::bound) continue;
    const long double half_ulp = oracle::ulp(dtype, element.value) / 2;
    // The hard bound is 2 (K + 2) u S + ulp / 2, with K, u and S as in matmul_statistics.hpp.
    const long double magnitude = (element.bound - half_ulp) / oracle::dot_factor(depth);
    const long double error = oracle::value_at(got[0], i) - element.value;
    if (!std::isfinite(error)) continue;
    const long double ratio = error / (magnitude * factor + half_ulp);
    squares += ratio * ratio;
    sum += ratio;
    ++count;
  }
  if (count < least_outputs) return {};
  const auto outputs = static_cast<long double>(count);
  if (const long double mean = std::sqrt(squares / outputs); mean > 1) {
    return fmt::format("the root mean square of {} errors is {:.3g} times its bound, u S (2 + 0.3 sqrt({})) + ulp / 2",
                       count, static_cast<double>(mean), depth);
  }
  if (const long double bias = std::fabs(sum) / std::sqrt(10 * outputs); bias > 1) {
    return fmt::format("the sum of {} errors is {:.3g} times the limit for unbiased errors: the results are too {}",
                       count, static_cast<double>(bias), sum > 0 ? "large" : "small");
  }
  return {};
}

}  // namespace backplane::conformance::numeric
