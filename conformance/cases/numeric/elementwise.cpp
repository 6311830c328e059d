// SPDX-License-Identifier: Apache-2.0
// Test cases for the elementwise operators: unary operators, binary operators, compare and select.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/fill_data.hpp"
#include "cases/numeric/test_matrix.hpp"
#include "cases/numeric/values.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

namespace {

constexpr std::string_view kPredicateNames[] = {"eq", "ne", "lt", "le", "gt", "ge"};

Setup make_elementwise(const Problem& problem, Random& random) {
  const std::vector<int64_t> shape = problem.shape.list();
  Setup setup;
  setup.call.op = problem.op;
  for (uint32_t i = 0; i < oracle::operator_of(problem.op)->inputs_max; ++i) {
    setup.call.inputs.push_back(make_tensor(problem.dtype, shape));
  }
  fill_inputs(setup.call.inputs, problem, problem.dtype, random);
  setup.call.outputs.push_back({problem.dtype, shape, {}});
  return setup;
}

Setup make_compare(const Problem& problem, Random& random) {
  Setup setup = make_elementwise(problem, random);
  setup.call.outputs[0].dtype = BP_BOOL;
  set_attributes(setup.call, bp_compare_attributes{0, static_cast<uint32_t>(problem.parameters[0])});
  return setup;
}

// The condition also contains bytes other than 0 and 1, because any nonzero byte is true.
Setup make_select(const Problem& problem, Random& random) {
  const std::vector<int64_t> shape = problem.shape.list();
  Setup setup;
  setup.call.op = problem.op;
  setup.call.inputs = {make_tensor(problem.dtype, shape), make_tensor(problem.dtype, shape)};
  fill_inputs(setup.call.inputs, problem, problem.dtype, random);
  oracle::Tensor condition = make_tensor(BP_BOOL, shape);
  for (unsigned char& byte : condition.bytes)
    byte = static_cast<unsigned char>(random() % 2 == 0 ? 0 : random() % 255 + 1);
  setup.call.inputs.insert(setup.call.inputs.begin(), std::move(condition));
  setup.call.outputs.push_back({problem.dtype, shape, {}});
  return setup;
}

std::string vary_predicate(Problem& problem, uint64_t case_number) {
  problem.parameters[0] = static_cast<int32_t>(case_number % std::size(kPredicateNames));
  return std::string(kPredicateNames[case_number % std::size(kPredicateNames)]);
}

std::vector<DataPattern> patterns_of(const oracle::Operator& row, uint32_t dtype) {
  if (dtype == BP_BOOL) return {DataPattern::tags, DataPattern::uniform};
  const bool several = row.inputs_max > 1;
  std::vector<DataPattern> patterns = {DataPattern::tags, DataPattern::uniform, DataPattern::special,
                                       DataPattern::bounds, DataPattern::zeros};
  if (oracle::is_float(dtype)) patterns.push_back(DataPattern::bits);
  if (several) patterns.push_back(DataPattern::cancel_pairs);
  return patterns;
}

// Adds cases with special values. If the dtype is narrow enough, also adds cases with all possible inputs. For wider
// floats, also adds cases with random bits, and with many inputs near thresholds or near cancellation.
void cover_exhaustively(TestMatrix& matrix, const oracle::Operator& row, uint32_t dtype) {
  const uint32_t width = 8 * oracle::bytes_of(dtype);
  const auto specials = static_cast<int32_t>(special_bits(dtype).size());
  if (row.inputs_max == 1) {
    if (width <= 16) {
      const auto patterns = static_cast<int32_t>(dtype == BP_BOOL ? 2 : 1u << width);
      matrix.one({patterns}, Layout::dense, DataPattern::exhaustive);
      matrix.one({patterns}, Layout::sliced, DataPattern::exhaustive);
    } else if (oracle::is_float(dtype)) {
      const int32_t count = dtype == BP_F32 ? 65536 : 16384;
      matrix.one({count}, Layout::dense, DataPattern::bits);
      if (row.accuracy.letter == 'U') matrix.one({count}, Layout::dense, DataPattern::windows);
    }
    matrix.one({4, specials}, Layout::sliced, DataPattern::special);
    return;
  }
  if (width == 8) {
    const int32_t patterns = dtype == BP_BOOL ? 2 : 256;
    matrix.one({patterns, patterns}, Layout::dense, DataPattern::exhaustive);
  } else if (oracle::is_float(dtype)) {
    matrix.one({16384}, Layout::dense, DataPattern::bits);
    matrix.one({16384}, Layout::dense, DataPattern::cancel_pairs);
  }
  matrix.one({specials, specials}, Layout::dense, DataPattern::special);
  matrix.one({specials, specials}, Layout::mixed, DataPattern::special);
}

void add_operator(Catalogue& catalogue, const oracle::Operator& row) {
  const bool compares = row.id == BP_OP_COMPARE, selects = row.id == BP_OP_SELECT;
  const auto maker = compares ? make_compare : selects ? make_select : make_elementwise;
  std::vector<Problem> apart;
  for_dtypes(row.dtypes, [&](uint32_t dtype) {
    std::vector<uint32_t> inputs(row.inputs_max, dtype);
    if (selects) inputs.front() = BP_BOOL;
    TestMatrix matrix(catalogue, {.op = row.id, .dtype = dtype, .make = maker}, inputs, patterns_of(row, dtype));
    if (compares) matrix.vary(vary_predicate);
    matrix.cover(oracle::format_of(dtype).core ? 1 : 2);
    matrix.cover_patterns();
    matrix.cover_modes();
    // The compare operator repeats these cases for each predicate.
    for (size_t i = 0; i < (compares ? std::size(kPredicateNames) : 1); ++i) cover_exhaustively(matrix, row, dtype);
    if (!oracle::format_of(dtype).core) return;
    for (const Layout layout : {Layout::dense, Layout::transposed, Layout::flipped, Layout::outer_0}) {
      apart.push_back({.op = row.id, .dtype = dtype, .shape = {9, 7}, .layout = layout, .make = maker});
      apart.back().parameters[0] = static_cast<int32_t>(apart.size() * 5 % std::size(kPredicateNames));
    }
  });
  add_apart(catalogue, apart, "apart");
}

}  // namespace

void add_elementwise(Catalogue& catalogue) {
  for (const oracle::Operator& row : oracle::kOperators) {
    const bool others = row.id == BP_OP_COPY || row.id == BP_OP_CAST || row.id == BP_OP_CUMSUM;
    if (row.kind == BP_KIND_PRIMITIVE && row.shape_rule == BP_SHAPE_ELEMENTWISE && !others)
      add_operator(catalogue, row);
  }
}

}  // namespace backplane::conformance::numeric
