// SPDX-License-Identifier: Apache-2.0
// Test cases for the cumsum operator.
#include "cases/numeric/axis_cases.hpp"
#include "cases/numeric/cases.hpp"
#include "cases/numeric/lengths.hpp"
#include "cases/numeric/values.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

namespace {

Setup make_cumsum(const Problem& problem, Random& random) {
  const auto axis = static_cast<uint32_t>(problem.parameters[axis_parameter]);
  const auto data = static_cast<DataPattern>(problem.parameters[data_parameter]);
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call, bp_cumsum_attributes{0, axis, static_cast<uint32_t>(problem.parameters[first_flag]),
                                                  static_cast<uint32_t>(problem.parameters[second_flag])});
  setup.call.inputs.push_back(make_tensor(problem.dtype, problem.shape.list()));
  setup.call.outputs.push_back({problem.dtype, problem.shape.list(), {}});
  fill_along_axis(setup.call.inputs[0], problem, random);
  setup.call.zero_mean = data == DataPattern::zero_mean || data == DataPattern::spikes;
  return setup;
}

}  // namespace

void add_scan(Catalogue& catalogue, uint32_t dtype) {
  if ((oracle::operator_of(BP_OP_CUMSUM)->dtypes & BP_DTYPE_BIT(dtype)) == 0) return;
  for (const int32_t flags : {0, 1, 2, 3}) {
    AxisCases put(catalogue, BP_OP_CUMSUM, dtype, make_cumsum, flags & 1, flags >> 1);
    put.lengths(flags == 0 ? lengths_for(dtype) : std::span<const int32_t>(kFewLengths), DataPattern::integers);
    put.layouts(DataPattern::integers);
    if (flags == 0 && dtype == BP_I32)
      put({4500000}, 0, DataPattern::integers);  // more elements than one dispatch should process
    if (!oracle::is_float(dtype)) {
      put.data({DataPattern::special}, {33, 257});
      continue;
    }
    put.data({DataPattern::zero_mean, DataPattern::spikes, DataPattern::positive, DataPattern::tenth,
              DataPattern::cancel, DataPattern::partial, DataPattern::one_inf, DataPattern::two_infs,
              DataPattern::one_nan, DataPattern::special, DataPattern::overflow},
             {17, 257, 1025});
    if (dtype != BP_F32) continue;
    for (const DataPattern data : {DataPattern::tenth, DataPattern::zero_mean, DataPattern::integers}) {
      for (const int32_t n : kLongLengths) put({n}, 0, data);
    }
  }
}

}  // namespace backplane::conformance::numeric
