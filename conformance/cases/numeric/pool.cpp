// SPDX-License-Identifier: Apache-2.0
// Test cases for the operators max_pool and avg_pool.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/mixed.hpp"
#include "cases/numeric/window_problems.hpp"

namespace backplane::conformance::numeric {

namespace {

enum PoolParameter { pool_problem_parameter, pool_data_parameter, pool_flag_parameter };

// pool_flag_parameter is the attribute count_padding for avg_pool. For max_pool, pool_flag_parameter
// is 1 if the operator also outputs the indices.
Setup make_pool(const Problem& problem, Random& random) {
  const WindowProblem& s = kWindowProblems[problem.parameters[pool_problem_parameter]];
  const bool average = problem.op == BP_OP_AVG_POOL, flag = problem.parameters[pool_flag_parameter] != 0;
  Setup setup;
  setup.call.op = problem.op;
  bp_pool_attributes attributes = {};
  set_window(s, attributes);
  std::copy_n(used(s, s.kernel).begin(), 3, attributes.kernel);
  attributes.count_padding = average && flag ? 1 : 0;
  set_attributes(setup.call, attributes);
  setup.call.inputs = {filled(problem.dtype, image_shape(s, s.in_channels),
                              static_cast<DataPattern>(problem.parameters[pool_data_parameter]), 16, random)};
  setup.call.outputs = {output(problem.dtype, result_shape(s, s.in_channels))};
  if (!average && flag) setup.call.outputs.push_back(output(BP_I32, setup.call.outputs[0].shape));
  return setup;
}

void add_pool_of(Catalogue& catalogue, uint32_t op, uint32_t dtype) {
  auto* adding = add_plain;
  const auto put = [&](size_t which, DataPattern data, int32_t flag, Layout layout = Layout::dense) {
    Problem problem{.op = op,
                    .dtype = dtype,
                    .shape = shape_of(result_shape(kWindowProblems[which], kWindowProblems[which].in_channels)),
                    .layout = layout,
                    .pattern = DataPattern::family,
                    .make = make_pool};
    problem.parameters = {static_cast<int32_t>(which), number_of(data), flag};
    std::string more(kWindowProblems[which].name);
    more.append(".").append(name_of(data)).append(flag == 0 ? "" : op == BP_OP_AVG_POOL ? ".count_padding" : ".index");
    adding(catalogue, problem, more);
  };
  for (size_t which = 0; which < kWindowProblems.size(); ++which) {
    if (kWindowProblems[which].name == "deep") continue;
    for (const int32_t flag : {0, 1}) {
      for (const DataPattern data :
           {DataPattern::negative, DataPattern::few, DataPattern::zero_mean, DataPattern::tenth, DataPattern::one_nan,
            DataPattern::two_infs, DataPattern::integers}) {
        if (data == DataPattern::integers || !is_empty(kWindowProblems[which])) put(which, data, flag);
      }
    }
  }
  for (const Layout layout : kCommonLayouts) put(8, DataPattern::zero_mean, 1, layout);
  for (size_t which = 0; which < kWindowProblems.size(); ++which) {
    if (is_empty(kWindowProblems[which])) continue;
    for (const int32_t flag : {0, 1}) put(which, DataPattern::zero_mean, flag, Layout::channels_last);
    put(which, DataPattern::one_nan, 0, Layout::channels_last_in);
  }
  if (op != BP_OP_MAX_POOL) return;
  adding = add_mixed;
  for (const size_t which : {size_t{0}, size_t{8}, size_t{10}}) put(which, DataPattern::zero_mean, 1);
  put(5, DataPattern::few, 1, Layout::padded);
}

}  // namespace

void add_pool(Catalogue& catalogue, uint32_t dtype) {
  for (const uint32_t op : {BP_OP_MAX_POOL, BP_OP_AVG_POOL}) add_pool_of(catalogue, op, dtype);
}

}  // namespace backplane::conformance::numeric
