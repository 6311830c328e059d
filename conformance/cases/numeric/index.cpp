// SPDX-License-Identifier: Apache-2.0
// Test cases for the operators gather and scatter.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/fill_data.hpp"
#include "cases/numeric/lengths.hpp"
#include "cases/numeric/values.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

namespace {

// Problem::shape is the shape of the index operand. Problem::second is the dtype of the index operand, or 0 for i32.
// The parameter index_mode_parameter contains the scatter mode and must be parameter 1, because problem.cpp reads the
// mode there.
enum IndexParameter {
  index_axis_parameter,
  index_mode_parameter,
  index_extent_parameter,
  index_chosen_parameter,
  index_data_parameter
};

// The elements that the indices select.
enum class Chosen : int32_t {
  random,   // some elements are selected often, and others never
  once,     // each element is selected at most once
  reverse,  // elements are selected in descending order
  one,      // all indices are equal
  outside,  // half of the indices are out of range, some near the limits and others far away
  none,     // all indices are out of range
  count,
};
constexpr std::string_view kChosenNames[] = {"random", "once", "reverse", "one", "outside", "none"};
static_assert(std::size(kChosenNames) == static_cast<size_t>(Chosen::count));

// Returns an illegal index that narrowing, wrap-around or clamping would make legal.
int64_t outside(uint32_t dtype, int64_t extent, uint64_t draw) {
  const int64_t narrow[] = {-1, extent, -extent, extent + 1, INT32_MAX, INT32_MIN, -extent - 1, 2 * extent};
  const int64_t wide[] = {int64_t{1} << 32, (int64_t{1} << 32) - 1, -(int64_t{1} << 32), INT64_MIN, INT64_MAX};
  if (dtype == BP_I64 && draw % 3 == 0) return wide[draw / 3 % std::size(wide)];
  const int64_t index = narrow[draw / 3 % std::size(narrow)];
  return index == 0 ? -1 : index;
}

void fill_indices(oracle::Tensor& index, int64_t extent, Chosen chosen, uint32_t axis, Random& random) {
  int64_t inner = 1;
  for (size_t d = axis + 1; d < index.shape.size(); ++d) inner *= index.shape[d];
  const int64_t length = index.shape[axis];
  const auto any = [&] {
    return extent == 0 ? int64_t{0} : static_cast<int64_t>(random() % static_cast<uint64_t>(extent));
  };
  const int64_t only = any(), shift = any();
  for (int64_t n = 0; n < index.count(); ++n) {
    const int64_t i = n / inner % length;
    int64_t value = 0;
    switch (chosen) {
      case Chosen::once:
        // With a step of 7 between consecutive indices, each element is selected at most once. If the extent is a
        // multiple of 7, the step is 1 instead.
        value = i >= extent ? -1 : extent % 7 == 0 ? (i + shift) % extent : (i * 7 + shift + n % inner) % extent;
        break;
      case Chosen::reverse:
        value = extent - 1 - i;
        break;
      case Chosen::one:
        value = only;
        break;
      case Chosen::outside:
        value = random() % 2 == 0 ? any() : outside(index.dtype, extent, random());
        break;
      case Chosen::none:
        value = outside(index.dtype, extent, random());
        break;
      default:
        value = any();
    }
    oracle::store(index, n, oracle::encode_integer(index.dtype, value));
  }
}

std::vector<int64_t> with_extent(std::vector<int64_t> shape, size_t axis, int64_t extent) {
  shape[axis] = extent;
  return shape;
}

void fill_bits(oracle::Tensor& tensor, Random& random) {
  for (int64_t i = 0; i < tensor.count(); ++i) oracle::store(tensor, i, any_bits(tensor.dtype, random));
}

Setup make_gather(const Problem& problem, Random& random) {
  const auto axis = static_cast<uint32_t>(problem.parameters[index_axis_parameter]);
  const int64_t extent = problem.parameters[index_extent_parameter];
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call, bp_axis_attributes{0, axis});
  const std::vector<int64_t> shape = problem.shape.list();
  setup.call.inputs.push_back(make_tensor(problem.dtype, with_extent(shape, axis, extent)));
  setup.call.inputs.push_back(make_tensor(problem.second != 0 ? problem.second : uint32_t{BP_I32}, shape));
  setup.call.outputs.push_back({problem.dtype, shape, {}});
  fill_bits(setup.call.inputs[0], random);
  fill_indices(setup.call.inputs[1], extent, static_cast<Chosen>(problem.parameters[index_chosen_parameter]), axis,
               random);
  return setup;
}

// Stores -0, signalling NaN and the least subnormal in some elements. These bits change if an implementation adds to,
// compares or flushes an element that no index selects.
void plant_fragile(oracle::Tensor& io, Random& random) {
  constexpr int64_t few = 16;
  if (!oracle::is_float(io.dtype)) return;
  for (int64_t i = 0; i < io.count(); ++i) {
    const uint64_t draw = random();
    if (draw % 4 == 0) oracle::store(io, i, oracle::sign_bit(io.dtype));  // -0
    if (draw % 32 == 1 && io.count() >= few) oracle::store(io, i, oracle::signalling_nan_bits(io.dtype));
    if (draw % 32 == 2 && io.count() >= few) oracle::store(io, i, 1);
  }
}

Setup make_scatter(const Problem& problem, Random& random) {
  const auto axis = static_cast<uint32_t>(problem.parameters[index_axis_parameter]);
  const auto mode = static_cast<uint32_t>(problem.parameters[index_mode_parameter]);
  const auto data = static_cast<DataPattern>(problem.parameters[index_data_parameter]);
  const int64_t extent = problem.parameters[index_extent_parameter];
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call, bp_scatter_attributes{0, axis, mode, 0});
  const std::vector<int64_t> shape = problem.shape.list();
  setup.call.inputs.push_back(make_tensor(problem.second != 0 ? problem.second : uint32_t{BP_I32}, shape));
  setup.call.inputs.push_back(make_tensor(problem.dtype, shape));
  setup.call.outputs.push_back(make_tensor(problem.dtype, with_extent(shape, axis, extent)));
  fill_indices(setup.call.inputs[0], extent, static_cast<Chosen>(problem.parameters[index_chosen_parameter]), axis,
               random);
  for (oracle::Tensor* tensor : {&setup.call.inputs[1], &setup.call.outputs[0]}) {
    if (mode == BP_SCATTER_SET) {
      fill_bits(*tensor, random);
    } else {
      fill(*tensor, data, shape[axis] + 1, random);
    }
  }
  if (mode != BP_SCATTER_SET) plant_fragile(setup.call.outputs[0], random);
  return setup;
}

Setup make(const Problem& problem, Random& random) {
  return problem.op == BP_OP_GATHER ? make_gather(problem, random) : make_scatter(problem, random);
}

class Adder {
 public:
  Adder(Catalogue& catalogue, uint32_t op, uint32_t dtype, uint32_t index, uint32_t mode = 0)
      : catalogue_(catalogue), op_(op), dtype_(dtype), index_(index), mode_(static_cast<int32_t>(mode)) {}

  void operator()(const Shape& shape, int32_t axis, int32_t extent, Chosen chosen,
                  DataPattern data = DataPattern::integers, Layout layout = Layout::dense, Mode mode = Mode::once) {
    constexpr std::string_view modes[] = {"set", "add", "max", "min"};
    Problem problem{.op = op_,
                    .dtype = dtype_,
                    .second = index_ == BP_I32 ? 0 : index_,
                    .shape = shape,
                    .layout = layout,
                    .pattern = data == DataPattern::special ? DataPattern::special : DataPattern::family,
                    .mode = mode,
                    .make = make};
    problem.parameters = {axis, mode_, extent, static_cast<int32_t>(chosen), number_of(data)};
    std::string more;
    if (op_ == BP_OP_SCATTER) more.append(modes[static_cast<size_t>(mode_)]).append(".");
    more.append("axis_").append(std::to_string(axis)).append("_of_").append(std::to_string(extent)).append(".");
    more.append(kChosenNames[static_cast<size_t>(chosen)]);
    if (data != DataPattern::integers) more.append(".").append(name_of(data));
    add(catalogue_, problem, more);
  }

  void shapes(bool all) {
    for (const int32_t n : all ? std::span<const int32_t>(kTileLengths) : std::span<const int32_t>(kFewLengths)) {
      (*this)({n}, 0, 19, Chosen::random);
      (*this)({n}, 0, n, Chosen::once);
      (*this)({n, 5}, 0, 6, Chosen::outside);
      (*this)({3, n}, 1, 33, Chosen::outside);
      (*this)({3, n}, 1, n, Chosen::reverse);
    }
    for (const int32_t extent : {1, 2, 64, 1025}) {
      for (const Chosen chosen : {Chosen::random, Chosen::one, Chosen::none}) (*this)({4, 7, 9}, 1, extent, chosen);
    }
    (*this)({4, 7, 9}, 0, 5, Chosen::outside);
    (*this)({4, 7, 9}, 2, 17, Chosen::outside);
    (*this)({2, 1, 3, 2, 2, 1, 5, 2}, 6, 4, Chosen::outside);
    (*this)({2, 0, 3}, 0, 4, Chosen::random);
    (*this)({2, 3}, 0, 0, Chosen::none);  // the axis is empty
    if (op_ == BP_OP_GATHER) (*this)({2, 3}, 0, 0, Chosen::one);
  }

  void layouts() {
    for (const int32_t axis : {0, 1, 2}) {
      const std::vector<int64_t> shape = {4, 5, 11}, other = with_extent(shape, static_cast<size_t>(axis), 7);
      const bool gathers = op_ == BP_OP_GATHER;
      const Operand data{dtype_, other}, index{index_, shape}, values{dtype_, shape};
      for (const Layout layout :
           gathers ? layouts_for({data, index}, {values}) : layouts_for({index, values}, {data})) {
        if (layout != Layout::dense && layout != Layout::same)
          (*this)({4, 5, 11}, axis, 7, Chosen::outside, DataPattern::integers, layout);
      }
    }
    for (const Layout layout : {Layout::in_place, Layout::in_place_strided}) {
      if (op_ == BP_OP_GATHER) (*this)({4, 5, 11}, 2, 11, Chosen::reverse, DataPattern::integers, layout);
      if (op_ == BP_OP_GATHER) (*this)({4, 5, 11}, 1, 5, Chosen::outside, DataPattern::integers, layout);
    }
    for (const Mode mode : {Mode::twice, Mode::resized, Mode::deterministic}) {
      (*this)({5, 67}, 1, 40, Chosen::outside, DataPattern::integers, Layout::dense, mode);
      (*this)({67, 5}, 0, 40, Chosen::random, DataPattern::integers, Layout::dense, mode);
    }
  }

  // Adds cases in which one index applies to a whole row, because the index operand has stride 0 in the last dimension.
  void rows() {
    for (const Chosen chosen : {Chosen::outside, Chosen::one, Chosen::none}) {
      (*this)({9, 75}, 0, 7, chosen, DataPattern::integers, Layout::rows_of_first);
      (*this)({4, 7, 9}, 1, 5, chosen, DataPattern::integers, Layout::rows_of_first);
    }
    (*this)({4, 5, 11}, 0, 7, Chosen::random, DataPattern::integers, Layout::rows_of_first);
    (*this)({1100, 129}, 0, 50, Chosen::random, DataPattern::integers, Layout::rows_of_first);
  }

 private:
  Catalogue& catalogue_;
  uint32_t op_, dtype_, index_;
  int32_t mode_;
};

bool is_main(uint32_t dtype) { return dtype == BP_F32 || dtype == BP_I32 || dtype == BP_U8; }

void add_scatter(Catalogue& catalogue, uint32_t dtype, uint32_t mode, uint32_t index) {
  Adder adder(catalogue, BP_OP_SCATTER, dtype, index, mode);
  adder.shapes(is_main(dtype) && index == BP_I32 && mode <= BP_SCATTER_ADD);
  adder.layouts();
  for (const int32_t n : {257, 1025, 4097, 65537}) {
    adder({n}, 0, 3, Chosen::one);
    adder({n}, 0, 3, Chosen::random);
  }
  adder.rows();
  // Many indices select one element, and no concurrent update may be lost.
  if (mode == BP_SCATTER_ADD) adder({64, 33}, 0, 1, Chosen::one, DataPattern::integers, Layout::dense, Mode::twice);
  if (mode == BP_SCATTER_SET || index != BP_I32) return;
  if (!oracle::is_float(dtype)) return adder({3, 257}, 1, 9, Chosen::random, DataPattern::special);
  for (const DataPattern data : {DataPattern::zero_mean, DataPattern::spikes, DataPattern::tenth, DataPattern::one_nan,
                                 DataPattern::two_infs, DataPattern::special}) {
    adder({3, 257}, 1, 9, Chosen::random, data);
    adder({257, 3}, 0, 300, Chosen::once, data);
    adder({1025}, 0, 2, Chosen::one, data);
  }
}

}  // namespace

void add_index(Catalogue& catalogue) {
  for (uint32_t dtype = 1; dtype < BP_DTYPE_LIMIT; ++dtype) {
    if ((BP_SET_ALL & BP_DTYPE_BIT(dtype)) == 0) continue;
    for (const uint32_t index : {uint32_t{BP_I32}, uint32_t{BP_I64}}) {
      Adder gathers(catalogue, BP_OP_GATHER, dtype, index);
      gathers.shapes(is_main(dtype) && index == BP_I32);
      gathers.layouts();
      for (const uint32_t mode : {BP_SCATTER_SET, BP_SCATTER_ADD, BP_SCATTER_MAX, BP_SCATTER_MIN}) {
        if (dtype == BP_BOOL && mode != BP_SCATTER_SET) continue;
        if (index == BP_I64 && !is_main(dtype)) continue;
        add_scatter(catalogue, dtype, mode, index);
      }
    }
  }
}

}  // namespace backplane::conformance::numeric
