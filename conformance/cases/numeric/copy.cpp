// SPDX-License-Identifier: Apache-2.0
// Test cases for the operators fill, copy and iota.
#include <cmath>

#include "cases/numeric/cases.hpp"
#include "cases/numeric/fill_data.hpp"
#include "cases/numeric/test_matrix.hpp"
#include "cases/numeric/values.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

namespace {

Setup make_fill(const Problem& problem, Random& random) {
  // The fill value is a random element of a tensor with the problem's data pattern.
  std::vector<oracle::Tensor> drawn = {make_tensor(problem.dtype, {16})};
  fill_inputs(drawn, problem, problem.dtype, random);
  Setup setup;
  setup.call.op = problem.op;
  setup.call.scalars = {oracle::load(drawn[0], static_cast<int64_t>(random() % 16))};
  setup.call.outputs.push_back({problem.dtype, problem.shape.list(), {}});
  return setup;
}

Setup make_copy(const Problem& problem, Random& random) {
  Setup setup;
  setup.call.op = problem.op;
  setup.call.inputs.push_back(make_tensor(problem.dtype, problem.shape.list()));
  fill_inputs(setup.call.inputs, problem, problem.dtype, random);
  setup.call.outputs.push_back({problem.dtype, problem.shape.list(), {}});
  return setup;
}

// Creates the Setup of an iota case. Results of integer dtypes may wrap.
Setup make_iota(const Problem& problem, Random& random) {
  const uint32_t dtype = problem.dtype;
  const auto axis = static_cast<uint32_t>(problem.parameters[0]);
  uint64_t start = 0, step = 0;
  if (!oracle::is_float(dtype)) {
    start = problem.pattern == DataPattern::special ? special_bits(dtype)[random() % special_bits(dtype).size()]
                                                    : any_bits(dtype, random);
    step = problem.pattern == DataPattern::zeros  ? 0
           : problem.pattern == DataPattern::tags ? random() % 5 + 1
                                                  : any_bits(dtype, random);
  } else {
    const long double sign = random() % 2 == 0 ? 1 : -1;
    const int power = static_cast<int>(random() % 9) - 6;
    const auto whole = static_cast<long double>(random() % 64);
    const bool any = problem.pattern == DataPattern::uniform, none = problem.pattern == DataPattern::zeros;
    start = oracle::encode(dtype, sign * (any ? unit(random) * 100 : whole));
    step = oracle::encode(dtype, none  ? 0
                                 : any ? sign * unit(random)
                                       : std::ldexp(problem.pattern == DataPattern::tags ? sign : -sign, power));
  }
  Setup setup;
  setup.call.op = problem.op;
  setup.call.scalars = {start, step};
  setup.call.outputs.push_back({dtype, problem.shape.list(), {}});
  set_attributes(setup.call, bp_axis_attributes{0, axis});
  return setup;
}

std::string vary_axis(Problem& problem, uint64_t case_number) {
  if (problem.shape.rank == 0) return {};
  problem.parameters[0] = static_cast<int32_t>(case_number % problem.shape.rank);
  return "axis" + std::to_string(problem.parameters[0]);
}

void add_scalars(Catalogue& catalogue, const Problem& base, bool ranked) {
  for (const Mode mode : {Mode::device_scalars, Mode::again, Mode::resized}) {
    for (const Layout layout : {Layout::dense, Layout::padded, Layout::reversed}) {
      Problem problem = base;
      problem.shape = {17, 9};
      problem.layout = layout;
      problem.pattern = DataPattern::uniform;
      problem.mode = mode;
      add(catalogue, problem, ranked ? "axis0.scalars" : "scalars");
    }
  }
}

}  // namespace

void add_fill(Catalogue& catalogue) {
  std::vector<Problem> apart;
  for_dtypes(oracle::operator_of(BP_OP_FILL)->dtypes, [&](uint32_t dtype) {
    const Problem base{.op = BP_OP_FILL, .dtype = dtype, .make = make_fill};
    TestMatrix matrix(catalogue, base, {}, {DataPattern::tags, DataPattern::special, DataPattern::bits});
    matrix.cover(1);
    matrix.cover_patterns();
    matrix.cover_modes();
    add_scalars(catalogue, base, false);
    if (!oracle::format_of(dtype).core) return;
    for (const Layout layout : {Layout::dense, Layout::transposed, Layout::reversed}) {
      apart.push_back({.op = BP_OP_FILL, .dtype = dtype, .shape = {9, 7}, .layout = layout, .make = make_fill});
    }
  });
  add_apart(catalogue, apart, "apart");
}

void add_copy(Catalogue& catalogue) {
  std::vector<Problem> apart;
  for_dtypes(oracle::operator_of(BP_OP_COPY)->dtypes, [&](uint32_t dtype) {
    TestMatrix matrix(catalogue, {.op = BP_OP_COPY, .dtype = dtype, .make = make_copy}, {dtype},
                      {DataPattern::tags, DataPattern::special, DataPattern::bits});
    matrix.cover(1);
    matrix.cover_patterns();
    matrix.cover_modes();
    const uint32_t width = 8 * oracle::bytes_of(dtype);
    if (width <= 16) matrix.one({dtype == BP_BOOL ? 2 : 1 << width}, Layout::dense, DataPattern::exhaustive);
    for (const Shape& shape : rich_shapes()) {
      for (const Layout layout : {Layout::mixed, Layout::rotated, Layout::back_2, Layout::unfold, Layout::flipped}) {
        if (layout != Layout::rotated || shape.rank > 2) matrix.one(shape, layout, DataPattern::bits);
      }
    }
    // Adds transposes that need several tiles in both directions. Some shapes have other dimensions between rows and
    // columns.
    for (const Shape& shape : {Shape{130, 97}, Shape{40, 2, 70}, Shape{33, 2, 3, 65}})
      matrix.one(shape, Layout::mixed, DataPattern::bits);
    matrix.one({64, 48}, Layout::unfold, DataPattern::bits);  // windows whose extents are multiples of every vector
    if (!oracle::format_of(dtype).core) return;
    for (const Layout layout : {Layout::dense, Layout::transposed, Layout::flipped, Layout::outer_0}) {
      apart.push_back({.op = BP_OP_COPY, .dtype = dtype, .shape = {9, 7}, .layout = layout, .make = make_copy});
    }
  });
  add_apart(catalogue, apart, "apart");
}

void add_iota(Catalogue& catalogue) {
  std::vector<Problem> apart;
  for_dtypes(oracle::operator_of(BP_OP_IOTA)->dtypes, [&](uint32_t dtype) {
    const Problem base{.op = BP_OP_IOTA, .dtype = dtype, .make = make_iota};
    TestMatrix matrix(catalogue, base, {},
                      {DataPattern::tags, DataPattern::special, DataPattern::uniform, DataPattern::zeros});
    matrix.vary(vary_axis);
    matrix.needs_rank();
    matrix.cover(1);
    matrix.cover_patterns();
    matrix.cover_modes();
    add_scalars(catalogue, base, true);
    if (!oracle::format_of(dtype).core) return;
    for (const int32_t axis : {0, 1}) {
      for (const Layout layout : {Layout::dense, Layout::transposed, Layout::reversed}) {
        apart.push_back({.op = BP_OP_IOTA, .dtype = dtype, .shape = {9, 7}, .layout = layout, .make = make_iota});
        apart.back().parameters[0] = axis;
      }
    }
  });
  add_apart(catalogue, apart, "apart");
}

}  // namespace backplane::conformance::numeric
