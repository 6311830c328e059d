// SPDX-License-Identifier: Apache-2.0
// Test cases for the operators cross_entropy, nll and nll_bwd.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/logits.hpp"
#include "cases/numeric/mixed.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

struct Loss {
  std::string_view name;
  uint32_t reduction;
  float smoothing;
  bool weights, ignores, gradient;
  int64_t ignored = -100;
};
constexpr Loss kLosses[] = {
    {"none", BP_REDUCTION_NONE, 0, false, false, false},
    {"none_all", BP_REDUCTION_NONE, 0.125f, true, true, true},
    {"sum", BP_REDUCTION_SUM, 0, false, true, false},
    {"sum_weighted", BP_REDUCTION_SUM, 0, true, false, true},
    {"mean", BP_REDUCTION_MEAN, 0, false, false, true},
    {"mean_ignoring", BP_REDUCTION_MEAN, 0, false, true, true},
    {"mean_weighted", BP_REDUCTION_MEAN, 0, true, true, true},
    {"mean_smooth", BP_REDUCTION_MEAN, 0.25f, true, true, true},
    // In these settings, ignore_index is outside the range of i32, so no row may be ignored.
    {"mean_far_index", BP_REDUCTION_MEAN, 0, false, false, true, (int64_t{1} << 32) + 1},
    {"none_far_index", BP_REDUCTION_NONE, 0, true, false, true, INT64_MIN},
    {"sum_far_index", BP_REDUCTION_SUM, 0.125f, true, false, true, INT64_MAX - 1},
};

Setup make_loss(const Problem& problem, Random& random) {
  const Loss& loss = kLosses[problem.parameters[setting_parameter]];
  const std::vector<int64_t> shape = problem.shape.list();
  const int64_t rows = shape[0], classes = shape[1];
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call, bp_cross_entropy_attributes{0, loss.reduction, loss.ignored, loss.smoothing, 0});
  oracle::Tensor target = make_tensor(BP_I32, {rows});
  for (int64_t n = 0; n < rows; ++n) {
    const bool skip = loss.ignores && n % 3 == 1;
    oracle::store(target, n,
                  oracle::encode_integer(
                      BP_I32, skip ? loss.ignored : static_cast<int64_t>(random() % static_cast<uint64_t>(classes))));
  }
  setup.call.inputs = {
      make_logits(problem.dtype, shape, static_cast<Logits>(problem.parameters[logits_parameter]), random), target};
  if (loss.weights) setup.call.inputs.push_back(scaled(problem.dtype, {classes}, 0.5L, 1, random));
  setup.call.outputs = {
      output(problem.dtype, loss.reduction == BP_REDUCTION_NONE ? std::vector<int64_t>{rows} : std::vector<int64_t>{})};
  if (loss.gradient) setup.call.outputs.push_back(output(problem.dtype, shape));
  return setup;
}

struct Likelihood {
  std::string_view name;
  uint32_t reduction;
  bool weights, ignores, total;
  int64_t ignored = -100;
};
constexpr Likelihood kLikelihoods[] = {
    {"none", BP_REDUCTION_NONE, true, true, false},
    {"sum", BP_REDUCTION_SUM, false, true, false},
    {"mean", BP_REDUCTION_MEAN, false, true, true},
    {"mean_weighted", BP_REDUCTION_MEAN, true, true, false},
    {"mean_weighted_total", BP_REDUCTION_MEAN, true, true, true},
    // The ignore_index is outside the range of i32, so no row may be ignored.
    {"mean_far_index", BP_REDUCTION_MEAN, true, false, true, (int64_t{1} << 32) + 1},
};

// Creates the Setup of an nll or nll_bwd case. The input `total weight` of nll_bwd differs from the sum of the weights.
// A plugin that computes the sum instead of reading this input therefore gives a wrong result.
Setup make_likelihood(const Problem& problem, Random& random) {
  const Likelihood& loss = kLikelihoods[problem.parameters[0]];
  const std::vector<int64_t> shape = problem.shape.list();
  const bool backward = problem.op == BP_OP_NLL_BWD, each = loss.reduction == BP_REDUCTION_NONE;
  const std::vector<int64_t> single, rows = {shape[0]}, reduced = each ? rows : single;
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call, bp_nll_attributes{0, loss.reduction, loss.ignored});
  oracle::Tensor target = make_tensor(BP_I32, rows);
  for (int64_t n = 0; n < shape[0]; ++n) {
    const auto drawn = static_cast<int64_t>(random() % static_cast<uint64_t>(shape[1]));
    oracle::store(target, n, oracle::encode_integer(BP_I32, loss.ignores && n % 3 == 1 ? loss.ignored : drawn));
  }
  setup.call.inputs = {
      backward ? scaled(problem.dtype, reduced, 1, 2, random) : scaled(problem.dtype, shape, 4, -4, random), target};
  if (loss.weights || (backward && loss.total)) setup.call.inputs.resize(3);
  if (loss.weights) setup.call.inputs[2] = scaled(problem.dtype, {shape[1]}, 0.5L, 1, random);
  if (backward && loss.total) setup.call.inputs.push_back(scaled(problem.dtype, single, 1, 5, random));
  setup.call.outputs = {output(problem.dtype, backward ? shape : reduced)};
  if (!backward && loss.total) setup.call.outputs.push_back(output(problem.dtype, single));
  return setup;
}

void add_likelihood(Catalogue& catalogue, uint32_t op, uint32_t dtype, size_t setting) {
  const Likelihood& loss = kLikelihoods[setting];
  auto* adding = add_plain;
  const auto put = [&](const Shape& shape, Layout layout = Layout::dense) {
    Problem problem{.op = op,
                    .dtype = dtype,
                    .shape = shape,
                    .layout = layout,
                    .pattern = DataPattern::family,
                    .make = make_likelihood};
    problem.parameters = {static_cast<int32_t>(setting)};
    adding(catalogue, problem, loss.name);
  };
  for (const Shape& shape : {Shape{1, 2}, Shape{7, 10}, Shape{331, 65}}) put(shape);
  if (loss.name == "mean_weighted") {
    for (const Layout layout : kCommonLayouts) put({9, 6}, layout);
  }
  adding = add_mixed;
  if (loss.weights) put({7, 10});
}

}  // namespace

void add_loss(Catalogue& catalogue, uint32_t dtype) {
  for (size_t setting = 0; setting < std::size(kLosses); ++setting) {
    LogitCases put(catalogue, BP_OP_CROSS_ENTROPY, dtype, make_loss, static_cast<int32_t>(setting),
                   kLosses[setting].name);
    for (const Logits kind : {Logits::usual, Logits::wide, Logits::shifted, Logits::equal}) {
      for (const Shape& shape : {Shape{1, 2}, Shape{7, 10}, Shape{33, 65}}) put(shape, 1, kind);
    }
    for (const Layout layout : kCommonLayouts) put({9, 6}, 1, Logits::usual, layout);
    put.add = add_mixed;
    put({7, 10}, 1, Logits::usual);
    put({9, 6}, 1, Logits::wide, Layout::padded);
  }
  for (const uint32_t op : {BP_OP_NLL, BP_OP_NLL_BWD}) {
    for (size_t setting = 0; setting < std::size(kLikelihoods); ++setting)
      add_likelihood(catalogue, op, dtype, setting);
  }
}

}  // namespace backplane::conformance::numeric
