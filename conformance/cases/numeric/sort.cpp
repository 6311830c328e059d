// SPDX-License-Identifier: Apache-2.0
// Cases of sort.
#include "cases/numeric/axis_cases.hpp"
#include "cases/numeric/cases.hpp"
#include "cases/numeric/values.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

namespace {

Job make_sort(const Spec& spec, Random& random) {
  Job job;
  job.call.op = spec.op;
  set_attributes(job, bp_sort_attributes{0, static_cast<uint32_t>(spec.parameters[axis_parameter]),
                                         static_cast<uint32_t>(spec.parameters[first_flag]), 0});
  job.call.inputs.push_back(make_tensor(spec.dtype, spec.shape.list()));
  job.call.outputs.push_back({spec.dtype, spec.shape.list(), {}});
  if (spec.parameters[values_parameter] == 0) job.call.outputs.push_back({BP_I32, spec.shape.list(), {}});
  fill_along_axis(job.call.inputs[0], spec, random);
  return job;
}

}  // namespace

void add_sort(Catalogue& catalogue, uint32_t dtype) {
  if ((oracle::operator_of(BP_OP_SORT)->dtypes & BP_DTYPE_BIT(dtype)) == 0) return;
  for (const int32_t descending : {0, 1}) {
    AxisCases put(catalogue, BP_OP_SORT, dtype, make_sort, descending);
    put.lengths(lengths_for(dtype), Data::zero_mean);
    put.lengths(lengths_for(dtype), Data::few);
    put.layouts(Data::few);
    put.data({Data::special, Data::equal, Data::negative}, {2, 17, 64, 65, 257, 1025});
    for (const int32_t n : {2047, 2048, 2049}) put({n}, 0, Data::few);
    if (oracle::is_float(dtype)) put.data({Data::one_nan, Data::two_infs}, {2, 17, 65, 257, 1025});
    if (dtype == BP_F32 || dtype == BP_I32) {
      for (const int32_t n : long_lengths) put({n}, 0, Data::few), put({n}, 0, Data::zero_mean);
    }
    put.mixed = true;
    for (const int32_t axis : {0, 1, 2}) put({4, 5, 13}, axis, Data::few, Layout::padded);
    put({3, 257}, 1, Data::zero_mean);
    put.mixed = false;
    put.want_values();
    // Zeros of either sign are equal, and stay in their order.
    put.data({Data::special, Data::zero_mean, Data::few}, {1, 17, 65, 512, 1025});
    for (const Layout layout : {Layout::transposed, Layout::reversed, Layout::in_place})
      put({4, 5, 13}, 1, Data::few, layout);
    put({0, 7}, 1, Data::few);
    for (const Mode mode : {Mode::twice, Mode::resized}) put({5, 67}, 1, Data::zero_mean, Layout::dense, mode);
    if (dtype == BP_F32) put({65537}, 0, Data::zero_mean);
  }
}

}  // namespace backplane::conformance::numeric
