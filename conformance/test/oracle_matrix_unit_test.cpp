// SPDX-License-Identifier: Apache-2.0
// Runs the suite's cases and checks on simulated matrix units. Precise units must pass every case,
// and each less precise unit must fail at least one case. The output shows the maximum of error /
// bound, and the maximum root mean square of error / deviation. The limit for each maximum is 1.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <functional>

#include "cases/catalogue.hpp"
#include "cases/numeric/deviations.hpp"
#include "matrix_units.hpp"
#include "oracle/comparison.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::test {
namespace {

using units::Adding;
using units::Operand;
using units::Unit;

// The results of one simulated matrix unit in many cases.
struct Survey {
  int judged = 0, refused = 0;
  // Maximum of error / bound, and maximum root mean square of error / deviation. The limit for each
  // is 1.
  double worst_ratio = 0, worst_root_mean_square = 0;
  std::string refusals{};  // text of the first three failures
  bool refused_each = true;
  std::string text() const {
    return fmt::format("{} of {} cases refuse it; hard bound {:.3g}, root mean square {:.3g}{}", refused, judged,
                       worst_ratio, worst_root_mean_square, refusals);
  }
};

// Checks the results in `got` with the checks of the case, and adds the outcome to `survey`.
void judge(const Case& which, const numeric::Setup& setup, const std::vector<oracle::Expected>& expected,
           const oracle::Tensor& got, Survey& survey) {
  const oracle::Comparison found = oracle::compare(expected[0], got, false);
  std::string fault;
  if (found.bad > 0)
    fault = fmt::format("{} elements, {}", found.bad, oracle::difference_text(expected[0], got, found.first));
  if (fault.empty() && setup.check_whole) fault = setup.check_whole(setup, expected, {got});
  const numeric::Deviations deviations = numeric::deviations_of(expected[0], got);
  ++survey.judged;
  survey.worst_ratio = std::max(survey.worst_ratio, found.worst_ratio);
  if (deviations.count >= 1000)
    survey.worst_root_mean_square = std::max(survey.worst_root_mean_square, deviations.root_mean_square);
  if (fault.empty()) {
    survey.refused_each = false;
    return;
  }
  if (++survey.refused <= 3) survey.refusals += fmt::format("\n  {}: {}", which.id, fault);
}

using Filter = std::function<bool(const numeric::Problem&, const Case&)>;

// Runs every unit on every case that `wanted` selects. The layout does not affect a unit's
// arithmetic, so only dense layouts run.
std::vector<Survey> judge_units(const std::vector<Unit>& list, uint32_t op, const Filter& wanted) {
  static const Catalogue catalogue = enumerate();
  std::vector<Survey> surveys(list.size());
  for (const Case& which : catalogue) {
    const numeric::Problem* const problem = which.op == op ? numeric::problem_of(which) : nullptr;
    const bool usual = problem != nullptr && problem->layout == numeric::Layout::dense &&
                       problem->mode == numeric::Mode::once && problem->precision == BP_PRECISION_FULL;
    if (!usual || which.id.ends_with(".decomposed") || problem->shape.count() == 0 || !wanted(*problem, which))
      continue;
    numeric::Random random(7919 + static_cast<uint64_t>(surveys[0].judged));
    numeric::Setup setup = problem->make(*problem, random);
    setup.call.outputs.resize(1);
    const std::vector<oracle::Expected> expected = oracle::evaluate(setup.call);
    for (size_t i = 0; i < list.size(); ++i)
      judge(which, setup, expected, units::compute(list[i], setup.call), surveys[i]);
  }
  return surveys;
}

// Units in `passing` must pass every case. Units in `failing` must fail at least one case or, if
// `each` is true, every case.
void expect(const std::vector<Unit>& passing, const std::vector<Unit>& failing, uint32_t op, const Filter& wanted,
            bool each = false) {
  std::vector<Unit> list = passing;
  list.insert(list.end(), failing.begin(), failing.end());
  const std::vector<Survey> surveys = judge_units(list, op, wanted);
  for (size_t i = 0; i < list.size(); ++i) {
    const Survey& survey = surveys[i];
    EXPECT_GT(survey.judged, 0) << list[i].name;
    if (i < passing.size()) {
      EXPECT_EQ(survey.refused, 0) << list[i].name << ": " << survey.text();
    } else {
      EXPECT_GT(survey.refused, 0) << list[i].name << ": " << survey.text();
      EXPECT_TRUE(!each || survey.refused_each) << list[i].name << ": " << survey.text();
    }
    std::printf("%s: %s\n", std::string(list[i].name).c_str(), survey.text().c_str());
  }
}

const std::vector<Unit> kHonest = {
    {.name = "operands to nearest"},
    {.name = "operands truncated", .operand = Operand::truncated},
    {.name = "operands in f32", .operand = Operand::full},
    {.name = "weights divided first", .normalises_first = true},
    {.name = "keys in blocks under a running maximum", .key_block = 16},
    {.name = "sums toward zero", .adding = Adding::toward_zero},
    {.name = "split K", .splits = 4},
    {.name = "sums toward zero in parts, truncated",
     .adding = Adding::toward_zero,
     .splits = 3,
     .operand = Operand::truncated},
};
// Precise units for operators whose operands need no rounding.
const std::vector<Unit> kHonestSums = {
    {.name = "sums to nearest"},
    {.name = "sums toward zero", .adding = Adding::toward_zero},
    {.name = "split K", .splits = 4},
};
const std::vector<Unit> kHalfAccumulators = {
    {.name = "f16 sums", .half_block = -1},
    {.name = "f16 sums of 4", .half_block = 4},
    {.name = "f16 sums of 8", .half_block = 8},
    {.name = "f16 sums of 16", .half_block = 16},
};
const Unit kLostKey = {.name = "a lost key", .loses_key = true};
const Unit kLostProduct = {.name = "a lost product", .loses_key = true};
const Unit kNarrowOperands = {.name = "TF32", .tf32 = true};
const Unit kDownward = {.name = "two's-complement truncation", .adding = Adding::twos_complement};
const std::vector<Unit> kCareless = {kLostKey, {.name = "16-bit scores", .half_scores = true}};

// Cases with many keys are slow to simulate, so only one of their eight masks is selected.
Filter attention_of(uint32_t dtype) {
  return [dtype](const numeric::Problem& problem, const Case& which) {
    const bool many = which.id.find(".many_keys") != std::string::npos;
    return problem.dtype == dtype && (!many || which.id.find(".open.all") != std::string::npos);
  };
}
Filter named(uint32_t dtype, std::string_view word) {
  return [=](const numeric::Problem& problem, const Case& which) {
    return problem.dtype == dtype && which.id.find(word) != std::string::npos;
  };
}
// Selects GEMM cases that are fast to simulate.
Filter small(uint32_t dtype, uint32_t second) {
  return [=](const numeric::Problem& problem, const Case&) {
    return problem.dtype == dtype && problem.second == second &&
           problem.shape.count() * std::max(problem.parameters[0], 1) < 600000 && problem.shape.count() < 20000;
  };
}
// Selects cases of quantized_matmul with float activations.
Filter weights_only(uint32_t dtype) {
  return [=](const numeric::Problem& problem, const Case& which) {
    return problem.dtype == dtype && which.id.find("weights_") != std::string::npos;
  };
}

class MatrixUnit : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Halves, MatrixUnit, testing::Values(uint32_t{BP_F16}, uint32_t{BP_BF16}),
                         [](const auto& which) { return std::string(oracle::format_of(which.param).name); });

TEST_P(MatrixUnit, Attention) {
  expect(kHonest, kCareless, BP_OP_ATTENTION, attention_of(GetParam()));
  expect(kHonest, kHalfAccumulators, BP_OP_ATTENTION, named(GetParam(), ".range"), true);
  expect(kHonest, kHalfAccumulators, BP_OP_ATTENTION, named(GetParam(), ".digits"), true);
}
TEST_P(MatrixUnit, DequantisedProducts) {
  expect(kHonest, {kLostProduct}, BP_OP_QUANTIZED_MATMUL, weights_only(GetParam()));
}
TEST_P(MatrixUnit, Products) {
  expect(kHonestSums, kHalfAccumulators, BP_OP_MATMUL, small(GetParam(), 0));
  expect(kHonestSums, {kDownward, kLostProduct}, BP_OP_MATMUL, small(GetParam(), BP_F32));
}
TEST_P(MatrixUnit, SumsThatF16CannotHold) {
  for (const uint32_t op : {BP_OP_MATMUL, BP_OP_LINEAR, BP_OP_CONV, BP_OP_QUANTIZED_MATMUL}) {
    for (const std::string_view kind : {".range", ".digits"}) {
      SCOPED_TRACE(fmt::format("operator {} {}", op, kind));
      expect(kHonestSums, kHalfAccumulators, op, named(GetParam(), kind), true);
    }
  }
}

TEST(MatrixUnitOfF32, Products) {
  expect(kHonestSums, {kNarrowOperands, kDownward, kLostProduct}, BP_OP_MATMUL, small(BP_F32, 0));
}
TEST(MatrixUnitOfF32, Attention) {
  expect(kHonestSums, {kNarrowOperands, kLostKey}, BP_OP_ATTENTION, attention_of(BP_F32));
}

}  // namespace
}  // namespace backplane::conformance::test
