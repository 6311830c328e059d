// SPDX-License-Identifier: Apache-2.0
// Oracle of cumsum.
#include "axis.hpp"
#include "number.hpp"
#include "operators.hpp"
#include "sum.hpp"

namespace backplane::conformance::oracle {

namespace {

// Computes a running reduction along the axis. An exclusive scan writes each output before `step`
// adds the input at the same index.
template <typename State, typename Step, typename Judge>
Expected scan(const Call& call, Step step, Judge judge) {
  const Tensor &in = call.inputs[0], &out = call.outputs[0];
  const auto attributes = attributes_of<bp_cumsum_attributes>(call);
  const AxisView view(in, attributes.axis);
  Expected expected;
  expected.elements.resize(static_cast<size_t>(out.count()));
  view.each([&](int64_t o, int64_t j) {
    State state{};
    for (int64_t n = 0; n < view.extent; ++n) {
      const int64_t at = view.at(o, attributes.reverse != 0 ? view.extent - 1 - n : n, j);
      Element& element = expected.elements[static_cast<size_t>(at)];
      if (attributes.exclusive != 0) element = judge(state);
      step(state, at);
      if (attributes.exclusive == 0) element = judge(state);
    }
  });
  return expected;
}

}  // namespace

std::vector<Expected> cumsum(const Call& call) {
  const Tensor& in = call.inputs[0];
  const uint32_t dtype = in.dtype;
  if (!is_float(dtype)) {
    return {scan<uint64_t>(
        call, [&](uint64_t& state, int64_t at) { state += load(in, at); },
        [&](uint64_t state) { return exact_bits(dtype, state & mask_of(dtype)); })};
  }
  return {scan<Sum>(
      call, [&](Sum& state, int64_t at) { state.add(value_at(in, at)); },
      [&](const Sum& state) { return state.judge(dtype, accumulator_for(dtype), rho(state.count())); })};
}

}  // namespace backplane::conformance::oracle
