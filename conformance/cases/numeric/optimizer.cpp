// SPDX-License-Identifier: Apache-2.0
// Test cases for the adamw operator.
#include <cmath>

#include "cases/numeric/cases.hpp"
#include "cases/numeric/composite.hpp"
#include "cases/numeric/mixed.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

// Parameter 0 of `problem` is the step number. Parameter 1 is nonzero if weights decay.
Setup make_adamw(const Problem& problem, Random& random) {
  const std::vector<int64_t> shape = problem.shape.list();
  const auto step = static_cast<double>(problem.parameters[0]);
  const float beta1 = 0.9f, beta2 = 0.999f;
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call, bp_adamw_attributes{0, beta1, beta2, 1e-8f, problem.parameters[1] != 0 ? 0.25f : 0.0f, 0});
  setup.call.inputs = {scaled(problem.dtype, shape, 1, 0, random)};
  const bool first = problem.parameters[0] == 1;
  setup.call.outputs = {scaled(problem.dtype, shape, 1, 0, random),
                        scaled(problem.dtype, shape, first ? 0 : 0.5L, 0, random),
                        scaled(problem.dtype, shape, first ? 0 : 0.25L, first ? 0 : 0.5L, random)};
  for (const double scalar :
       {1.0 / 1024, 1 - std::pow(static_cast<double>(beta1), step), 1 - std::pow(static_cast<double>(beta2), step)}) {
    setup.call.scalars.push_back(oracle::encode(BP_F32, static_cast<long double>(scalar)));
  }
  return setup;
}

}  // namespace

void add_optimizer(Catalogue& catalogue, uint32_t dtype) {
  auto* adding = add_plain;
  const auto put = [&](const Shape& shape, int32_t step, int32_t decays, Layout layout = Layout::dense,
                       Mode mode = Mode::once) {
    Problem problem{.op = BP_OP_ADAMW,
                    .dtype = dtype,
                    .shape = shape,
                    .layout = layout,
                    .pattern = DataPattern::family,
                    .mode = mode,
                    .make = make_adamw};
    problem.parameters = {step, decays};
    adding(catalogue, problem, "step_" + std::to_string(step) + (decays != 0 ? ".decay" : ".plain"));
  };
  for (const int32_t step : {1, 2, 100, 10000}) {
    for (const int32_t decays : {0, 1}) {
      for (const Shape& shape : {Shape{1}, Shape{33}, Shape{1025}, Shape{5, 7}}) put(shape, step, decays);
    }
  }
  for (const Layout layout : kCommonLayouts) put({5, 4, 11}, 3, 1, layout);
  put({65}, 3, 1, Layout::dense, Mode::twice);
  put({65}, 3, 1, Layout::dense, Mode::device_scalars);
  adding = add_mixed;
  for (const int32_t step : {1, 100}) {
    for (const Shape& shape : {Shape{33}, Shape{1025}}) put(shape, step, 1);
  }
  for (const Layout layout : {Layout::padded, Layout::transposed}) put({5, 4, 11}, 3, 0, layout);
}

}  // namespace backplane::conformance::numeric
