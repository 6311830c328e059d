// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "number.hpp"
#include "operators.hpp"

namespace backplane::conformance::oracle {

namespace {

uint64_t saturated(uint32_t dtype, long double value) {
  if (std::isnan(value)) return 0;
  const long double whole = std::trunc(value);
  if (whole <= least_integer(dtype)) return encode_integer(dtype, static_cast<int64_t>(least_integer(dtype)));
  if (whole >= greatest_integer(dtype)) return encode_integer(dtype, static_cast<int64_t>(greatest_integer(dtype)));
  return encode_integer(dtype, static_cast<int64_t>(whole));
}

Element converted(uint32_t from, uint32_t to, uint64_t bits) {
  if (is_float(to)) return rounded(to, decode(from, bits));
  if (to == BP_BOOL) return exact_bits(to, is_zero(from, bits) ? 0 : 1);
  return exact_bits(
      to, is_float(from) ? saturated(to, decode(from, bits)) : encode_integer(to, decode_integer(from, bits)));
}

}  // namespace

std::vector<Expected> cast(const Call& call) {
  const Tensor& x = call.inputs[0];
  const uint32_t to = call.outputs[0].dtype;
  Expected expected;
  const int64_t count = x.count();
  expected.elements.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) expected.elements.push_back(converted(x.dtype, to, load(x, i)));
  return only(std::move(expected));
}

}  // namespace backplane::conformance::oracle
