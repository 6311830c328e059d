// SPDX-License-Identifier: Apache-2.0
// Test cases for the operators argmax and argmin.
#include "cases/numeric/axis_cases.hpp"
#include "cases/numeric/cases.hpp"
#include "cases/numeric/lengths.hpp"
#include "cases/numeric/values.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

namespace {

Setup make_arg(const Problem& problem, Random& random) {
  const std::vector<int64_t> shape = problem.shape.list();
  const auto axis = static_cast<uint32_t>(problem.parameters[axis_parameter]);
  std::vector<int64_t> result = shape;
  result[axis] = 1;
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call, bp_axis_attributes{0, axis});
  setup.call.inputs.push_back(make_tensor(problem.dtype, shape));
  setup.call.outputs.push_back({BP_I32, result, {}});
  fill_along_axis(setup.call.inputs[0], problem, random);
  return setup;
}

void add_arg_of(Catalogue& catalogue, uint32_t op, uint32_t dtype) {
  AxisCases put(catalogue, op, dtype, make_arg);
  put.lengths(lengths_for(dtype), DataPattern::zero_mean);
  put.lengths(lengths_for(dtype), DataPattern::zero_mean, true);
  put.layouts(DataPattern::zero_mean);
  put.data({DataPattern::equal, DataPattern::few, DataPattern::special, DataPattern::negative},
           {1, 2, 9, 33, 129, 257, 1025});
  if (oracle::is_float(dtype))
    put.data({DataPattern::one_nan, DataPattern::one_inf, DataPattern::two_infs}, {1, 2, 9, 33, 129, 257, 1025});
  if (dtype == BP_F32) put.lengths(kLongLengths, DataPattern::zero_mean, true);
  if (dtype == BP_U8 && op == BP_OP_ARGMIN) put({36000000}, 0, DataPattern::zero_mean, Layout::dense, Mode::once, true);
  put.mixed = true;
  for (const int32_t axis : {0, 1, 2}) put({4, 5, 13}, axis, DataPattern::few, Layout::padded);
  put({3, 257}, 1, DataPattern::zero_mean);
}

}  // namespace

void add_reduce_arg(Catalogue& catalogue, uint32_t dtype) {
  for (const uint32_t op : {BP_OP_ARGMAX, BP_OP_ARGMIN}) {
    if ((oracle::operator_of(op)->dtypes & BP_DTYPE_BIT(dtype)) != 0) add_arg_of(catalogue, op, dtype);
  }
}

}  // namespace backplane::conformance::numeric
