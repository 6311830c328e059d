// SPDX-License-Identifier: Apache-2.0
// Test cases for the sort operator.
#include "cases/numeric/axis_cases.hpp"
#include "cases/numeric/cases.hpp"
#include "cases/numeric/lengths.hpp"
#include "cases/numeric/values.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

namespace {

Setup make_sort(const Problem& problem, Random& random) {
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call, bp_sort_attributes{0, static_cast<uint32_t>(problem.parameters[axis_parameter]),
                                                static_cast<uint32_t>(problem.parameters[first_flag]), 0});
  setup.call.inputs.push_back(make_tensor(problem.dtype, problem.shape.list()));
  setup.call.outputs.push_back({problem.dtype, problem.shape.list(), {}});
  if (problem.parameters[values_parameter] == 0) setup.call.outputs.push_back({BP_I32, problem.shape.list(), {}});
  fill_along_axis(setup.call.inputs[0], problem, random);
  return setup;
}

}  // namespace

void add_sort(Catalogue& catalogue, uint32_t dtype) {
  if ((oracle::operator_of(BP_OP_SORT)->dtypes & BP_DTYPE_BIT(dtype)) == 0) return;
  for (const int32_t descending : {0, 1}) {
    AxisCases put(catalogue, BP_OP_SORT, dtype, make_sort, descending);
    put.lengths(lengths_for(dtype), DataPattern::zero_mean);
    put.lengths(lengths_for(dtype), DataPattern::few);
    put.layouts(DataPattern::few);
    put.data({DataPattern::special, DataPattern::equal, DataPattern::negative}, {2, 17, 64, 65, 257, 1025});
    for (const int32_t n : {2047, 2048, 2049}) put({n}, 0, DataPattern::few);
    if (oracle::is_float(dtype)) put.data({DataPattern::one_nan, DataPattern::two_infs}, {2, 17, 65, 257, 1025});
    if (dtype == BP_F32 || dtype == BP_I32) {
      for (const int32_t n : kLongLengths) put({n}, 0, DataPattern::few), put({n}, 0, DataPattern::zero_mean);
    }
    put.mixed = true;
    for (const int32_t axis : {0, 1, 2}) put({4, 5, 13}, axis, DataPattern::few, Layout::padded);
    put({3, 257}, 1, DataPattern::zero_mean);
    put.mixed = false;
    put.want_values();
    // Zeros of either sign are equal and keep their order.
    put.data({DataPattern::special, DataPattern::zero_mean, DataPattern::few}, {1, 17, 65, 512, 1025});
    for (const Layout layout : {Layout::transposed, Layout::reversed, Layout::in_place})
      put({4, 5, 13}, 1, DataPattern::few, layout);
    put({0, 7}, 1, DataPattern::few);
    for (const Mode mode : {Mode::twice, Mode::resized}) put({5, 67}, 1, DataPattern::zero_mean, Layout::dense, mode);
    if (dtype == BP_F32) put({65537}, 0, DataPattern::zero_mean);
  }
}

}  // namespace backplane::conformance::numeric
