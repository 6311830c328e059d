// SPDX-License-Identifier: Apache-2.0
// Test cases for the linear operator.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/composite.hpp"
#include "cases/numeric/mixed.hpp"
#include "cases/numeric/narrow.hpp"
#include "cases/numeric/permissions.hpp"

namespace backplane::conformance::numeric {

namespace {

enum MatmulLinearParameter {
  matmul_linear_depth_parameter,
  matmul_linear_data_parameter,
  matmul_linear_variant_parameter,
  matmul_linear_narrow_parameter
};

Setup make_narrow_linear(const Problem& problem, Random&) {
  const int64_t depth = problem.parameters[matmul_linear_depth_parameter];
  std::vector<int64_t> shape = problem.shape.list();
  const int64_t cols = shape.back();
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call, bp_linear_attributes{0, BP_ACTIVATION_NONE, BP_PRECISION_FULL, 0});
  setup.call.outputs = {output(problem.dtype, shape)};
  shape.back() = depth;
  setup.call.inputs = {
      narrow_rows(problem.dtype, shape, static_cast<Narrow>(problem.parameters[matmul_linear_narrow_parameter])),
      narrow_weights(problem.dtype, {cols, depth})};
  return setup;
}

void add_narrow(Catalogue& catalogue, uint32_t dtype) {
  for (const Narrow kind : {Narrow::range, Narrow::digits}) {
    const auto put = [&](const Shape& shape, int32_t depth) {
      Problem problem{.op = BP_OP_LINEAR,
                      .dtype = dtype,
                      .shape = shape,
                      .pattern = DataPattern::family,
                      .make = make_narrow_linear};
      problem.parameters[matmul_linear_depth_parameter] = depth;
      problem.parameters[matmul_linear_narrow_parameter] = static_cast<int32_t>(kind);
      std::string more("k");
      more.append(std::to_string(depth)).append(".").append(kNarrowNames[static_cast<size_t>(kind)]);
      add_composite(catalogue, problem, more, {kNarrowRequirement});
    };
    for (const int32_t depth : {64, 256}) put({17, 9}, depth), put({40}, depth);
  }
}

// Problem::shape is [..,N], the shape of the output y.
Setup make_linear(const Problem& problem, Random& random) {
  const int64_t depth = problem.parameters[matmul_linear_depth_parameter];
  const auto data = static_cast<DataPattern>(problem.parameters[matmul_linear_data_parameter]);
  const int32_t variant = problem.parameters[matmul_linear_variant_parameter];
  std::vector<int64_t> shape = problem.shape.list();
  const int64_t cols = shape.back();
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call,
                 bp_linear_attributes{0, static_cast<uint32_t>(variant % kWithoutBias), problem.precision, 0});
  setup.call.outputs = {output(problem.dtype, shape)};
  shape.back() = depth;
  const bool integers = data == DataPattern::integers;
  const DataPattern other = integers ? DataPattern::few : data == DataPattern::tenth ? data : DataPattern::zero_mean;
  setup.call.inputs = {filled(problem.dtype, shape, data, depth * 4, random),
                       filled(problem.dtype, {cols, depth}, other, depth, random)};
  if (variant < kWithoutBias) setup.call.inputs.push_back(filled(problem.dtype, {cols}, other, depth, random));
  return setup;
}

void add_plain_and_mixed(Catalogue& catalogue, uint32_t dtype) {
  auto* adding = add_plain;
  const auto put = [&](const Shape& shape, int32_t depth, DataPattern data, int32_t variant,
                       Layout layout = Layout::dense, Mode mode = Mode::once, uint32_t precision = 0) {
    Problem problem{.op = BP_OP_LINEAR,
                    .dtype = dtype,
                    .shape = shape,
                    .layout = layout,
                    .pattern = DataPattern::family,
                    .mode = mode,
                    .make = make_linear};
    problem.parameters = {depth, number_of(data), variant};
    problem.precision = precision;
    std::string more("k");
    more.append(std::to_string(depth)).append(".").append(name_of(data)).append(".").append(variant_name(variant));
    adding(catalogue, problem, more.append(suffix_of(precision)));
  };
  for (const int32_t depth : {0, 1, 7, 33, 129}) {
    for (const int32_t variant : {0, 1, kWithoutBias}) put({5, 9}, depth, DataPattern::integers, variant);
    put({2, 3, 17}, depth, DataPattern::integers, kWithoutBias);
    put({33}, depth, DataPattern::integers, 0);
  }
  for (int32_t activation = 0; activation < kActivationCount; ++activation) {
    for (const DataPattern data :
         {DataPattern::zero_mean, DataPattern::spikes, DataPattern::tenth, DataPattern::one_nan, DataPattern::one_inf})
      put({9, 17}, 64, data, activation);
  }
  for (const Layout layout : kCommonLayouts) put({3, 5, 8}, 13, DataPattern::integers, 0, layout);
  for (const Mode mode : {Mode::twice, Mode::resized}) put({6, 8}, 13, DataPattern::integers, 0, Layout::dense, mode);
  for (const Permission& permission : kPermissions) {
    for (const int32_t depth : {7, 129}) {
      put({9, 17}, depth, DataPattern::zero_mean, 0, Layout::dense, Mode::once, permission.mask);
      put({9, 17}, depth, DataPattern::tenth, BP_ACTIVATION_GELU_ERF, Layout::dense, Mode::once, permission.mask);
    }
  }
  adding = add_mixed;
  for (const int32_t variant : {0, 1}) put({9, 17}, 64, DataPattern::zero_mean, variant);
  if (dtype == BP_F32) put({9, 17}, 64, DataPattern::zero_mean, kWithoutBias);
  put({2, 3, 17}, 33, DataPattern::zero_mean, 0);
  put({3, 5, 8}, 13, DataPattern::zero_mean, 0, Layout::padded);
}

}  // namespace

void add_linear(Catalogue& catalogue, uint32_t dtype) {
  add_plain_and_mixed(catalogue, dtype);
  add_narrow(catalogue, dtype);
}

}  // namespace backplane::conformance::numeric
