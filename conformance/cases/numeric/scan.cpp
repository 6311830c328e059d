// SPDX-License-Identifier: Apache-2.0
// Cases of cumsum.
#include "cases/numeric/axis_cases.hpp"
#include "cases/numeric/cases.hpp"
#include "cases/numeric/values.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

namespace {

Job make_cumsum(const Spec& spec, Random& random) {
  const auto axis = static_cast<uint32_t>(spec.parameters[axis_parameter]);
  const auto data = static_cast<Data>(spec.parameters[data_parameter]);
  Job job;
  job.call.op = spec.op;
  set_attributes(job, bp_cumsum_attributes{0, axis, static_cast<uint32_t>(spec.parameters[first_flag]),
                                           static_cast<uint32_t>(spec.parameters[second_flag])});
  job.call.inputs.push_back(make_tensor(spec.dtype, spec.shape.list()));
  job.call.outputs.push_back({spec.dtype, spec.shape.list(), {}});
  fill_along_axis(job.call.inputs[0], spec, random);
  job.call.zero_mean = data == Data::zero_mean || data == Data::spikes;
  return job;
}

}  // namespace

void add_scan(Catalogue& catalogue, uint32_t dtype) {
  if ((oracle::operator_of(BP_OP_CUMSUM)->dtypes & BP_DTYPE_BIT(dtype)) == 0) return;
  for (const int32_t flags : {0, 1, 2, 3}) {
    AxisCases put(catalogue, BP_OP_CUMSUM, dtype, make_cumsum, flags & 1, flags >> 1);
    put.lengths(flags == 0 ? lengths_for(dtype) : std::span<const int32_t>(few_lengths), Data::integers);
    put.layouts(Data::integers);
    if (flags == 0 && dtype == BP_I32) put({4500000}, 0, Data::integers);  // more than one dispatch should go through
    if (!oracle::is_float(dtype)) {
      put.data({Data::special}, {33, 257});
      continue;
    }
    put.data({Data::zero_mean, Data::spikes, Data::positive, Data::tenth, Data::cancel, Data::partial, Data::one_inf,
              Data::two_infs, Data::one_nan, Data::special, Data::overflow},
             {17, 257, 1025});
    if (dtype != BP_F32) continue;
    for (const Data data : {Data::tenth, Data::zero_mean, Data::integers}) {
      for (const int32_t n : long_lengths) put({n}, 0, data);
    }
  }
}

}  // namespace backplane::conformance::numeric
