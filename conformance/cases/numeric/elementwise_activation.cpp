// SPDX-License-Identifier: Apache-2.0
// Test cases for the operators gelu, silu, sigmoid, pow and activation_bwd.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/composite.hpp"
#include "cases/numeric/fill_data.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

// Parameter 0 of `problem` is the gelu approximation.
Setup make_activation(const Problem& problem, Random& random) {
  const std::vector<int64_t> shape = problem.shape.list();
  Setup setup;
  setup.call.op = problem.op;
  if (problem.op == BP_OP_GELU)
    set_attributes(setup.call, bp_gelu_attributes{0, static_cast<uint32_t>(problem.parameters[0])});
  setup.call.inputs.push_back(make_tensor(problem.dtype, shape));
  if (problem.op == BP_OP_POW) setup.call.inputs.push_back(make_tensor(problem.dtype, shape));
  setup.call.outputs.push_back(output(problem.dtype, shape));
  if (problem.pattern != DataPattern::family) {
    fill_inputs(setup.call.inputs, problem, problem.dtype, random);
  } else if (problem.op == BP_OP_POW) {
    setup.call.inputs = {scaled(problem.dtype, shape, 3, 3.25L, random), scaled(problem.dtype, shape, 4, 0, random)};
  } else {
    setup.call.inputs = {scaled(problem.dtype, shape, 12, 0, random)};
  }
  return setup;
}

void add_one(Catalogue& catalogue, uint32_t op, uint32_t dtype, int32_t variant, std::string_view more) {
  Problem problem{.op = op, .dtype = dtype, .make = make_activation};
  problem.parameters = {variant};
  const auto put = [&](const Shape& shape, DataPattern pattern, Layout layout = Layout::dense, Mode mode = Mode::once) {
    problem.shape = shape;
    problem.pattern = pattern;
    problem.layout = layout;
    problem.mode = mode;
    add_composite(catalogue, problem, more);
  };
  for (const int32_t n : {0, 1, 7, 33, 257, 4097}) put({n}, DataPattern::family);
  put({}, DataPattern::family);
  put({2, 1, 3, 1, 2, 2, 1, 3}, DataPattern::family);
  put({2000}, DataPattern::special);
  put({6000}, DataPattern::windows);
  put({5000}, DataPattern::bits);
  put({3000}, DataPattern::zeros);
  if (oracle::bytes_of(dtype) == 2 && op != BP_OP_POW) put({256, 256}, DataPattern::exhaustive);
  for (const Layout layout : kCommonLayouts) put({5, 4, 11}, DataPattern::family, layout);
  for (const Layout layout : {Layout::in_place, Layout::in_place_strided, Layout::outer_0, Layout::immediate_last}) {
    put({5, 4, 11}, DataPattern::family, layout);
  }
  put({7, 9}, DataPattern::family, Layout::dense, Mode::twice);
  put({7, 9}, DataPattern::family, Layout::dense, Mode::resized);
}

struct Backward {
  std::string_view name;
  uint32_t activation;
  long double scale, offset;  // input 1 is in [offset - scale, offset + scale)
};
constexpr Backward kBackward[] = {
    {"relu", BP_ACTIVATION_RELU, 12, 0},
    {"gelu_erf", BP_ACTIVATION_GELU_ERF, 12, 0},
    {"gelu_tanh", BP_ACTIVATION_GELU_TANH, 12, 0},
    {"silu", BP_ACTIVATION_SILU, 24, 0},
    {"sigmoid", BP_ACTIVATION_SIGMOID, 0.5L, 0.5L},
    {"tanh", BP_ACTIVATION_TANH, 1, 0},
};

// Parameter 0 of `problem` is an index into kBackward.
Setup make_slopes(const Problem& problem, Random& random) {
  const Backward& backward = kBackward[problem.parameters[0]];
  const std::vector<int64_t> shape = problem.shape.list();
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call, bp_activation_bwd_attributes{0, backward.activation});
  setup.call.inputs = {scaled(problem.dtype, shape, 2, 0, random),
                       scaled(problem.dtype, shape, backward.scale, backward.offset, random)};
  setup.call.outputs = {output(problem.dtype, shape)};
  if (problem.pattern != DataPattern::family) fill_inputs(setup.call.inputs, problem, problem.dtype, random);
  return setup;
}

void add_slopes(Catalogue& catalogue, uint32_t dtype, size_t index) {
  const Backward& backward = kBackward[index];
  Problem problem{.op = BP_OP_ACTIVATION_BWD, .dtype = dtype, .make = make_slopes};
  problem.parameters = {static_cast<int32_t>(index)};
  const auto put = [&](const Shape& shape, DataPattern pattern, Layout layout = Layout::dense, Mode mode = Mode::once) {
    problem.shape = shape;
    problem.pattern = pattern;
    problem.layout = layout;
    problem.mode = mode;
    add_composite(catalogue, problem, backward.name);
  };
  put({4097}, DataPattern::family);
  put({3000}, DataPattern::special);
  // Cases of sigmoid and tanh have no random bits, because most random numbers are outside the ranges of these
  // functions. For such an input, every result is right.
  if (backward.offset == 0 && backward.scale > 1) put({5000}, DataPattern::bits);
  // Only gelu_tanh has cases for all shapes, layouts and modes, because its decomposition contains all kinds of steps.
  if (backward.activation != BP_ACTIVATION_GELU_TANH) return;
  for (const Shape& shape : {Shape{0}, Shape{1}, Shape{257}, Shape{}, Shape{2, 1, 3, 1, 2, 2, 1, 3}})
    put(shape, DataPattern::family);
  for (const Layout layout : kCommonLayouts) put({5, 4, 11}, DataPattern::family, layout);
  for (const Layout layout : {Layout::in_place, Layout::in_place_second, Layout::outer_0, Layout::immediate_last}) {
    put({5, 4, 11}, DataPattern::family, layout);
  }
  put({7, 9}, DataPattern::family, Layout::dense, Mode::twice);
  put({7, 9}, DataPattern::family, Layout::dense, Mode::resized);
}

}  // namespace

void add_elementwise_activation(Catalogue& catalogue) {
  for (const uint32_t dtype : kFloatDtypes) {
    add_one(catalogue, BP_OP_GELU, dtype, BP_GELU_ERF, "erf");
    add_one(catalogue, BP_OP_GELU, dtype, BP_GELU_TANH, "tanh");
    for (const uint32_t op : {BP_OP_SILU, BP_OP_SIGMOID, BP_OP_POW}) add_one(catalogue, op, dtype, 0, {});
    for (size_t index = 0; index < std::size(kBackward); ++index) add_slopes(catalogue, dtype, index);
  }
}

}  // namespace backplane::conformance::numeric
