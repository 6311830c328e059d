// SPDX-License-Identifier: Apache-2.0
// Test cases for the embedding operator.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/composite.hpp"
#include "cases/numeric/mixed.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

// The shape of `problem` is the shape of the index. Parameter 0 is the number of entries in the
// table, and parameter 1 is the width of an entry.
Setup make_embedding(const Problem& problem, Random& random) {
  const int64_t entries = problem.parameters[0], width = problem.parameters[1];
  std::vector<int64_t> shape = problem.shape.list();
  Setup setup;
  setup.call.op = problem.op;
  oracle::Tensor table = make_tensor(problem.dtype, {entries, width});
  for (int64_t i = 0; i < table.count(); ++i) oracle::store(table, i, any_bits(problem.dtype, random));
  oracle::Tensor index = make_tensor(BP_I32, shape);
  for (int64_t i = 0; i < index.count(); ++i) {
    const auto inside = static_cast<int64_t>(random() % static_cast<uint64_t>(entries));
    const int64_t outside[] = {-1, entries, INT32_MAX, INT32_MIN};
    oracle::store(index, i, oracle::encode_integer(BP_I32, i % 5 == 3 ? outside[random() % 4] : inside));
  }
  setup.call.inputs = {table, index};
  shape.push_back(width);
  setup.call.outputs = {output(problem.dtype, shape)};
  return setup;
}

}  // namespace

void add_embedding(Catalogue& catalogue, uint32_t dtype) {
  auto* adding = add_plain;
  const auto put = [&](const Shape& shape, int32_t entries, int32_t width, Layout layout = Layout::dense) {
    Problem problem{.op = BP_OP_EMBEDDING,
                    .dtype = dtype,
                    .shape = shape,
                    .layout = layout,
                    .pattern = DataPattern::bits,
                    .make = make_embedding};
    problem.parameters = {entries, width};
    adding(catalogue, problem, std::to_string(entries) + "x" + std::to_string(width));
  };
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{33}, Shape{3, 5}, Shape{0, 4}, Shape{2, 3, 4}}) {
    put(shape, 1, 1);
    put(shape, 17, 8);
    put(shape, 1000, 65);
  }
  for (const Layout layout : kCommonLayouts) put({3, 5}, 17, 9, layout);
  adding = add_mixed;
  put({33}, 17, 8);
  put({3, 5}, 17, 9, Layout::padded);
}

}  // namespace backplane::conformance::numeric
