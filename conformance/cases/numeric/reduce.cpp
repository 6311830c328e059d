// SPDX-License-Identifier: Apache-2.0
// Test cases for the operators reduce_sum, reduce_prod, reduce_max and reduce_min.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/fill_data.hpp"
#include "cases/numeric/lengths.hpp"
#include "cases/numeric/values.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

namespace {

// The shape of `problem` is the shape of the input. If the dtype rule permits several dtypes for the output,
// `Problem::second` is the dtype of the output.
enum ReduceParameter { reduce_axes_parameter, reduce_data_parameter };

bool is_sum(uint32_t op) { return op == BP_OP_REDUCE_SUM || op == BP_OP_REDUCE_PROD; }

std::vector<int64_t> reduced(std::vector<int64_t> shape, uint32_t axes) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if ((axes >> d & 1) != 0) shape[d] = 1;
  }
  return shape;
}

// Fills the tensor with factors whose products are exact and do not overflow. Most factors are 1 or
// -1, and about 8 in every `terms` elements are other numbers.
void fill_factors(oracle::Tensor& tensor, int64_t terms, Random& random) {
  constexpr long double factors[] = {3, -1, 2, 5, 0.5L, -3, 7, 0.25L};
  const int64_t distance = std::max<int64_t>(terms / 8, 1);
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const uint64_t draw = random();
    const long double factor = i % distance == distance / 2 ? factors[draw % std::size(factors)]
                               : draw % 2 == 0              ? 1
                                                            : -1;
    oracle::store(tensor, i, oracle::encode(tensor.dtype, factor));
  }
}

// Fills the tensor with factors near 1, whose product stays near 1.
void fill_about_one(oracle::Tensor& tensor, Random& random) {
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const long double factor = 1 + (unit(random) - 0.5L) / 4;
    oracle::store(tensor, i, oracle::encode(tensor.dtype, i % 2 == 0 ? factor : 1 / factor));
  }
}

void fill_product(oracle::Tensor& tensor, DataPattern data, int64_t terms, Random& random) {
  if (!oracle::is_float(tensor.dtype)) {
    fill(tensor, data, terms, random);
    // All numbers are odd, because a product of many even integers wraps to 0.
    for (int64_t i = 0; i < tensor.count(); ++i) oracle::store(tensor, i, oracle::load(tensor, i) | 1);
  } else if (data == DataPattern::integers) {
    fill_factors(tensor, terms, random);
  } else if (data == DataPattern::zero_mean || data == DataPattern::tenth) {
    fill_about_one(tensor, random);
  } else {
    fill(tensor, data, terms, random);
  }
}

Setup make_reduce(const Problem& problem, Random& random) {
  const auto axes = static_cast<uint32_t>(problem.parameters[reduce_axes_parameter]);
  const auto data = static_cast<DataPattern>(problem.parameters[reduce_data_parameter]);
  const std::vector<int64_t> shape = problem.shape.list();
  Setup setup;
  setup.call.op = problem.op;
  set_attributes(setup.call, bp_reduce_attributes{0, axes});
  setup.call.inputs.push_back(make_tensor(problem.dtype, shape));
  setup.call.outputs.push_back({problem.second != 0 ? problem.second : problem.dtype, reduced(shape, axes), {}});
  const int64_t results = std::max<int64_t>(setup.call.outputs[0].count(), 1);
  const int64_t terms = std::max<int64_t>(problem.shape.count() / results, 1);
  if (problem.op == BP_OP_REDUCE_PROD) {
    fill_product(setup.call.inputs[0], data, terms, random);
  } else {
    fill(setup.call.inputs[0], data, terms, random);
  }
  setup.call.zero_mean = data == DataPattern::zero_mean || data == DataPattern::spikes;
  return setup;
}

class Adder {
 public:
  Adder(Catalogue& catalogue, uint32_t op, uint32_t dtype, uint32_t second)
      : catalogue_(catalogue), op_(op), dtype_(dtype), second_(second == dtype ? 0 : second) {}

  void operator()(const Shape& shape, uint32_t axes, DataPattern data, Layout layout = Layout::dense,
                  Mode mode = Mode::once) {
    Problem problem{.op = op_,
                    .dtype = dtype_,
                    .second = second_,
                    .shape = shape,
                    .layout = layout,
                    .pattern = pattern_of(data),
                    .mode = mode,
                    .make = make_reduce};
    problem.parameters = {static_cast<int32_t>(axes), number_of(data)};
    std::string more("axes_");
    for (uint32_t d = 0; d < shape.rank; ++d) more += (axes >> d & 1) != 0 ? '1' : '0';
    more.append(".").append(name_of(data));
    if (is_sum(op_) && oracle::is_float(dtype_)) {
      add(catalogue_, problem, more, {requirement_of_sum(data)});
    } else {
      add(catalogue_, problem, more);
    }
  }

 private:
  static DataPattern pattern_of(DataPattern data) {
    return data == DataPattern::special    ? DataPattern::special
           : data == DataPattern::overflow ? DataPattern::bounds
                                           : DataPattern::family;
  }

  Catalogue& catalogue_;
  uint32_t op_, dtype_, second_;
};

void add_lengths(Adder& adder, bool main_dtype) {
  for (const int32_t n : main_dtype ? std::span<const int32_t>(kTileLengths) : std::span<const int32_t>(kFewLengths)) {
    adder({n}, 1, DataPattern::integers);
    adder({3, n}, 0b10, DataPattern::integers);
    adder({n, 5}, 0b01, DataPattern::integers);
  }
  if (!main_dtype) return;
  for (const int32_t n : kLongLengths) {
    adder({n}, 1, DataPattern::integers);
    adder({n, 3}, 0b01, DataPattern::integers);
    adder({2, n}, 0b10, DataPattern::integers);
    adder({n, 2}, 0b10, DataPattern::integers);  // these reductions have many results
  }
}

// Adds reductions with more elements per result than one thread or one workgroup should process.
void add_longest(Adder& adder) {
  adder({36000000}, 1, DataPattern::integers);
  adder({3, 2, 1500000}, 0b101, DataPattern::integers);
}

void add_axes(Adder& adder) {
  for (uint32_t axes = 0; axes < 8; ++axes) adder({4, 7, 9}, axes, DataPattern::integers);
  for (const uint32_t axes : {0b0101u, 0b1010u, 0b0110u, 0b1001u, 0b1110u})
    adder({2, 3, 4, 5}, axes, DataPattern::integers);
  for (const uint32_t axes : {0xffu, 0x55u, 0xaau, 0x0fu}) adder({2, 1, 3, 2, 2, 1, 2, 3}, axes, DataPattern::integers);
  adder({}, 0, DataPattern::integers);
  for (uint32_t axes = 0; axes < 4; ++axes) adder({0, 3}, axes, DataPattern::integers);
  adder({3, 0}, 0b01, DataPattern::integers);
  adder({33, 65}, 0b01, DataPattern::integers);
  adder({65, 33}, 0b10, DataPattern::integers);
}

void add_layouts(Adder& adder, uint32_t in, uint32_t out, DataPattern data) {
  for (const uint32_t axes : {0b001u, 0b010u, 0b100u, 0b101u, 0b111u}) {
    const std::vector<int64_t> shape = {5, 4, 11};
    for (const Layout layout : layouts_for({{in, shape}}, {{out, reduced(shape, axes)}})) {
      if (layout != Layout::dense) adder({5, 4, 11}, axes, data, layout);
    }
  }
  if (in == out) adder({5, 1, 11}, 0b010, data, Layout::in_place);
  adder({2, 2, 2, 2, 2, 2, 2, 2}, 0, data, Layout::transposed);  // eight dimensions of outputs
  for (const Layout layout : {Layout::sliced, Layout::reversed, Layout::step_3, Layout::back_2})
    adder({1025}, 1, data, layout);
  for (const Mode mode : {Mode::twice, Mode::resized, Mode::deterministic}) {
    adder({5, 67}, 0b10, data, Layout::dense, mode);
    adder({67, 5}, 0b01, data, Layout::dense, mode);
    adder({9, 67}, 0b11, data, Layout::dense, mode);
  }
}

// Adds cases of float data with inexact results, long sums, infinities and NaN.
void add_float_data(Adder& adder, uint32_t op, bool at_length) {
  for (const DataPattern data : {DataPattern::one_inf, DataPattern::two_infs, DataPattern::one_nan,
                                 DataPattern::special, DataPattern::overflow, DataPattern::negative}) {
    for (const int32_t n : {2, 9, 33, 257, 1025}) adder({8, n}, 0b10, data), adder({n, 8}, 0b01, data);
    adder({1}, 1, data);
    adder({67}, 1, data, Layout::reversed);
  }
  if (op == BP_OP_REDUCE_MAX || op == BP_OP_REDUCE_MIN) return;
  for (const DataPattern data : {DataPattern::zero_mean, DataPattern::spikes, DataPattern::positive, DataPattern::tenth,
                                 DataPattern::cancel, DataPattern::partial}) {
    if (op == BP_OP_REDUCE_PROD && data != DataPattern::zero_mean) continue;
    for (const int32_t n : {16, 255, 256, 257, 1024, 4096, 65536}) {
      adder({n}, 1, data);
      if (n <= 4096) adder({7, n}, 0b10, data), adder({n, 7}, 0b01, data);
    }
  }
  if (op != BP_OP_REDUCE_SUM) return;
  adder({100000, 3}, 0b01, DataPattern::tenth);
  if (!at_length) return;
  for (const DataPattern data : {DataPattern::tenth, DataPattern::zero_mean, DataPattern::spikes})
    adder({1000000}, 1, data);
}

std::vector<uint32_t> outputs_of(uint32_t op, uint32_t dtype) {
  if (!is_sum(op)) return {dtype};
  if (dtype == BP_BOOL) return {BP_I32, BP_I64};
  if (dtype == BP_F16 || dtype == BP_BF16) return {dtype, BP_F32};
  if (oracle::is_float(dtype)) return {dtype};
  std::vector<uint32_t> outputs = {dtype};
  for (const uint32_t wide : {uint32_t{BP_I32}, uint32_t{BP_I64}}) {
    if (wide != dtype) outputs.push_back(wide);
  }
  return outputs;
}

void add_one(Catalogue& catalogue, uint32_t op, uint32_t dtype, uint32_t out) {
  Adder adder(catalogue, op, dtype, out);
  const bool main_dtype = dtype == BP_F32 || (dtype == BP_I32 && out == BP_I32);
  const bool widened = out != dtype && !oracle::is_float(dtype);
  add_lengths(adder, main_dtype);
  if (op == BP_OP_REDUCE_SUM && dtype == BP_U8 && out == BP_I32) add_longest(adder);
  if (widened) return;  // the cases below would test nothing new for widened integers
  add_axes(adder);
  add_layouts(adder, dtype, out, DataPattern::integers);
  if (oracle::is_float(dtype)) return add_float_data(adder, op, dtype == BP_F32 || dtype == BP_F64);
  for (const DataPattern data : {DataPattern::special, DataPattern::negative, DataPattern::few}) {
    for (const int32_t n : {1, 33, 257}) adder({3, n}, 0b10, data), adder({n, 3}, 0b01, data);
  }
}

}  // namespace

void add_reduce(Catalogue& catalogue) {
  for (const uint32_t op : {BP_OP_REDUCE_SUM, BP_OP_REDUCE_PROD, BP_OP_REDUCE_MAX, BP_OP_REDUCE_MIN}) {
    const uint64_t dtypes = oracle::operator_of(op)->dtypes;
    for (uint32_t dtype = 1; dtype < BP_DTYPE_LIMIT; ++dtype) {
      if ((dtypes & BP_DTYPE_BIT(dtype)) == 0) continue;
      for (const uint32_t out : outputs_of(op, dtype)) add_one(catalogue, op, dtype, out);
    }
  }
}

}  // namespace backplane::conformance::numeric
