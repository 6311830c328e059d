// SPDX-License-Identifier: Apache-2.0
// Test cases for the rope operator.
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

}  // namespace

void add_rope(Catalogue& catalogue, uint32_t dtype) {
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
