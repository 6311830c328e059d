// SPDX-License-Identifier: Apache-2.0
// Test cases for the operators softmax, log_softmax and softmax_bwd.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/logits.hpp"
#include "cases/numeric/mixed.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

Setup make_softmax(const Problem& problem, Random& random) {
  const std::vector<int64_t> shape = problem.shape.list();
  const auto axis = static_cast<uint32_t>(problem.parameters[logit_axis_parameter]);
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call, bp_axis_attributes{0, axis});
  setup.call.inputs = {
      make_logits(problem.dtype, shape, static_cast<Logits>(problem.parameters[logits_parameter]), random)};
  setup.call.outputs = {output(problem.dtype, shape)};
  return setup;
}

// The inputs are dy and the result of the forward operator.
Setup make_backward(const Problem& problem, Random& random) {
  Problem forward = problem;
  const bool logarithm = problem.parameters[setting_parameter] != 0;
  forward.op = logarithm ? BP_OP_LOG_SOFTMAX : BP_OP_SOFTMAX;
  Setup setup = make_softmax(forward, random);
  const oracle::Expected y = oracle::evaluate(setup.call)[0];
  oracle::Tensor result = make_tensor(problem.dtype, problem.shape.list());
  for (size_t i = 0; i < y.elements.size(); ++i) oracle::store(result, static_cast<int64_t>(i), y.elements[i].bits);
  setup.call.op = problem.op;
  set_attributes(setup.call,
                 bp_softmax_bwd_attributes{0, static_cast<uint32_t>(problem.parameters[logit_axis_parameter]),
                                           logarithm ? 1u : 0u, 0});
  setup.call.inputs = {scaled(problem.dtype, problem.shape.list(), 1, 0, random), result};
  return setup;
}

}  // namespace

void add_softmax(Catalogue& catalogue, uint32_t dtype) {
  for (const uint32_t op : {BP_OP_SOFTMAX, BP_OP_LOG_SOFTMAX}) {
    LogitCases put(catalogue, op, dtype, make_softmax, 0, {});
    put.every_kind(true);
    for (const int32_t n : {3, 8, 31, 64, 127, 128, 129, 1023, 1024, 1025})
      put({3, n}, 1, Logits::usual), put({n, 3}, 0, Logits::wide);
    put({2, 50257}, 1, Logits::usual);
    put({0, 3}, 1, Logits::usual);
    put({2, 1, 3, 1, 2, 2, 5, 2}, 6, Logits::usual);
    put.layouts({Layout::in_place, Layout::in_place_strided, Layout::outer_0});
    for (const Mode mode : {Mode::twice, Mode::resized}) put({5, 33}, 1, Logits::wide, Layout::dense, mode);
    put.add = add_mixed;
    for (const Logits kind : {Logits::usual, Logits::wide, Logits::masked, Logits::nan}) put({5, 33}, 1, kind);
    for (const int32_t axis : {0, 1, 2}) put({5, 4, 11}, axis, Logits::usual, Layout::padded);
  }
  for (const int32_t logarithm : {0, 1}) {
    LogitCases put(catalogue, BP_OP_SOFTMAX_BWD, dtype, make_backward, logarithm, logarithm != 0 ? "log" : "plain");
    put.every_kind(false);
    put({3, 1025}, 1, Logits::usual);
    put.layouts({Layout::in_place, Layout::in_place_second});
  }
}

}  // namespace backplane::conformance::numeric
