// SPDX-License-Identifier: Apache-2.0
// Test cases for the operators uniform, normal and dropout.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/composite.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

struct Stream {
  std::string_view name;
  uint64_t key, low, high;
};
constexpr Stream kStreams[] = {
    {"zero", 0, 0, 0},
    {"low", 0x0123456789abcdef, 0xfffffffe, 5},
    {"carry", 0x8000000000000007, ~uint64_t{0} - 2, (uint64_t{1} << 32) - 1},
};
constexpr float kProbabilities[] = {0, 0.1f, 0.5f, 1};
constexpr std::string_view kProbabilityNames[] = {"", ".p_0", ".p_tenth", ".p_half", ".p_1"};

// Parameter 0 is the index into kStreams. For dropout, parameter 1 is 1 + the index into kProbabilities, and parameter
// 2 is the number of outputs.
Setup make_numbers(const Problem& problem, Random& random) {
  const Stream& stream = kStreams[problem.parameters[0]];
  const std::vector<int64_t> shape = problem.shape.list();
  Setup setup;
  setup.call.op = problem.op;
  setup.call.outputs = {output(problem.dtype, shape)};
  setup.call.scalars = {stream.key, stream.low, stream.high};
  if (problem.op != BP_OP_DROPOUT) return setup;
  set_attributes(setup.call, bp_dropout_attributes{0, kProbabilities[problem.parameters[1] - 1]});
  setup.call.inputs = {scaled(problem.dtype, shape, 3, 0, random)};
  // A NaN and an infinity become 0 if their elements are dropped.
  if (setup.call.inputs[0].count() > 16) {
    oracle::store(setup.call.inputs[0], 3, oracle::quiet_nan_bits(problem.dtype));
    oracle::store(setup.call.inputs[0], 8, oracle::infinity_bits(problem.dtype, true));
  }
  if (problem.parameters[2] > 1) setup.call.outputs.push_back(output(BP_BOOL, shape));
  return setup;
}

}  // namespace

void add_random_numbers(Catalogue& catalogue, uint32_t dtype) {
  const auto put = [&](uint32_t op, const Shape& shape, int32_t stream, int32_t probability = 0, int32_t outputs = 1,
                       Layout layout = Layout::dense, Mode mode = Mode::once) {
    Problem problem{.op = op,
                    .dtype = dtype,
                    .shape = shape,
                    .layout = layout,
                    .pattern = DataPattern::family,
                    .mode = mode,
                    .make = make_numbers};
    problem.parameters = {stream, probability, outputs};
    std::string more(kStreams[stream].name);
    more.append(kProbabilityNames[probability]).append(outputs > 1 ? ".kept" : "");
    add_plain(catalogue, problem, more);
  };
  for (const uint32_t op : {BP_OP_UNIFORM, BP_OP_NORMAL, BP_OP_DROPOUT}) {
    const int32_t probability = op == BP_OP_DROPOUT ? 2 : 0;
    for (int32_t stream = 0; stream < static_cast<int32_t>(std::size(kStreams)); ++stream) {
      for (const Shape& shape : {Shape{1}, Shape{33}, Shape{1026}, Shape{3, 5, 7}}) put(op, shape, stream, probability);
    }
    put(op, {}, 1, probability);
    put(op, {0, 3}, 1, probability);
    put(op, {65537}, 2, probability);
    for (const Layout layout : kCommonLayouts) put(op, {6, 5, 4}, 1, probability, 1, layout);
    for (const Mode mode : {Mode::twice, Mode::resized, Mode::device_scalars})
      put(op, {9, 13}, 1, probability, 1, Layout::dense, mode);
  }
  for (const int32_t probability : {1, 2, 3, 4}) put(BP_OP_DROPOUT, {17, 33}, 1, probability, 2);
  put(BP_OP_DROPOUT, {5, 6, 7}, 2, 3, 2, Layout::padded);
}

}  // namespace backplane::conformance::numeric
