// SPDX-License-Identifier: Apache-2.0
// Builds calls to the oracle from plain numbers.
#pragma once

#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>

#include "oracle/number.hpp"
#include "oracle/operators.hpp"

namespace backplane::conformance::oracle::test {

inline constexpr long double kInf = std::numeric_limits<long double>::infinity();
inline constexpr long double kNanValue = std::numeric_limits<long double>::quiet_NaN();

inline Tensor tensor(uint32_t dtype, std::vector<int64_t> shape, const std::vector<long double>& values = {}) {
  Tensor result{dtype, std::move(shape), {}};
  result.bytes.resize(static_cast<size_t>(result.count()) * bytes_of(dtype));
  for (size_t i = 0; i < values.size(); ++i) store(result, static_cast<int64_t>(i), encode(dtype, values[i]));
  return result;
}
// Returns a tensor of rank 1 that contains `values`.
inline Tensor row(uint32_t dtype, const std::vector<long double>& values) {
  return tensor(dtype, {static_cast<int64_t>(values.size())}, values);
}

template <typename Attributes>
Call call_of(uint32_t op, Attributes attributes, std::vector<Tensor> inputs, std::vector<Tensor> outputs) {
  Call call;
  call.op = op;
  attributes.struct_size = sizeof(attributes);
  call.attributes.resize(sizeof(attributes));
  std::memcpy(call.attributes.data(), &attributes, sizeof(attributes));
  call.inputs = std::move(inputs);
  call.outputs = std::move(outputs);
  return call;
}

inline std::vector<long double> values_of(const Expected& expected) {
  std::vector<long double> values;
  for (const Element& element : expected.elements) values.push_back(element.value);
  return values;
}

}  // namespace backplane::conformance::oracle::test
