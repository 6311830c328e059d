// SPDX-License-Identifier: Apache-2.0
// Cases of max_pool and avg_pool.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/mixed.hpp"
#include "cases/numeric/window_problems.hpp"

namespace backplane::conformance::numeric {

namespace {

enum Parameter { problem_parameter, data_parameter, flag_parameter };

// The flag is count_padding, or whether the index is asked for.
Job make_pool(const Spec& spec, Random& random) {
  const WindowProblem& s = window_problems[spec.parameters[problem_parameter]];
  const bool average = spec.op == BP_OP_AVG_POOL, flag = spec.parameters[flag_parameter] != 0;
  Job job;
  job.call.op = spec.op;
  bp_pool_attributes attributes = {};
  set_window(s, attributes);
  std::copy_n(used(s, s.kernel).begin(), 3, attributes.kernel);
  attributes.count_padding = average && flag ? 1 : 0;
  set_attributes(job, attributes);
  job.call.inputs = {filled(spec.dtype, image_shape(s, s.in_channels),
                            static_cast<Data>(spec.parameters[data_parameter]), 16, random)};
  job.call.outputs = {output(spec.dtype, result_shape(s, s.in_channels))};
  if (!average && flag) job.call.outputs.push_back(output(BP_I32, job.call.outputs[0].shape));
  return job;
}

void add_pool_of(Catalogue& catalogue, uint32_t op, uint32_t dtype) {
  auto* adding = add_plain;
  const auto put = [&](size_t which, Data data, int32_t flag, Layout layout = Layout::dense) {
    Spec spec{.op = op,
              .dtype = dtype,
              .shape = shape_of(result_shape(window_problems[which], window_problems[which].in_channels)),
              .layout = layout,
              .values = Values::family,
              .make = make_pool};
    spec.parameters = {static_cast<int32_t>(which), number_of(data), flag};
    std::string more(window_problems[which].name);
    more.append(".").append(name_of(data)).append(flag == 0 ? "" : op == BP_OP_AVG_POOL ? ".count_padding" : ".index");
    adding(catalogue, spec, more);
  };
  for (size_t which = 0; which < window_problems.size(); ++which) {
    if (window_problems[which].name == "deep") continue;
    for (const int32_t flag : {0, 1}) {
      for (const Data data :
           {Data::negative, Data::few, Data::zero_mean, Data::tenth, Data::one_nan, Data::two_infs, Data::integers}) {
        if (data == Data::integers || !is_empty(window_problems[which])) put(which, data, flag);
      }
    }
  }
  for (const Layout layout : common_layouts) put(8, Data::zero_mean, 1, layout);
  if (op != BP_OP_MAX_POOL) return;
  adding = add_mixed;
  for (const size_t which : {size_t{0}, size_t{8}, size_t{10}}) put(which, Data::zero_mean, 1);
  put(5, Data::few, 1, Layout::padded);
}

}  // namespace

void add_pool(Catalogue& catalogue, uint32_t dtype) {
  for (const uint32_t op : {BP_OP_MAX_POOL, BP_OP_AVG_POOL}) add_pool_of(catalogue, op, dtype);
}

}  // namespace backplane::conformance::numeric
