// SPDX-License-Identifier: Apache-2.0
// Test cases for the cast operator.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/fill_data.hpp"
#include "cases/numeric/test_matrix.hpp"
#include "cases/numeric/values.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

namespace {

Setup make_cast(const Problem& problem, Random& random) {
  Setup setup;
  setup.call.op = problem.op;
  setup.call.inputs.push_back(make_tensor(problem.dtype, problem.shape.list()));
  fill_inputs(setup.call.inputs, problem, problem.second, random);
  setup.call.outputs.push_back({problem.second, problem.shape.list(), {}});
  return setup;
}

std::vector<DataPattern> cast_patterns(uint32_t from, uint32_t to) {
  if (from == BP_BOOL) return {DataPattern::tags, DataPattern::uniform};
  std::vector<DataPattern> patterns = {DataPattern::tags, DataPattern::bits, DataPattern::special, DataPattern::bounds};
  if (to != BP_BOOL) patterns.push_back(DataPattern::halfway);
  return patterns;
}

}  // namespace

void add_cast(Catalogue& catalogue) {
  const uint64_t set = oracle::operator_of(BP_OP_CAST)->dtypes;
  std::vector<Problem> apart;
  for_dtypes(set, [&](uint32_t from) {
    for_dtypes(set, [&](uint32_t to) {
      const bool core = oracle::format_of(from).core && oracle::format_of(to).core;
      const Problem base{.op = BP_OP_CAST, .dtype = from, .second = to, .make = make_cast};
      TestMatrix matrix(catalogue, base, {from}, cast_patterns(from, to));
      matrix.cover(core ? 2 : 4);
      matrix.cover_patterns();
      matrix.one({127}, Layout::dense, DataPattern::tags, Mode::resized);
      matrix.one({257}, Layout::dense, DataPattern::bits, Mode::twice);
      const uint32_t width = 8 * oracle::bytes_of(from);
      if (width <= 16) matrix.one({from == BP_BOOL ? 2 : 1 << width}, Layout::dense, DataPattern::exhaustive);
      if (from != BP_BOOL)
        matrix.one({4, static_cast<int32_t>(special_bits(from).size())}, Layout::sliced, DataPattern::special);
      if (width > 16 && to != BP_BOOL) matrix.one({8192}, Layout::dense, DataPattern::halfway);
      if (core) apart.push_back({.op = BP_OP_CAST, .dtype = from, .second = to, .shape = {9, 7}, .make = make_cast});
    });
  });
  add_apart(catalogue, apart, "apart");
}

}  // namespace backplane::conformance::numeric
