// SPDX-License-Identifier: Apache-2.0
// Test cases for the gemm operator.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/composite.hpp"
#include "cases/numeric/mixed.hpp"
#include "cases/numeric/permissions.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

struct Factors {
  std::string_view name;
  float alpha, beta;
};
constexpr Factors kFactors[] = {
    {"plain", 1, 1}, {"fractions", 0.3f, -1.7f}, {"without_product", 0, 1}, {"without_c", -2.5f, 0}};
constexpr int32_t kNoC = -1;

// The shape of `problem` is the shape of the output. The parameters are K, the data pattern, the
// index into kFactors, and kNoC if c is absent.
Setup make_gemm(const Problem& problem, Random& random) {
  const int64_t depth = problem.parameters[0];
  const auto data = static_cast<DataPattern>(problem.parameters[1]);
  const Factors& factors = kFactors[problem.parameters[2]];
  std::vector<int64_t> shape = problem.shape.list();
  const int64_t cols = shape.back();
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call, bp_matmul_attributes{0, problem.precision});
  setup.call.outputs = {output(problem.dtype, shape)};
  std::vector<int64_t> right = shape;
  shape.back() = depth;
  right[right.size() - 2] = depth;
  const DataPattern other = data == DataPattern::integers ? DataPattern::few : DataPattern::zero_mean;
  setup.call.inputs = {filled(problem.dtype, shape, data, depth * 4, random),
                       filled(problem.dtype, right, other, depth, random)};
  if (problem.parameters[3] != kNoC) {
    shape.back() = cols;
    oracle::Tensor c = filled(problem.dtype, shape, DataPattern::zero_mean, depth, random);
    // If beta is 0, not even a NaN of c may have an effect.
    for (int64_t i = 0; factors.beta == 0 && i < c.count(); i += 3) {
      oracle::store(c, i,
                    i % 2 == 0 ? oracle::quiet_nan_bits(problem.dtype) : oracle::infinity_bits(problem.dtype, false));
    }
    setup.call.inputs.push_back(std::move(c));
  }
  for (const float factor : {factors.alpha, factors.beta})
    setup.call.scalars.push_back(oracle::encode(BP_F32, static_cast<long double>(factor)));
  return setup;
}

}  // namespace

void add_gemm(Catalogue& catalogue, uint32_t dtype) {
  auto* adding = add_plain;
  const auto put = [&](const Shape& shape, int32_t depth, DataPattern data, int32_t factors, int32_t c = 0,
                       Layout layout = Layout::dense, Mode mode = Mode::once, uint32_t precision = 0) {
    Problem problem{.op = BP_OP_GEMM,
                    .dtype = dtype,
                    .shape = shape,
                    .layout = layout,
                    .pattern = DataPattern::family,
                    .mode = mode,
                    .make = make_gemm};
    problem.parameters = {depth, number_of(data), factors, c};
    problem.precision = precision;
    std::string more("k");
    more.append(std::to_string(depth)).append(".").append(name_of(data)).append(".").append(kFactors[factors].name);
    adding(catalogue, problem, more.append(c == kNoC ? ".no_c" : "").append(suffix_of(precision)));
  };
  for (int32_t factors = 0; factors < static_cast<int32_t>(std::size(kFactors)); ++factors) {
    for (const int32_t depth : {0, 1, 33}) put({5, 9}, depth, DataPattern::integers, factors);
    for (const DataPattern data : {DataPattern::zero_mean, DataPattern::tenth}) put({17, 33}, 129, data, factors);
    put({2, 3, 4, 5}, 7, DataPattern::integers, factors);
    put({2, 7, 5}, 13, DataPattern::zero_mean, factors, kNoC);
  }
  for (const DataPattern data : {DataPattern::one_nan, DataPattern::one_inf}) put({9, 17}, 16, data, 1);
  for (const Layout layout : kCommonLayouts) put({3, 5, 8}, 13, DataPattern::zero_mean, 1, 0, layout);
  // Tests each layout with two sizes of output. A plugin may use a kernel that computes the transposed product for
  // narrow outputs, and a library call for larger outputs.
  const auto put_layout = [&](Layout layout) {
    put({33, 5}, 64, DataPattern::zero_mean, 1, 0, layout);
    put({24, 40}, 33, DataPattern::zero_mean, 1, 0, layout);
  };
  for (const Layout layout : kCommonLayouts) put_layout(layout);
  for (const Layout layout : {Layout::outer_0, Layout::inner_0, Layout::all_0, Layout::immediate_last})
    put_layout(layout);
  for (const Mode mode : {Mode::twice, Mode::again, Mode::resized, Mode::device_scalars})
    put({6, 8}, 13, DataPattern::integers, 1, 0, Layout::dense, mode);
  for (const Permission& permission : kPermissions)
    put({9, 17}, 129, DataPattern::zero_mean, 1, 0, Layout::dense, Mode::once, permission.mask);
  adding = add_mixed;
  for (const int32_t c : {0, kNoC}) put({9, 17}, 64, DataPattern::zero_mean, 1, c);
  put({3, 5, 8}, 13, DataPattern::zero_mean, 1, 0, Layout::padded);
}

}  // namespace backplane::conformance::numeric
