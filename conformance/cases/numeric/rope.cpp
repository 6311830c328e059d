// SPDX-License-Identifier: Apache-2.0
// Test cases for the operators rope and rotate.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/composite.hpp"
#include "cases/numeric/mixed.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

// The shape of `problem` is the shape of x. The parameters are the attributes `interleaved` and
// `rotary_extent`, and the maximum position.
Setup make_rope(const Problem& problem, Random& random) {
  std::vector<int64_t> shape = problem.shape.list();
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call, bp_rope_attributes{0, static_cast<uint32_t>(problem.parameters[0]), 10000.0f,
                                                static_cast<uint32_t>(problem.parameters[1])});
  setup.call.inputs = {scaled(problem.dtype, shape, 2, 0, random)};
  setup.call.outputs = {output(problem.dtype, shape)};
  shape.pop_back();
  oracle::Tensor position = make_tensor(BP_I32, shape);
  for (int64_t i = 0; i < position.count(); ++i) {
    const int64_t drawn =
        i % 4 == 0 ? i / 4 : static_cast<int64_t>(random() % (static_cast<uint64_t>(problem.parameters[2]) + 1));
    oracle::store(position, i, oracle::encode_integer(BP_I32, drawn));
  }
  setup.call.inputs.push_back(position);
  return setup;
}

// The shape of `problem` is the shape of x. The parameters are the attribute `interleaved` and the
// number of pairs.
Setup make_rotate(const Problem& problem, Random& random) {
  std::vector<int64_t> shape = problem.shape.list();
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call, bp_rotate_attributes{0, static_cast<uint32_t>(problem.parameters[0])});
  setup.call.outputs = {output(problem.dtype, shape)};
  setup.call.inputs = {scaled(problem.dtype, shape, 2, 0, random)};
  shape.back() = problem.parameters[1];
  // The inputs `cosine` and `sine` are random numbers, because rotate accepts any values.
  for (const long double middle : {0.25L, -0.5L})
    setup.call.inputs.push_back(scaled(problem.dtype, shape, 1, middle, random));
  return setup;
}

void add_rotate(Catalogue& catalogue, uint32_t dtype) {
  auto* adding = add_plain;
  const auto put = [&](const Shape& shape, int32_t interleaved, int32_t pairs, Layout layout = Layout::dense,
                       Mode mode = Mode::once) {
    Problem problem{.op = BP_OP_ROTATE,
                    .dtype = dtype,
                    .shape = shape,
                    .layout = layout,
                    .pattern = DataPattern::family,
                    .mode = mode,
                    .make = make_rotate};
    problem.parameters = {interleaved, pairs};
    std::string more(interleaved != 0 ? "adjacent" : "halves");
    adding(catalogue, problem, more.append(".pairs_").append(std::to_string(pairs)));
  };
  for (const int32_t interleaved : {0, 1}) {
    for (const int32_t pairs : {0, 1, 3, 4}) put({2, 3, 5, 8}, interleaved, pairs);
    put({9, 64}, interleaved, 32);
    put({7, 13}, interleaved, 6);
    put({6}, interleaved, 3);
    put({0, 8}, interleaved, 4);
    for (const Layout layout : kCommonLayouts) put({2, 5, 8}, interleaved, 3, layout);
    for (const Layout layout : {Layout::outer_0, Layout::inner_0}) put({4, 5, 8}, interleaved, 4, layout);
  }
  for (const Mode mode : {Mode::twice, Mode::resized}) put({6, 8}, 0, 4, Layout::dense, mode);
  adding = add_mixed;
  for (const Layout layout : {Layout::dense, Layout::padded}) put({2, 9, 8}, 1, 3, layout);
}

}  // namespace

void add_rope(Catalogue& catalogue, uint32_t dtype) {
  add_rotate(catalogue, dtype);
  auto* adding = add_plain;
  const auto put = [&](const Shape& shape, int32_t interleaved, int32_t extent, int32_t furthest,
                       Layout layout = Layout::dense) {
    Problem problem{.op = BP_OP_ROPE,
                    .dtype = dtype,
                    .shape = shape,
                    .layout = layout,
                    .pattern = DataPattern::family,
                    .make = make_rope};
    problem.parameters = {interleaved, extent, furthest};
    std::string more(interleaved != 0 ? "pairs" : "halves");
    adding(catalogue, problem,
           more.append(".of_").append(std::to_string(extent)).append(".to_").append(std::to_string(furthest)));
  };
  for (const int32_t interleaved : {0, 1}) {
    for (const int32_t furthest : {0, 15, 4095, 131071}) {
      put({2, 3, 5, 8}, interleaved, 0, furthest);
      put({9, 64}, interleaved, 0, furthest);
      put({4, 12}, interleaved, 8, furthest);
    }
    put({7, 2}, interleaved, 0, 100);
    for (const Layout layout : kCommonLayouts) put({2, 5, 8}, interleaved, 6, 100, layout);
  }
  adding = add_mixed;
  for (const Layout layout : {Layout::dense, Layout::padded}) put({2, 9, 8}, 0, 6, 100, layout);
}

}  // namespace backplane::conformance::numeric
