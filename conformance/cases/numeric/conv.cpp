// SPDX-License-Identifier: Apache-2.0
// Test cases for the operators conv, conv_transpose, conv_bwd_input and conv_bwd_weight.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/mixed.hpp"
#include "cases/numeric/narrow.hpp"
#include "cases/numeric/permissions.hpp"
#include "cases/numeric/window_problems.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

enum ConvParameter { conv_problem_parameter, conv_data_parameter, conv_variant_parameter, conv_narrow_parameter };

// Returns an image whose channels contain scaled results of narrow_term(). With equal weights, the
// convolution's sums detect a narrow accumulator in any order of summation.
oracle::Tensor narrow_image(uint32_t dtype, const std::vector<int64_t>& shape, Narrow kind) {
  oracle::Tensor x = make_tensor(dtype, shape);
  int64_t plane = 1;
  for (size_t d = 2; d < shape.size(); ++d) plane *= shape[d];
  for (int64_t i = 0; i < x.count(); ++i) {
    const int64_t channel = i / plane % shape[1];
    oracle::store(x, i,
                  oracle::encode(dtype, narrow_term(kind, channel, shape[1], i / plane / shape[1]) / kNarrowRight));
  }
  return x;
}

Setup make_narrow_conv(const Problem& problem, Random&) {
  const auto kind = static_cast<Narrow>(problem.parameters[conv_narrow_parameter]);
  const int64_t channels = 64, results = 3, side = 5, kernel = problem.parameters[conv_problem_parameter];
  const std::vector<int64_t> image = {1, channels, side, side};
  Setup setup;
  setup.call.op = problem.op;
  bp_conv_attributes attributes = {};
  attributes.spatial_rank = 2;
  attributes.groups = 1;
  for (int d = 0; d < 2; ++d) attributes.stride[d] = attributes.dilation[d] = 1;
  set_attributes(setup.call, attributes);
  setup.call.inputs = {narrow_image(problem.dtype, image, kind),
                       narrow_weights(problem.dtype, {results, channels, kernel, kernel})};
  setup.call.outputs = {output(problem.dtype, problem.shape.list())};
  return setup;
}

void add_narrow(Catalogue& catalogue, uint32_t dtype) {
  for (const Narrow kind : {Narrow::range, Narrow::digits}) {
    for (const int32_t kernel : {1, 3}) {
      Problem problem{.op = BP_OP_CONV,
                      .dtype = dtype,
                      .shape = {1, 3, 6 - kernel, 6 - kernel},
                      .pattern = DataPattern::family,
                      .make = make_narrow_conv};
      problem.parameters[conv_problem_parameter] = kernel;
      problem.parameters[conv_narrow_parameter] = static_cast<int32_t>(kind);
      std::string more("kernel_");
      more.append(std::to_string(kernel)).append(".").append(kNarrowNames[static_cast<size_t>(kind)]);
      add_composite(catalogue, problem, more, {kNarrowRequirement});
    }
  }
}

Setup make_conv(const Problem& problem, Random& random) {
  const WindowProblem& s = kWindowProblems[problem.parameters[conv_problem_parameter]];
  const auto data = static_cast<DataPattern>(problem.parameters[conv_data_parameter]);
  const int32_t variant = problem.parameters[conv_variant_parameter];
  Setup setup;
  setup.call.op = problem.op;
  bp_conv_attributes attributes = {};
  set_window(s, attributes);
  attributes.groups = s.groups;
  attributes.activation = static_cast<uint32_t>(variant % kWithoutBias);
  attributes.precision = problem.precision;
  set_attributes(setup.call, attributes);
  int64_t taps = 1;
  for (uint32_t d = 0; d < s.rank; ++d) taps *= s.kernel[d];
  const int64_t terms = std::max(s.in_channels, s.out_channels) / s.groups * taps;
  const bool transposed = problem.op == BP_OP_CONV_TRANSPOSE || problem.op == BP_OP_CONV_BWD_INPUT;
  std::vector<int64_t> weight = {s.out_channels, s.in_channels / s.groups};
  for (uint32_t d = 0; d < s.rank; ++d) weight.push_back(s.kernel[d]);
  const auto draw = [&](const std::vector<int64_t>& shape, DataPattern kind, int64_t sum) {
    // DataPattern::integers draws numbers from 0 to 3 here, so that sums of their products are
    // exact.
    return kind == DataPattern::integers ? filled(problem.dtype, shape, DataPattern::few, sum, random)
                                         : filled(problem.dtype, shape, kind, sum, random);
  };
  const DataPattern other = data == DataPattern::integers || data == DataPattern::tenth ? data : DataPattern::zero_mean;
  const auto signs = [&](oracle::Tensor tensor) {
    for (int64_t i = 0; i < tensor.count() && data == DataPattern::integers; ++i) {
      if (random() % 2 == 0) oracle::store(tensor, i, oracle::load(tensor, i) ^ oracle::sign_bit(problem.dtype));
    }
    return tensor;
  };
  if (problem.op == BP_OP_CONV_BWD_WEIGHT) {
    setup.call.inputs = {draw(image_shape(s, s.in_channels), data, terms),
                         signs(draw(result_shape(s, s.out_channels), other, terms))};
    setup.call.outputs = {output(problem.dtype, weight)};
    return setup;
  }
  setup.call.inputs = {draw(transposed ? result_shape(s, s.out_channels) : image_shape(s, s.in_channels), data, terms),
                       signs(draw(weight, other, terms))};
  const int64_t channels = transposed ? s.in_channels : s.out_channels;
  if (variant < kWithoutBias && problem.op != BP_OP_CONV_BWD_INPUT)
    setup.call.inputs.push_back(draw({channels}, other, terms));
  setup.call.outputs = {output(problem.dtype, transposed ? image_shape(s, channels) : result_shape(s, channels))};
  return setup;
}

void add_conv_of(Catalogue& catalogue, uint32_t op, uint32_t dtype) {
  auto* adding = add_plain;
  const auto put = [&](size_t which, DataPattern data, int32_t variant, Layout layout = Layout::dense,
                       Mode mode = Mode::once, uint32_t precision = 0) {
    const WindowProblem& s = kWindowProblems[which];
    Problem problem{.op = op,
                    .dtype = dtype,
                    .shape = shape_of(result_shape(s, s.out_channels)),
                    .layout = layout,
                    .pattern = DataPattern::family,
                    .mode = mode,
                    .make = make_conv};
    problem.parameters = {static_cast<int32_t>(which), number_of(data), variant};
    problem.precision = precision;
    std::string more(s.name);
    more.append(".").append(name_of(data)).append(".").append(variant_name(variant));
    adding(catalogue, problem, more.append(suffix_of(precision)));
  };
  // The backward operators have neither bias nor activation.
  const bool plain = op == BP_OP_CONV_BWD_INPUT || op == BP_OP_CONV_BWD_WEIGHT;
  for (size_t which = 0; which < kWindowProblems.size(); ++which) {
    for (const DataPattern data :
         {DataPattern::integers, DataPattern::zero_mean, DataPattern::spikes, DataPattern::tenth}) {
      if (data == DataPattern::integers || !is_empty(kWindowProblems[which])) put(which, data, kWithoutBias);
    }
    if (plain) continue;
    put(which, DataPattern::integers, BP_ACTIVATION_NONE);
    put(which, DataPattern::integers, BP_ACTIVATION_RELU);
  }
  for (const Layout layout : kCommonLayouts) put(8, DataPattern::integers, kWithoutBias, layout);
  for (size_t which = 0; which < kWindowProblems.size(); ++which) {
    if (is_empty(kWindowProblems[which])) continue;
    put(which, DataPattern::integers, plain ? kWithoutBias : BP_ACTIVATION_RELU, Layout::channels_last);
    put(which, DataPattern::integers, kWithoutBias, Layout::channels_last_in);
  }
  put(8, DataPattern::zero_mean, kWithoutBias, Layout::dense, Mode::twice);
  put(0, DataPattern::one_nan, kWithoutBias);
  put(0, DataPattern::one_inf, kWithoutBias);
  for (const Permission& permission : kPermissions) {
    put(5, DataPattern::zero_mean, kWithoutBias, Layout::dense, Mode::once, permission.mask);
    put(13, DataPattern::spikes, kWithoutBias, Layout::dense, Mode::once, permission.mask);
    if (!plain) put(1, DataPattern::zero_mean, BP_ACTIVATION_RELU, Layout::dense, Mode::once, permission.mask);
  }
  for (int32_t activation = 2; activation < kActivationCount && !plain; ++activation) {
    put(1, DataPattern::zero_mean, activation);
    put(5, DataPattern::spikes, activation);
  }
  if (plain) return;
  adding = add_mixed;
  for (const size_t which : {size_t{0}, size_t{8}, size_t{9}}) put(which, DataPattern::zero_mean, BP_ACTIVATION_NONE);
  put(5, DataPattern::zero_mean, BP_ACTIVATION_RELU, Layout::padded);
}

}  // namespace

void add_conv(Catalogue& catalogue, uint32_t dtype) {
  add_narrow(catalogue, dtype);
  for (const uint32_t op : {BP_OP_CONV, BP_OP_CONV_TRANSPOSE, BP_OP_CONV_BWD_INPUT, BP_OP_CONV_BWD_WEIGHT}) {
    add_conv_of(catalogue, op, dtype);
  }
}

}  // namespace backplane::conformance::numeric
