// SPDX-License-Identifier: Apache-2.0
// Test cases for the unary operator.
#include <cmath>

#include "cases/numeric/cases.hpp"
#include "cases/numeric/composite.hpp"
#include "cases/numeric/fill_data.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

struct Function {
  std::string_view name;
  uint32_t number;
  long double scale, offset;  // the input is in [offset - scale, offset + scale)
};
constexpr Function kFunctions[] = {
    {"expm1", BP_UNARY_EXPM1, 3, 0},
    {"exp2", BP_UNARY_EXP2, 140, 0},
    {"log1p", BP_UNARY_LOG1P, 1.5L, 0.5L},
    {"log2", BP_UNARY_LOG2, 3, 3.25L},
    {"log10", BP_UNARY_LOG10, 3, 3.25L},
    {"sign", BP_UNARY_SIGN, 3, 0},
    {"ceil", BP_UNARY_CEIL, 3, 0},
    {"trunc", BP_UNARY_TRUNC, 3, 0},
    {"frac", BP_UNARY_FRAC, 3, 0},
    {"tan", BP_UNARY_TAN, 6, 0},
    {"asin", BP_UNARY_ASIN, 1, 0},
    {"acos", BP_UNARY_ACOS, 1, 0},
    {"atan", BP_UNARY_ATAN, 3, 0},
    {"sinh", BP_UNARY_SINH, 6, 0},
    {"cosh", BP_UNARY_COSH, 6, 0},
    {"asinh", BP_UNARY_ASINH, 3, 0},
    {"acosh", BP_UNARY_ACOSH, 2, 3},
    {"atanh", BP_UNARY_ATANH, 1, 0},
    {"softplus", BP_UNARY_SOFTPLUS, 24, 0},
    {"log_sigmoid", BP_UNARY_LOG_SIGMOID, 24, 0},
    {"mish", BP_UNARY_MISH, 24, 0},
    {"hard_sigmoid", BP_UNARY_HARD_SIGMOID, 5, 0},
    {"hard_swish", BP_UNARY_HARD_SWISH, 5, 0},
};

// Moves half of the elements close to the middle or to an end of the function's range, where functions cancel or have a
// steep slope. A random power of two reduces the distance of each moved element from the middle or end.
void concentrate(oracle::Tensor& tensor, const Function& function, Random& random) {
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const long double part = (oracle::value_at(tensor, i) - function.offset) / function.scale;
    const long double near = std::ldexp(part, -static_cast<int>(random() % 20));
    if (i % 4 < 2) continue;
    const long double moved = i % 4 == 2 ? near : std::copysign(1 - std::fabs(near), part);
    oracle::store(tensor, i, oracle::encode(tensor.dtype, moved * function.scale + function.offset));
  }
}

// Parameter 0 of `problem` is an index into kFunctions.
Setup make_function(const Problem& problem, Random& random) {
  const Function& function = kFunctions[problem.parameters[0]];
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call, bp_unary_attributes{0, function.number});
  setup.call.inputs = {scaled(problem.dtype, problem.shape.list(), function.scale, function.offset, random)};
  setup.call.outputs = {output(problem.dtype, problem.shape.list())};
  if (problem.pattern != DataPattern::family) {
    fill_inputs(setup.call.inputs, problem, problem.dtype, random);
  } else {
    concentrate(setup.call.inputs[0], function, random);
  }
  return setup;
}

void add_function(Catalogue& catalogue, uint32_t dtype, size_t index) {
  const Function& function = kFunctions[index];
  Problem problem{.op = BP_OP_UNARY, .dtype = dtype, .make = make_function};
  problem.parameters = {static_cast<int32_t>(index)};
  const auto put = [&](const Shape& shape, DataPattern pattern, Layout layout = Layout::dense, Mode mode = Mode::once) {
    problem.shape = shape;
    problem.pattern = pattern;
    problem.layout = layout;
    problem.mode = mode;
    add_composite(catalogue, problem, function.name);
  };
  put({2049}, DataPattern::family);
  put({3000}, DataPattern::bits);
  const bool wide = dtype == BP_F32 || dtype == BP_F64;
  if (wide) put({300}, DataPattern::special);
  // Only two functions have cases for all shapes and layouts. The decomposition of asinh contains most kinds of steps.
  // A plugin with few native functions still computes expm1 natively.
  if (function.number != BP_UNARY_ASINH && function.number != BP_UNARY_EXPM1) return;
  for (const Shape& shape : {Shape{0}, Shape{1}, Shape{}, Shape{2, 1, 3, 1, 2, 2, 1, 3}})
    put(shape, DataPattern::family);
  for (const Layout layout : kCommonLayouts) put({5, 4, 11}, DataPattern::family, layout);
  for (const Layout layout : {Layout::in_place, Layout::in_place_strided, Layout::outer_0}) {
    put({5, 4, 11}, DataPattern::family, layout);
  }
  put({7, 9}, DataPattern::family, Layout::dense, Mode::twice);
  put({7, 9}, DataPattern::family, Layout::dense, Mode::resized);
}

}  // namespace

void add_elementwise_function(Catalogue& catalogue) {
  for (const uint32_t dtype : kFloatDtypes) {
    for (size_t index = 0; index < std::size(kFunctions); ++index) add_function(catalogue, dtype, index);
  }
}

}  // namespace backplane::conformance::numeric
