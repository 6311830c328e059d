// SPDX-License-Identifier: Apache-2.0
// Oracles of copy, fill and iota.
#include <bit>
#include <cmath>

#include "axis.hpp"
#include "elementwise.hpp"
#include "number.hpp"
#include "operators.hpp"

namespace backplane::conformance::oracle {

namespace {

// Computes start + index * step. If the dtype `computing` represents the product exactly, the result must be the sum,
// rounded once. For 16-bit floats, `computing` must also represent the sum exactly. In all other cases, an error of one
// ulp is allowed.
Element float_step(uint32_t dtype, uint64_t start_bits, uint64_t step_bits, int64_t index) {
  const long double start = decode(dtype, start_bits), step = decode(dtype, step_bits);
  const auto factor = static_cast<long double>(index);
  const long double product = factor * step, sum = start + product;
  const uint32_t computing = dtype == BP_F64 ? BP_F64 : BP_F32;
  const auto fits = [&](long double value) { return decode(computing, encode(computing, value)) == value; };
  const bool half = dtype == BP_F16 || dtype == BP_BF16;
  const bool exact = fits(product) && std::fma(factor, step, -product) == 0 &&
                     (!half || (sum - product == start && sum - start == product && fits(sum)));
  if (!std::isfinite(start) || !std::isfinite(step)) return rounded(dtype, sum);
  if (!exact) return within_ulps(dtype, sum, 1);
  Element element = rounded(dtype, sum);
  if (dtype == BP_F64)
    element = exact_value(dtype, std::bit_cast<uint64_t>(static_cast<double>(start) + static_cast<double>(product)));
  if (dtype == BP_F32)
    element = exact_value(dtype, std::bit_cast<uint32_t>(static_cast<float>(start) + static_cast<float>(product)));
  element.criterion = Criterion::unsigned_zero;
  return element;
}

}  // namespace

std::vector<Expected> copy(const Call& call) {
  const Tensor& x = call.inputs[0];
  Expected expected;
  const int64_t count = x.count();
  expected.elements.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) expected.elements.push_back(exact_bits(x.dtype, load(x, i)));
  return only(std::move(expected));
}

std::vector<Expected> fill(const Call& call) {
  const Tensor& out = call.outputs[0];
  Expected expected;
  expected.elements.assign(static_cast<size_t>(out.count()), exact_bits(out.dtype, call.scalars[0]));
  return only(std::move(expected));
}

std::vector<Expected> iota(const Call& call) {
  const Tensor& out = call.outputs[0];
  const AxisView view(out, attributes_of<bp_axis_attributes>(call).axis);
  const uint64_t start = call.scalars[0], step = call.scalars[1];
  Expected expected;
  expected.elements.resize(static_cast<size_t>(out.count()));
  for (int64_t i = 0; i < view.extent && !expected.elements.empty(); ++i) {
    const Element element = is_float(out.dtype)
                                ? float_step(out.dtype, start, step, i)
                                : exact_bits(out.dtype, (start + static_cast<uint64_t>(i) * step) & mask_of(out.dtype));
    view.each([&](int64_t o, int64_t j) { expected.elements[static_cast<size_t>(view.at(o, i, j))] = element; });
  }
  return only(std::move(expected));
}

}  // namespace backplane::conformance::oracle
