// SPDX-License-Identifier: Apache-2.0
#include "cases/numeric/axis_cases.hpp"

#include "cases/numeric/lengths.hpp"
#include "cases/numeric/mixed.hpp"
#include "cases/numeric/values.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

// Stores the extreme `value` on both sides of indices at which devices often split the axis into blocks. The lowest
// index is the correct result, so a device must combine the blocks' results in order.
void plant_ties(oracle::Tensor& tensor, uint32_t axis, long double value, Random& random) {
  constexpr int64_t borders[] = {8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};
  int64_t inner = 1, extent = tensor.shape[axis];
  for (size_t d = axis + 1; d < tensor.shape.size(); ++d) inner *= tensor.shape[d];
  if (extent == 0) return;
  for (int64_t lane = 0; lane < tensor.count() / extent; ++lane) {
    const auto plant = [&](int64_t i) {
      if (i < 0 || i >= extent) return;
      oracle::store(tensor, (lane / inner * extent + i) * inner + lane % inner, oracle::encode(tensor.dtype, value));
    };
    const int64_t border = borders[static_cast<uint64_t>(lane) % std::size(borders)] % std::max<int64_t>(extent, 1);
    for (const int64_t at : {border - 1, border, extent - 1}) plant(at);
    for (int more = 0; more < 5; ++more) plant(border + static_cast<int64_t>(random() % static_cast<uint64_t>(extent)));
  }
}

DataPattern pattern_of(DataPattern data) {
  return data == DataPattern::special    ? DataPattern::special
         : data == DataPattern::overflow ? DataPattern::bounds
                                         : DataPattern::family;
}

}  // namespace

void fill_along_axis(oracle::Tensor& tensor, const Problem& problem, Random& random) {
  const auto data = static_cast<DataPattern>(problem.parameters[data_parameter]);
  const auto axis = static_cast<uint32_t>(problem.parameters[axis_parameter]);
  fill(tensor, data, tensor.shape[axis], random);
  if (problem.parameters[ties_parameter] == 0) return;
  const bool is_float = oracle::is_float(tensor.dtype);
  const long double least = is_float ? -2 : oracle::least_integer(tensor.dtype);
  const long double greatest = is_float ? 2000 : oracle::greatest_integer(tensor.dtype);
  plant_ties(tensor, axis, problem.op == BP_OP_ARGMIN ? least - (is_float ? 2000 : 0) : greatest, random);
}

std::span<const int32_t> lengths_for(uint32_t dtype) {
  if (dtype == BP_F32 || dtype == BP_I32) return kTileLengths;
  return kFewLengths;
}

void AxisCases::operator()(const Shape& shape, int32_t axis, DataPattern data, Layout layout, Mode mode, bool ties) {
  const bool is_arg = op_ == BP_OP_ARGMAX || op_ == BP_OP_ARGMIN;
  if (is_arg && shape.extents[static_cast<size_t>(axis)] == 0) return;  // the host rejects an axis without elements
  Problem problem{.op = op_,
                  .dtype = dtype_,
                  .shape = shape,
                  .layout = layout,
                  .pattern = pattern_of(data),
                  .mode = mode,
                  .make = make_};
  problem.parameters = {axis, number_of(data), first_, second_, ties ? 1 : 0, values_only_ ? 1 : 0};
  std::string more("axis_");
  more.append(std::to_string(axis)).append(".").append(ties ? "ties" : name_of(data));
  if (first_ != 0) more.append(op_ == BP_OP_SORT ? ".descending" : ".exclusive");
  if (second_ != 0) more.append(".reverse");
  if (values_only_) more.append(".values");
  mixed ? add_mixed(catalogue_, problem, more) : add(catalogue_, problem, more);
}

void AxisCases::lengths(std::span<const int32_t> list, DataPattern data, bool ties) {
  for (const int32_t n : list) {
    (*this)({n}, 0, data, Layout::dense, Mode::once, ties);
    (*this)({3, n}, 1, data, Layout::dense, Mode::once, ties);
    (*this)({n, 5}, 0, data, Layout::dense, Mode::once, ties);
  }
}

void AxisCases::layouts(DataPattern data) {
  const std::vector<int64_t> shape = {4, 5, 13};
  for (const Layout layout : layouts_for({{dtype_, shape}}, {{dtype_, shape}})) {
    if (layout == Layout::dense || layout == Layout::in_place) continue;
    for (const int32_t axis : {0, 1, 2}) (*this)({4, 5, 13}, axis, data, layout);
  }
  if (op_ == BP_OP_SORT || op_ == BP_OP_CUMSUM) {
    for (const int32_t axis : {0, 1, 2}) (*this)({4, 5, 13}, axis, data, Layout::in_place);
    (*this)({4, 5, 13}, 1, data, Layout::in_place_strided);
  }
  for (const Layout layout : {Layout::sliced, Layout::reversed, Layout::step_3}) (*this)({1025}, 0, data, layout);
  (*this)({2, 1, 3, 1, 2, 2, 5, 2}, 6, data);
  (*this)({2, 1, 3, 1, 2, 2, 1, 5}, 2, data);
  for (const Shape& shape_of : {Shape{0, 7}, Shape{7, 0}}) {
    for (const int32_t axis : {0, 1}) (*this)(shape_of, axis, data);
  }
  for (const Mode mode : {Mode::twice, Mode::resized, Mode::deterministic}) {
    (*this)({5, 67}, 1, data, Layout::dense, mode);
    (*this)({67, 5}, 0, data, Layout::dense, mode);
  }
}

void AxisCases::data(std::initializer_list<DataPattern> list, std::initializer_list<int32_t> extents) {
  for (const DataPattern each : list) {
    for (const int32_t n : extents) (*this)({4, n}, 1, each), (*this)({n, 4}, 0, each);
  }
}

}  // namespace backplane::conformance::numeric
