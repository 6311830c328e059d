// SPDX-License-Identifier: Apache-2.0
// Test cases for the operators layer_norm, rms_norm, group_norm, batch_norm and norm_bwd.
#include "oracle/norm.hpp"
#include "cases/numeric/cases.hpp"
#include "cases/numeric/composite.hpp"
#include "cases/numeric/mixed.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

enum class Spread : int32_t {
  usual,
  offset,    // data far from 0, so that the mean square minus the squared mean cancels
  small,     // variance below epsilon, so that epsilon at a wrong position changes the result
  constant,  // all elements are equal
  spikes,
  zeros,  // all elements are 0, so the variance is 0 even after rounding
  count,
};
constexpr std::string_view kSpreadNames[] = {"usual", "offset", "small", "constant", "spikes", "zeros"};
static_assert(std::size(kSpreadNames) == static_cast<size_t>(Spread::count));
constexpr auto kUsualSpreads = static_cast<int32_t>(Spread::zeros);

struct Epsilon {
  float value;
  std::string_view suffix;  // appended to the case id
};
constexpr Epsilon kEpsilons[] = {{1e-5f, ""}, {0, ".epsilon_0"}, {10, ".epsilon_10"}};

oracle::Tensor spread_of(uint32_t dtype, const std::vector<int64_t>& shape, Spread spread, Random& random) {
  switch (spread) {
    case Spread::offset:
      return scaled(dtype, shape, 1, 1000, random);
    case Spread::small:
      return scaled(dtype, shape, 1e-3L, 0, random);
    case Spread::constant:
      return scaled(dtype, shape, 0, 2.5L, random);
    case Spread::zeros:
      return scaled(dtype, shape, 0, 0, random);
    case Spread::spikes:
      return filled(dtype, shape, DataPattern::spikes, 1, random);
    default:
      return scaled(dtype, shape, 2, 0.5L, random);
  }
}

// The shape of `problem` is the shape of x. `norm_detail_parameter` is the mask of axes, the number of
// groups, or whether batch_norm trains. `norm_inputs_parameter` and `norm_outputs_parameter` are the numbers
// of optional operands. For batch_norm, `norm_inputs_parameter` is a mask of absent inputs.
enum NormParameter {
  norm_detail_parameter,
  norm_spread_parameter,
  norm_inputs_parameter,
  norm_outputs_parameter,
  norm_norm_parameter,
  norm_epsilon_parameter
};
float epsilon_of(const Problem& problem) { return kEpsilons[problem.parameters[norm_epsilon_parameter]].value; }
constexpr int32_t kNoGamma = 1, kNoBeta = 2, kNoRunning = 12, kNoneButX = 15;

std::vector<int64_t> dimensions_of(const std::vector<int64_t>& shape, uint32_t axes, bool reduced) {
  std::vector<int64_t> picked;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool inside = (axes >> d & 1) != 0;
    if (reduced) picked.push_back(inside ? 1 : shape[d]);
    if (!reduced && inside) picked.push_back(shape[d]);
  }
  return picked;
}

// `parameter` is the shape of gamma and beta. `statistic` is the shape of mean and rstd.
struct Shapes {
  std::vector<int64_t> parameter, statistic;
};
Shapes shapes_of(uint32_t norm, const std::vector<int64_t>& shape, int32_t detail) {
  switch (norm) {
    case BP_NORM_GROUP:
      return {{shape[1]}, {shape[0], detail}};
    case BP_NORM_BATCH:
      return {{shape[1]}, {shape[1]}};
    default:
      return {dimensions_of(shape, static_cast<uint32_t>(detail), false),
              dimensions_of(shape, static_cast<uint32_t>(detail), true)};
  }
}

uint32_t norm_of(uint32_t op) {
  switch (op) {
    case BP_OP_RMS_NORM:
      return BP_NORM_RMS;
    case BP_OP_GROUP_NORM:
      return BP_NORM_GROUP;
    case BP_OP_BATCH_NORM:
      return BP_NORM_BATCH;
    default:
      return BP_NORM_LAYER;
  }
}

Setup make_norm(const Problem& problem, Random& random) {
  const std::vector<int64_t> shape = problem.shape.list();
  const int32_t detail = problem.parameters[norm_detail_parameter];
  const Shapes shapes = shapes_of(norm_of(problem.op), shape, detail);
  Setup setup;
  setup.call.op = problem.op;
  setup.call.inputs = {
      spread_of(problem.dtype, shape, static_cast<Spread>(problem.parameters[norm_spread_parameter]), random)};
  setup.call.outputs = {output(problem.dtype, shape)};
  const auto parameter = [&](long double middle) { return scaled(problem.dtype, shapes.parameter, 1, middle, random); };
  const float epsilon = epsilon_of(problem);
  const int32_t absent = problem.op == BP_OP_BATCH_NORM ? problem.parameters[norm_inputs_parameter] : 0;
  if (problem.op == BP_OP_BATCH_NORM) {
    set_attributes(setup.call, bp_batch_norm_attributes{0, static_cast<uint32_t>(detail), epsilon, 0.125f,
                                                        problem.since != 0 ? 1u : 0u, 0});
    constexpr long double middles[] = {1, 0, 0, 2};  // centers of the ranges of gamma, beta, mean and variance
    for (int32_t i = 0; i < 4 && absent >> i != kNoneButX >> i; ++i)
      setup.call.inputs.push_back((absent >> i & 1) != 0 ? oracle::Tensor{} : parameter(middles[i]));
  } else {
    const auto number = static_cast<uint32_t>(detail);
    if (problem.op == BP_OP_GROUP_NORM) {
      set_attributes(setup.call, bp_group_norm_attributes{0, number, epsilon, 0});
    } else {
      set_attributes(setup.call, bp_norm_attributes{0, number, epsilon, 0});
    }
    for (int32_t i = 0; i < problem.parameters[norm_inputs_parameter]; ++i)
      setup.call.inputs.push_back(parameter(i == 0 ? 1 : 0));
  }
  for (int32_t i = 0; i < problem.parameters[norm_outputs_parameter]; ++i) {
    // batch_norm writes new running statistics only if the old running statistics are inputs.
    const bool running = problem.op == BP_OP_BATCH_NORM && i < 2;
    setup.call.outputs.push_back(running && (absent & kNoRunning) != 0 ? oracle::Tensor{}
                                                                       : output(problem.dtype, shapes.statistic));
  }
  return setup;
}

Setup make_backward(const Problem& problem, Random& random) {
  const std::vector<int64_t> shape = problem.shape.list();
  const auto norm = static_cast<uint32_t>(problem.parameters[norm_norm_parameter]);
  const int32_t detail = problem.parameters[norm_detail_parameter], inputs = problem.parameters[norm_inputs_parameter];
  const bool by_axes = norm == BP_NORM_LAYER || norm == BP_NORM_RMS;
  const Shapes shapes = shapes_of(norm, shape, detail);
  const float epsilon = epsilon_of(problem);
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call,
                 bp_norm_bwd_attributes{0, norm, by_axes ? static_cast<uint32_t>(detail) : 0,
                                        norm == BP_NORM_GROUP ? static_cast<uint32_t>(detail) : 0, epsilon, 0});
  setup.call.inputs = {
      scaled(problem.dtype, shape, 1, 0, random),
      spread_of(problem.dtype, shape, static_cast<Spread>(problem.parameters[norm_spread_parameter]), random)};
  if (inputs > 0) setup.call.inputs.push_back(scaled(problem.dtype, shapes.parameter, 1, 1, random));
  if (inputs > 1) {  // the mean and rstd of the forward operator
    const oracle::Grouping grouping = norm == BP_NORM_GROUP ? oracle::group_channels(shape, detail)
                                      : norm == BP_NORM_BATCH
                                          ? oracle::group_batch(shape)
                                          : oracle::group_axes(shape, static_cast<uint32_t>(detail));
    oracle::Tensor mean = make_tensor(problem.dtype, shapes.statistic), rstd = mean;
    for (size_t g = 0; g < grouping.members.size(); ++g) {
      const oracle::Moments moments = oracle::moments_of(setup.call.inputs[1], grouping.members[g]);
      const long double square = moments.variance + (norm == BP_NORM_RMS ? moments.mean * moments.mean : 0);
      oracle::store(mean, static_cast<int64_t>(g), oracle::encode(problem.dtype, moments.mean));
      oracle::store(rstd, static_cast<int64_t>(g),
                    oracle::encode(problem.dtype, 1 / std::sqrt(square + static_cast<long double>(epsilon))));
    }
    setup.call.inputs.push_back(norm == BP_NORM_RMS ? oracle::Tensor{} : mean);  // rms_norm has no mean
    setup.call.inputs.push_back(rstd);
  }
  setup.call.outputs = {output(problem.dtype, shape)};
  for (int32_t i = 0; i < problem.parameters[norm_outputs_parameter]; ++i)
    setup.call.outputs.push_back(output(problem.dtype, shapes.parameter));
  return setup;
}

class NormAdder {
 public:
  NormAdder(Catalogue& catalogue, uint32_t op, uint32_t dtype) : catalogue_(catalogue), op_(op), dtype_(dtype) {}

  void operator()(const Shape& shape, int32_t detail, Spread spread, int32_t inputs, int32_t outputs,
                  Layout layout = Layout::dense, Mode mode = Mode::once, uint32_t norm = 0, int32_t epsilon = 0) {
    constexpr std::string_view norms[] = {"layer.", "rms.", "group.", "batch."};
    const bool backward = op_ == BP_OP_NORM_BWD;
    Problem problem{.op = op_,
                    .dtype = dtype_,
                    .shape = shape,
                    .layout = layout,
                    .pattern = DataPattern::family,
                    .mode = mode,
                    .make = backward ? make_backward : make_norm};
    problem.parameters = {detail, static_cast<int32_t>(spread), inputs, outputs, static_cast<int32_t>(norm), epsilon};
    problem.since = unbiased ? uint32_t{BP_SINCE_0_3} : 0;
    std::string more(unbiased ? "unbiased." : backward ? norms[norm] : std::string_view());
    more.append(std::to_string(detail)).append(".").append(kSpreadNames[static_cast<size_t>(spread)]);
    more.append(".in_").append(std::to_string(inputs)).append("_out_").append(std::to_string(outputs));
    add(catalogue_, problem, more.append(kEpsilons[epsilon].suffix));
  }

  // Adds cases with epsilon 0 and cases with epsilon 10.
  void other_epsilons(std::initializer_list<Shape> shapes, int32_t detail, int32_t inputs, int32_t outputs,
                      uint32_t norm = 0) {
    for (const int32_t epsilon : {1, 2}) {
      for (const Shape& shape : shapes) {
        for (const Spread spread : {Spread::usual, Spread::small, Spread::zeros})
          (*this)(shape, detail, spread, inputs, outputs, Layout::dense, Mode::once, norm, epsilon);
      }
    }
  }
  void (*add)(Catalogue&, const Problem&, std::string_view) = add_plain;
  bool unbiased = false;  // adds cases of batch_norm with the attribute `unbiased`

  // `inputs` and `outputs` are the maximum numbers of optional operands.
  void rows(int32_t inputs, int32_t outputs) {
    for (int32_t spread = 0; spread < kUsualSpreads; ++spread) {
      for (const int32_t n : {1, 2, 3, 17, 64, 257, 1024})
        (*this)({5, n}, 0b10, static_cast<Spread>(spread), inputs, outputs);
      (*this)({3, 4, 5}, 0b110, static_cast<Spread>(spread), inputs, outputs);
    }
    (*this)({5, 0}, 0b10, Spread::usual, inputs, outputs);  // the rows have no elements
    (*this)({0, 5}, 0b10, Spread::usual, inputs, outputs);
    (*this)({4097, 3}, 0b01, Spread::offset, inputs, outputs);
    (*this)({3, 5, 4}, 0b101, Spread::usual, inputs, outputs);
    for (int32_t in = 0; in <= inputs; ++in) {
      for (int32_t out = 0; out < outputs; ++out) (*this)({4, 33}, 0b10, Spread::usual, in, out);
    }
    for (const Layout layout : kCommonLayouts) (*this)({5, 4, 11}, 0b100, Spread::usual, inputs, outputs, layout);
    for (const Mode mode : {Mode::twice, Mode::resized})
      (*this)({5, 33}, 0b10, Spread::usual, inputs, outputs, Layout::dense, mode);
  }

  void images(std::initializer_list<int32_t> details, int32_t inputs, int32_t outputs, uint32_t norm = 0) {
    for (const int32_t detail : details) {
      for (int32_t spread = 0; spread < kUsualSpreads; ++spread) {
        for (const Shape& shape : {Shape{2, 6, 5, 4}, Shape{1, 6, 3}, Shape{3, 6, 1, 2, 2}}) {
          (*this)(shape, detail, static_cast<Spread>(spread), inputs, outputs, Layout::dense, Mode::once, norm);
        }
      }
      (*this)({2, 6, 0, 4}, detail, Spread::usual, inputs, outputs, Layout::dense, Mode::once, norm);
      for (const Layout layout : kCommonLayouts)
        (*this)({2, 6, 5, 4}, detail, Spread::usual, inputs, outputs, layout, Mode::once, norm);
      for (const Shape& shape : {Shape{1, 6, 3}, Shape{3, 6, 1, 2, 2}, Shape{2, 90, 7, 53}})
        (*this)(shape, detail, Spread::offset, inputs, outputs, Layout::channels_last, Mode::once, norm);
      (*this)({2, 6, 5, 4}, detail, Spread::usual, inputs, outputs, Layout::channels_last_in, Mode::once, norm);
    }
  }

 private:
  Catalogue& catalogue_;
  uint32_t op_, dtype_;
};

}  // namespace

void add_norm(Catalogue& catalogue) {
  for (const uint32_t dtype : kFloatDtypes) {
    NormAdder layer(catalogue, BP_OP_LAYER_NORM, dtype), rms(catalogue, BP_OP_RMS_NORM, dtype);
    layer.rows(2, 2);
    rms.rows(1, 1);
    NormAdder group(catalogue, BP_OP_GROUP_NORM, dtype);
    group.images({1, 2, 3, 6}, 2, 2);
    group({2, 6, 5}, 2, Spread::usual, 0, 0);
    group({2, 6, 5}, 2, Spread::usual, 1, 1);
    NormAdder batch(catalogue, BP_OP_BATCH_NORM, dtype);
    batch.images({0, 1}, 0, 4);
    batch({3, 6, 5}, 0, Spread::usual, 0, 0);
    batch({3, 6, 5}, 1, Spread::usual, 0, 0);
    batch({64, 3}, 1, Spread::offset, 0, 2);
    // These cases omit gamma, beta or both, then the running statistics, and finally all optional
    // inputs.
    for (const int32_t training : {0, 1}) {
      for (const int32_t absent : {kNoGamma, kNoBeta, kNoGamma | kNoBeta})
        batch({3, 6, 5}, training, Spread::usual, absent, 2 + 2 * training);
    }
    for (const int32_t absent : {kNoRunning, kNoGamma | kNoRunning, kNoneButX}) {
      for (const int32_t outputs : {0, 4}) batch({3, 6, 5}, 1, Spread::usual, absent, outputs);
    }
    batch({2, 6, 40, 33}, 1, Spread::usual, kNoneButX, 4);
    NormAdder(catalogue, BP_OP_LAYER_NORM, dtype).other_epsilons({{5, 17}, {3, 64}, {4, 257}}, 0b10, 2, 2);
    NormAdder(catalogue, BP_OP_RMS_NORM, dtype).other_epsilons({{5, 17}, {3, 64}, {4, 257}}, 0b10, 1, 1);
    group.other_epsilons({{2, 6, 5, 4}, {1, 6, 33}}, 2, 2, 2);
    batch.other_epsilons({{2, 6, 5, 4}}, 0, 0, 4);
    batch.other_epsilons({{2, 6, 5, 4}, {4, 6, 33}}, 1, 0, 4);
    NormAdder backward(catalogue, BP_OP_NORM_BWD, dtype);
    for (const int32_t inputs : {0, 1, 2}) {
      const int32_t outputs = inputs == 0 ? 0 : 2;
      for (const uint32_t norm : {BP_NORM_LAYER, BP_NORM_RMS}) {
        for (const Spread spread : {Spread::usual, Spread::offset, Spread::small, Spread::constant}) {
          for (const int32_t n : {1, 2, 17, 257})
            backward({5, n}, 0b10, spread, inputs, outputs, Layout::dense, Mode::once, norm);
        }
        for (const Layout layout : kCommonLayouts)
          backward({5, 4, 11}, 0b110, Spread::usual, inputs, outputs, layout, Mode::once, norm);
      }
      for (const uint32_t norm : {BP_NORM_LAYER, BP_NORM_RMS})
        backward.other_epsilons({{5, 17}, {3, 64}}, 0b10, inputs, outputs, norm);
      backward.images({1, 3}, inputs, outputs, BP_NORM_GROUP);
      backward.images({0}, inputs, outputs, BP_NORM_BATCH);
    }
    // One image of many channels, in groups that are contiguous in memory.
    group({1, 64, 5, 7}, 2, Spread::offset, 2, 2, Layout::channels_last);
    backward({1, 64, 5, 7}, 2, Spread::offset, 2, 2, Layout::channels_last, Mode::once, BP_NORM_GROUP);
    NormAdder unbiased(catalogue, BP_OP_BATCH_NORM, dtype);
    unbiased.unbiased = true;
    for (const Spread spread : {Spread::usual, Spread::offset, Spread::constant}) {
      for (const Shape& shape : {Shape{2, 3}, Shape{3, 6, 5}, Shape{1, 6, 2}}) unbiased(shape, 1, spread, 0, 4);
    }
    unbiased({64, 3}, 1, Spread::usual, 0, 2);
    unbiased({3, 6, 5}, 0, Spread::usual, 0, 4);
    unbiased({3, 6, 5}, 1, Spread::usual, kNoneButX, 4);
    for (const Layout layout : {Layout::padded, Layout::transposed})
      unbiased({2, 6, 5, 4}, 1, Spread::usual, 0, 4, layout);
    unbiased.add = add_mixed;
    unbiased({2, 6, 5, 4}, 1, Spread::usual, 0, 4);
    for (NormAdder* each : {&layer, &rms, &group, &batch, &backward}) each->add = add_mixed;
    for (const Layout layout : {Layout::dense, Layout::padded, Layout::transposed}) {
      layer({5, 4, 11}, 0b100, Spread::usual, 2, 2, layout);
      rms({5, 4, 11}, 0b100, Spread::usual, 1, 1, layout);
      group({2, 6, 5, 4}, 3, Spread::usual, 2, 2, layout);
      for (const int32_t trains : {0, 1}) batch({2, 6, 5, 4}, trains, Spread::usual, 0, 4, layout);
      for (const uint32_t norm : {BP_NORM_LAYER, BP_NORM_RMS}) {
        backward({5, 4, 11}, 0b110, Spread::usual, 2, 2, layout, Mode::once, norm);
      }
      backward({2, 6, 5, 4}, 3, Spread::usual, 2, 2, layout, Mode::once, BP_NORM_GROUP);
      backward({2, 6, 5, 4}, 0, Spread::usual, 2, 2, layout, Mode::once, BP_NORM_BATCH);
    }
    layer({5, 257}, 0b10, Spread::offset, 2, 2);
    layer({5, 33}, 0b10, Spread::usual, 2, 2, Layout::dense, Mode::resized);
  }
}

}  // namespace backplane::conformance::numeric
