// SPDX-License-Identifier: Apache-2.0
// Test cases for the topk operator.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/composite.hpp"
#include "cases/numeric/mixed.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

namespace {

// The shape of `problem` is the shape of x. The parameters are the axis, `k`, `smallest`, the data
// pattern, and whether the values are the only output.
Setup make_topk(const Problem& problem, Random& random) {
  std::vector<int64_t> shape = problem.shape.list();
  const auto axis = static_cast<size_t>(problem.parameters[0]);
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call,
                 bp_topk_attributes{0, static_cast<uint32_t>(axis), static_cast<uint32_t>(problem.parameters[2]), 0});
  setup.call.inputs = {filled(problem.dtype, shape, static_cast<DataPattern>(problem.parameters[3]), 1, random)};
  shape[axis] = problem.parameters[1];
  setup.call.outputs = {output(problem.dtype, shape)};
  if (problem.parameters[4] == 0) setup.call.outputs.push_back(output(BP_I32, shape));
  return setup;
}

void add_topk_of(Catalogue& catalogue, uint32_t dtype) {
  auto* adding = add_plain;
  for (const int32_t smallest : {0, 1}) {
    int32_t values = 0;
    const auto put = [&](const Shape& shape, int32_t axis, int32_t k, DataPattern data, Layout layout = Layout::dense) {
      Problem problem{.op = BP_OP_TOPK,
                      .dtype = dtype,
                      .shape = shape,
                      .layout = layout,
                      .pattern = data == DataPattern::special ? DataPattern::special : DataPattern::family,
                      .make = make_topk};
      problem.parameters = {axis, k, smallest, number_of(data), values};
      std::string more("axis_");
      more.append(std::to_string(axis)).append(".k").append(std::to_string(k)).append(".").append(name_of(data));
      more.append(smallest != 0 ? ".smallest" : "").append(values != 0 ? ".values" : "");
      adding(catalogue, problem, more);
    };
    for (const DataPattern data :
         {DataPattern::few, DataPattern::zero_mean, DataPattern::special, DataPattern::equal}) {
      for (const int32_t k : {1, 2, 5, 33}) put({4, 33}, 1, k, data), put({33, 4}, 0, k, data);
      put({1025}, 0, 17, data);
    }
    for (const Layout layout : kCommonLayouts) put({5, 4, 11}, 1, 3, DataPattern::few, layout);
    values = 1;
    for (const DataPattern data : {DataPattern::few, DataPattern::special})
      put({4, 33}, 1, 5, data), put({1025}, 0, 17, data);
    put({5, 4, 11}, 1, 3, DataPattern::few, Layout::transposed);
    values = 0;
    adding = add_mixed;
    put({4, 33}, 1, 5, DataPattern::few);
    put({5, 4, 11}, 1, 3, DataPattern::zero_mean, Layout::padded);
    adding = add_plain;
  }
}

}  // namespace

void add_topk(Catalogue& catalogue) {
  for_dtypes(oracle::operator_of(BP_OP_TOPK)->dtypes, [&](uint32_t dtype) { add_topk_of(catalogue, dtype); });
}

}  // namespace backplane::conformance::numeric
