// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "composite.hpp"
#include "operators.hpp"

namespace backplane::conformance::oracle {

std::vector<Expected> rope(const Call& call) {
  const auto attributes = attributes_of<bp_rope_attributes>(call);
  const Tensor &x = call.inputs[0], &position = call.inputs[1], &out = call.outputs[0];
  const int64_t depth = x.shape.back();
  const int64_t rotated = attributes.rotary_extent == 0 ? depth : attributes.rotary_extent;
  std::vector<Expected> expected = outputs_of(call);
  for (int64_t i = 0; i < x.count(); ++i) {
    const int64_t row = i / depth, d = i % depth;
    Element& element = expected[0].elements[static_cast<size_t>(i)];
    if (d >= rotated) {
      element = exact_value(out.dtype, load(x, i));
      continue;
    }
    const bool pairs = attributes.interleaved != 0;
    const int64_t half = rotated / 2, pair = pairs ? d / 2 : d % half;
    const bool second = pairs ? d % 2 != 0 : d >= half;
    const int64_t partner = row * depth + (pairs ? d ^ 1 : (d + half) % rotated);
    const long double angle =
        static_cast<long double>(integer_at(position, row)) *
        std::pow(static_cast<long double>(attributes.base), -2 * count_of(pair) / count_of(rotated));
    const long double mine = value_at(x, i), other = value_at(x, partner);
    const long double value = mine * std::cos(angle) + (second ? other : -other) * std::sin(angle);
    // The relative bound is 2^-20 in f32, because a device may compute sines from a table of
    // limited precision. In f64 the bound covers one rounding of the angle.
    const long double relative = computed_in(out.dtype) == BP_F64 ? (16 + std::fabs(angle)) * unit(BP_F64) : 0x1p-20L;
    element = near(out.dtype, value, relative * (std::fabs(mine) + std::fabs(other)));
  }
  return expected;
}

std::vector<Expected> rotate(const Call& call) {
  const bool adjacent = attributes_of<bp_rotate_attributes>(call).interleaved != 0;
  const Tensor &x = call.inputs[0], &cosine = call.inputs[1], &sine = call.inputs[2], &out = call.outputs[0];
  const int64_t depth = x.shape.back(), pairs = cosine.shape.back();
  std::vector<Expected> expected = outputs_of(call);
  for (int64_t i = 0; i < x.count(); ++i) {
    const int64_t row = i / depth, d = i % depth;
    Element& element = expected[0].elements[static_cast<size_t>(i)];
    if (d >= 2 * pairs) {
      element = exact_value(out.dtype, load(x, i));
      continue;
    }
    const bool second = adjacent ? d % 2 != 0 : d >= pairs;
    const int64_t pair = adjacent ? d / 2 : d % pairs;
    const int64_t partner = row * depth + (adjacent ? d ^ 1 : (d + pairs) % (2 * pairs));
    const long double own = value_at(x, i) * value_at(cosine, row * pairs + pair);
    const long double other = value_at(x, partner) * value_at(sine, row * pairs + pair);
    // The bound covers the rounding of each product, and the rounding of the products' sum.
    const long double bound =
        4 * unit(out.dtype) * (std::fabs(own) + std::fabs(other)) + 2 * least_normal(computed_in(out.dtype));
    element = near(out.dtype, second ? own + other : own - other, bound);
  }
  return expected;
}

}  // namespace backplane::conformance::oracle
