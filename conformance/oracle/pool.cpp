// SPDX-License-Identifier: Apache-2.0
// Oracles of max_pool and avg_pool.
#include "operators.hpp"
#include "window.hpp"

namespace backplane::conformance::oracle {

namespace {

// Calls visit(index of the output, offset of the plane in x, position of the window) for each
// output element.
template <typename Visit>
void each_window(const Call& call, Visit visit) {
  const Extents image = spatial(call.inputs[0]), result = spatial(call.outputs[0]);
  for (int64_t i = 0; i < call.outputs[0].count(); ++i) {
    visit(static_cast<size_t>(i), i / volume(result) * volume(image), position_of(i % volume(result), result));
  }
}

Window window_of(const bp_pool_attributes& attributes) {
  Extents kernel{1, 1, 1};
  for (uint32_t d = 0; d < attributes.spatial_rank; ++d) kernel[d] = attributes.kernel[d];
  return {attributes, kernel};
}

}  // namespace

std::vector<Expected> max_pool(const Call& call) {
  const Window window = window_of(attributes_of<bp_pool_attributes>(call));
  const Tensor& x = call.inputs[0];
  const Extents image = spatial(x);
  const uint32_t dtype = call.outputs[0].dtype;
  std::vector<Expected> expected = outputs_of(call);
  each_window(call, [&](size_t out, int64_t plane, const Extents& at) {
    long double best = -std::numeric_limits<long double>::infinity();
    int64_t found = -1;
    for (int64_t tap = 0; tap < volume(window.kernel) && !std::isnan(best); ++tap) {
      const int64_t seen = window.seen(at, tap, image);
      if (seen < 0) continue;
      const long double value = value_at(x, plane + seen);
      if (found >= 0 && !std::isnan(value) && value <= best) continue;
      best = value;
      found = seen;
    }
    expected[0].elements[out] = rounded(dtype, best);
    expected[0].elements[out].criterion = Criterion::unsigned_zero;
    if (const Tensor* index = optional(call.outputs, 1)) {
      // A window that covers only padding has no maximum and no index.
      expected[1].elements[out] =
          found < 0 ? anything(index->dtype, 0) : exact_bits(index->dtype, encode_integer(index->dtype, found));
    }
  });
  return expected;
}

std::vector<Expected> avg_pool(const Call& call) {
  const auto attributes = attributes_of<bp_pool_attributes>(call);
  const Window window = window_of(attributes);
  const Tensor& x = call.inputs[0];
  const Extents image = spatial(x);
  const uint32_t dtype = call.outputs[0].dtype;
  constexpr long double division = 5;  // error of the division (2.5 ulp), in units of u
  std::vector<Expected> expected = outputs_of(call);
  each_window(call, [&](size_t out, int64_t plane, const Extents& at) {
    Sum sum;
    for (int64_t tap = 0; tap < volume(window.kernel); ++tap) {
      const int64_t seen = window.seen(at, tap, image);
      if (seen >= 0) sum.add(value_at(x, plane + seen));
    }
    const int64_t count = attributes.count_padding != 0 ? volume(window.kernel) : sum.count();
    if (count == 0) {
      expected[0].elements[out] = {0, 0, 0, Criterion::unsigned_zero};
      return;
    }
    const Verdict verdict = weigh(sum.total(), accumulator_for(computed_in(dtype)), rho(count));
    const long double value = verdict.value / count_of(count);
    expected[0].elements[out] =
        verdict.criterion == Criterion::any
            ? anything(dtype, value)
            : near(dtype, value, verdict.lost / count_of(count) + division * unit(dtype) * std::fabs(value));
  });
  return expected;
}

}  // namespace backplane::conformance::oracle
