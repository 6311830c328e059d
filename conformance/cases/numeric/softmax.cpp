// SPDX-License-Identifier: Apache-2.0
// Cases of softmax, log_softmax, softmax_bwd and cross_entropy.
#include <cmath>
#include <limits>

#include "cases/numeric/cases.hpp"
#include "cases/numeric/composite.hpp"
#include "cases/numeric/mixed.hpp"
#include "oracle/number.hpp"
#include "oracle/softmax.hpp"

namespace bp::conformance::numeric {

namespace {

enum class Rows : int32_t {
  usual,
  wide,     // up to 1e4 of either sign: overflows without the maximum subtracted
  shifted,  // about 1e3
  equal,
  one_hot,   // one far above the rest
  masked,    // a third of them -inf
  nothing,   // whole rows of -inf
  nan,       // one NaN: its row alone
  infinite,  // one inf: likewise
  count,
};
constexpr std::string_view row_names[] = {"usual",  "wide",    "shifted", "equal",   "one_hot",
                                          "masked", "nothing", "nan",     "infinite"};
static_assert(std::size(row_names) == static_cast<size_t>(Rows::count));

constexpr long double infinity = std::numeric_limits<long double>::infinity();

oracle::Tensor rows_of(uint32_t dtype, const std::vector<int64_t>& shape, Rows rows, Random& random) {
  oracle::Tensor x = scaled(dtype, shape, rows == Rows::wide ? 1e4L : 4, rows == Rows::shifted ? 1e3L : 0, random);
  const auto put = [&](int64_t i, long double value) { oracle::store(x, i, oracle::encode(dtype, value)); };
  const int64_t count = x.count(), width = shape.empty() ? 1 : std::max<int64_t>(shape.back(), 1);
  for (int64_t i = 0; i < count; ++i) {
    if (rows == Rows::equal) put(i, -3.5L);
    if (rows == Rows::one_hot) put(i, i % width == i / width % width ? 200 : -100);
    if (rows == Rows::masked && random() % 3 == 0) put(i, -infinity);
    if (rows == Rows::nothing && i / width % 2 == 0) put(i, -infinity);
  }
  if (count == 0) return x;
  const auto any = static_cast<int64_t>(random() % static_cast<uint64_t>(count));
  if (rows == Rows::nan) put(any, std::numeric_limits<long double>::quiet_NaN());
  if (rows == Rows::infinite) put(any, infinity);
  return x;
}

// Spec: `shape` is the input's.
enum Parameter { axis_parameter, rows_parameter, setup_parameter };

Job make(const Spec& spec, Random& random) {
  const std::vector<int64_t> shape = spec.shape.list();
  const auto axis = static_cast<uint32_t>(spec.parameters[axis_parameter]);
  Job job;
  job.call.op = spec.op;
  set_attributes(job, bp_axis_attributes{0, axis});
  job.call.inputs = {rows_of(spec.dtype, shape, static_cast<Rows>(spec.parameters[rows_parameter]), random)};
  job.call.outputs = {output(spec.dtype, shape)};
  return job;
}

// dy and what the forward gave.
Job make_backward(const Spec& spec, Random& random) {
  Spec forward = spec;
  const bool logarithm = spec.parameters[setup_parameter] != 0;
  forward.op = logarithm ? BP_OP_LOG_SOFTMAX : BP_OP_SOFTMAX;
  Job job = make(forward, random);
  const oracle::Expected y = oracle::evaluate(job.call)[0];
  oracle::Tensor result = make_tensor(spec.dtype, spec.shape.list());
  for (size_t i = 0; i < y.elements.size(); ++i) oracle::store(result, static_cast<int64_t>(i), y.elements[i].bits);
  job.call.op = spec.op;
  set_attributes(job, bp_softmax_bwd_attributes{0, static_cast<uint32_t>(spec.parameters[axis_parameter]),
                                                logarithm ? 1u : 0u, 0});
  job.call.inputs = {scaled(spec.dtype, spec.shape.list(), 1, 0, random), result};
  return job;
}

struct Loss {
  std::string_view name;
  uint32_t reduction;
  float smoothing;
  bool weights, ignores, gradient;
  int64_t ignored = -100;
};
constexpr Loss losses[] = {
    {"none", BP_REDUCTION_NONE, 0, false, false, false},
    {"none_all", BP_REDUCTION_NONE, 0.125f, true, true, true},
    {"sum", BP_REDUCTION_SUM, 0, false, true, false},
    {"sum_weighted", BP_REDUCTION_SUM, 0, true, false, true},
    {"mean", BP_REDUCTION_MEAN, 0, false, false, true},
    {"mean_ignoring", BP_REDUCTION_MEAN, 0, false, true, true},
    {"mean_weighted", BP_REDUCTION_MEAN, 0, true, true, true},
    {"mean_smooth", BP_REDUCTION_MEAN, 0.25f, true, true, true},
    // Beyond i32, with a target as its low half: no row is ignored.
    {"mean_far_index", BP_REDUCTION_MEAN, 0, false, false, true, (int64_t{1} << 32) + 1},
    {"none_far_index", BP_REDUCTION_NONE, 0, true, false, true, INT64_MIN},
    {"sum_far_index", BP_REDUCTION_SUM, 0.125f, true, false, true, INT64_MAX - 1},
};

Job make_loss(const Spec& spec, Random& random) {
  const Loss& loss = losses[spec.parameters[setup_parameter]];
  const std::vector<int64_t> shape = spec.shape.list();
  const int64_t rows = shape[0], classes = shape[1];
  Job job;
  job.call.op = spec.op;
  set_attributes(job, bp_cross_entropy_attributes{0, loss.reduction, loss.ignored, loss.smoothing, 0});
  oracle::Tensor target = make_tensor(BP_I32, {rows});
  for (int64_t n = 0; n < rows; ++n) {
    const bool skip = loss.ignores && n % 3 == 1;
    oracle::store(target, n,
                  oracle::encode_integer(
                      BP_I32, skip ? loss.ignored : static_cast<int64_t>(random() % static_cast<uint64_t>(classes))));
  }
  job.call.inputs = {rows_of(spec.dtype, shape, static_cast<Rows>(spec.parameters[rows_parameter]), random), target};
  if (loss.weights) job.call.inputs.push_back(scaled(spec.dtype, {classes}, 0.5L, 1, random));
  job.call.outputs = {
      output(spec.dtype, loss.reduction == BP_REDUCTION_NONE ? std::vector<int64_t>{rows} : std::vector<int64_t>{})};
  if (loss.gradient) job.call.outputs.push_back(output(spec.dtype, shape));
  return job;
}

class Adder {
 public:
  Adder(Catalogue& catalogue, uint32_t op, uint32_t dtype, Job (*made)(const Spec&, Random&), int32_t setup,
        std::string_view name)
      : catalogue_(catalogue), op_(op), dtype_(dtype), make_(made), setup_(setup), name_(name) {}

  void operator()(const Shape& shape, int32_t axis, Rows rows, Layout layout = Layout::dense, Mode mode = Mode::once) {
    Spec spec{.op = op_,
              .dtype = dtype_,
              .shape = shape,
              .layout = layout,
              .values = Values::family,
              .mode = mode,
              .make = make_};
    spec.parameters = {axis, static_cast<int32_t>(rows), setup_};
    std::string more("axis_");
    more.append(std::to_string(axis)).append(".").append(row_names[static_cast<size_t>(rows)]);
    if (!name_.empty()) more.append(".").append(name_);
    add(catalogue_, spec, more);
  }
  void (*add)(Catalogue&, const Spec&, std::string_view) = add_plain;

  void every_row(bool all) {
    for (int32_t rows = 0; rows < static_cast<int32_t>(all ? Rows::count : Rows::masked); ++rows) {
      for (const int32_t n : {1, 2, 9, 33, 257}) (*this)({5, n}, 1, static_cast<Rows>(rows));
    }
  }
  void layouts(std::initializer_list<Layout> more) {
    for (const int32_t axis : {0, 1, 2}) {
      for (const Layout layout : common_layouts) (*this)({5, 4, 11}, axis, Rows::usual, layout);
      for (const Layout layout : more) (*this)({5, 4, 11}, axis, Rows::usual, layout);
    }
  }

 private:
  Catalogue& catalogue_;
  uint32_t op_, dtype_;
  Job (*make_)(const Spec&, Random&);
  int32_t setup_;
  std::string_view name_;
};

}  // namespace

void add_softmax(Catalogue& catalogue) {
  for (const uint32_t dtype : float_dtypes) {
    for (const uint32_t op : {BP_OP_SOFTMAX, BP_OP_LOG_SOFTMAX}) {
      Adder adder(catalogue, op, dtype, make, 0, {});
      adder.every_row(true);
      for (const int32_t n : {3, 8, 31, 64, 127, 128, 129, 1023, 1024, 1025})
        adder({3, n}, 1, Rows::usual), adder({n, 3}, 0, Rows::wide);
      adder({2, 50257}, 1, Rows::usual);
      adder({0, 3}, 1, Rows::usual);
      adder({2, 1, 3, 1, 2, 2, 5, 2}, 6, Rows::usual);
      adder.layouts({Layout::in_place, Layout::in_place_strided, Layout::outer_0});
      for (const Mode mode : {Mode::twice, Mode::resized}) adder({5, 33}, 1, Rows::wide, Layout::dense, mode);
      adder.add = add_mixed;
      for (const Rows rows : {Rows::usual, Rows::wide, Rows::masked, Rows::nan}) adder({5, 33}, 1, rows);
      for (const int32_t axis : {0, 1, 2}) adder({5, 4, 11}, axis, Rows::usual, Layout::padded);
    }
    for (const int32_t logarithm : {0, 1}) {
      Adder adder(catalogue, BP_OP_SOFTMAX_BWD, dtype, make_backward, logarithm, logarithm != 0 ? "log" : "plain");
      adder.every_row(false);
      adder({3, 1025}, 1, Rows::usual);
      adder.layouts({Layout::in_place, Layout::in_place_second});
    }
    for (size_t setup = 0; setup < std::size(losses); ++setup) {
      Adder adder(catalogue, BP_OP_CROSS_ENTROPY, dtype, make_loss, static_cast<int32_t>(setup), losses[setup].name);
      for (const Rows rows : {Rows::usual, Rows::wide, Rows::shifted, Rows::equal}) {
        for (const Shape& shape : {Shape{1, 2}, Shape{7, 10}, Shape{33, 65}}) adder(shape, 1, rows);
      }
      for (const Layout layout : common_layouts) adder({9, 6}, 1, Rows::usual, layout);
      adder.add = add_mixed;
      adder({7, 10}, 1, Rows::usual);
      adder({9, 6}, 1, Rows::wide, Layout::padded);
    }
  }
}

}  // namespace bp::conformance::numeric
