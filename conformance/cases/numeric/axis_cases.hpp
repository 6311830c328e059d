// SPDX-License-Identifier: Apache-2.0
// Test cases for operators that work along one axis: argmax, argmin, cumsum and sort.
#pragma once

#include <span>

#include "cases/numeric/fill_data.hpp"

namespace backplane::conformance::numeric {

// Indices into Problem::parameters. Problem::shape is the shape of the input.
enum AxisParameter { axis_parameter, data_parameter, first_flag, second_flag, ties_parameter, values_parameter };

// Fills the input according to the problem's parameters.
void fill_along_axis(oracle::Tensor& tensor, const Problem& problem, Random& random);

// Returns the axis extents that the cases of `dtype` test.
std::span<const int32_t> lengths_for(uint32_t dtype);

// Adds the cases of one operator with one dtype and one combination of flags.
class AxisCases {
 public:
  using Make = Setup (*)(const Problem&, Random&);
  AxisCases(Catalogue& catalogue, uint32_t op, uint32_t dtype, Make make, int32_t first = 0, int32_t second = 0)
      : catalogue_(catalogue), op_(op), dtype_(dtype), make_(make), first_(first), second_(second) {}

  void operator()(const Shape& shape, int32_t axis, DataPattern data, Layout layout = Layout::dense,
                  Mode mode = Mode::once, bool ties = false);
  bool mixed = false;  // whether to add cases with mixed dtypes instead of plain cases

  // Sort cases that are added after this call have no output for indices.
  void want_values() { values_only_ = true; }

  void lengths(std::span<const int32_t> list, DataPattern data, bool ties = false);
  void layouts(DataPattern data);
  void data(std::initializer_list<DataPattern> list, std::initializer_list<int32_t> extents);

 private:
  Catalogue& catalogue_;
  uint32_t op_, dtype_;
  Make make_;
  int32_t first_, second_;
  bool values_only_ = false;
};

}  // namespace backplane::conformance::numeric
