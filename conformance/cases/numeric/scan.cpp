// SPDX-License-Identifier: Apache-2.0
// Cases of argmax, argmin, cumsum and sort: what walks lanes along one axis.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/data.hpp"
#include "cases/numeric/mixed.hpp"
#include "cases/numeric/values.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace bp::conformance::numeric {

namespace {

// Spec: `shape` is the input's.
enum Parameter { axis_parameter, data_parameter, first_flag, second_flag, ties_parameter, values_parameter };

// Puts equal extremes where blocks of work meet: the answer is in one block, the wrong ones in others.
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

void fill_lanes(oracle::Tensor& tensor, const Spec& spec, Random& random) {
  const auto data = static_cast<Data>(spec.parameters[data_parameter]);
  const auto axis = static_cast<uint32_t>(spec.parameters[axis_parameter]);
  fill(tensor, data, tensor.shape[axis], random);
  if (spec.parameters[ties_parameter] == 0) return;
  const bool is_float = oracle::is_float(tensor.dtype);
  const long double least = is_float ? -2 : oracle::least_integer(tensor.dtype);
  const long double greatest = is_float ? 2000 : oracle::greatest_integer(tensor.dtype);
  plant_ties(tensor, axis, spec.op == BP_OP_ARGMIN ? least - (is_float ? 2000 : 0) : greatest, random);
}

Job make_arg(const Spec& spec, Random& random) {
  const std::vector<int64_t> shape = spec.shape.list();
  const auto axis = static_cast<uint32_t>(spec.parameters[axis_parameter]);
  std::vector<int64_t> result = shape;
  result[axis] = 1;
  Job job;
  job.call.op = spec.op;
  set_attributes(job, bp_axis_attributes{0, axis});
  job.call.inputs.push_back(make_tensor(spec.dtype, shape));
  job.call.outputs.push_back({BP_I32, result, {}});
  fill_lanes(job.call.inputs[0], spec, random);
  return job;
}

Job make_cumsum(const Spec& spec, Random& random) {
  const auto axis = static_cast<uint32_t>(spec.parameters[axis_parameter]);
  const auto data = static_cast<Data>(spec.parameters[data_parameter]);
  Job job;
  job.call.op = spec.op;
  set_attributes(job, bp_cumsum_attributes{0, axis, static_cast<uint32_t>(spec.parameters[first_flag]),
                                           static_cast<uint32_t>(spec.parameters[second_flag])});
  job.call.inputs.push_back(make_tensor(spec.dtype, spec.shape.list()));
  job.call.outputs.push_back({spec.dtype, spec.shape.list(), {}});
  fill_lanes(job.call.inputs[0], spec, random);
  job.call.zero_mean = data == Data::zero_mean || data == Data::spikes;
  return job;
}

Job make_sort(const Spec& spec, Random& random) {
  Job job;
  job.call.op = spec.op;
  set_attributes(job, bp_sort_attributes{0, static_cast<uint32_t>(spec.parameters[axis_parameter]),
                                         static_cast<uint32_t>(spec.parameters[first_flag]), 0});
  job.call.inputs.push_back(make_tensor(spec.dtype, spec.shape.list()));
  job.call.outputs.push_back({spec.dtype, spec.shape.list(), {}});
  if (spec.parameters[values_parameter] == 0) job.call.outputs.push_back({BP_I32, spec.shape.list(), {}});
  fill_lanes(job.call.inputs[0], spec, random);
  return job;
}

Job make(const Spec& spec, Random& random) {
  switch (spec.op) {
    case BP_OP_CUMSUM:
      return make_cumsum(spec, random);
    case BP_OP_SORT:
      return make_sort(spec, random);
    default:
      return make_arg(spec, random);
  }
}

// One operator with one dtype and one setting of its flags.
class Adder {
 public:
  Adder(Catalogue& catalogue, uint32_t op, uint32_t dtype, int32_t first = 0, int32_t second = 0)
      : catalogue_(catalogue), op_(op), dtype_(dtype), first_(first), second_(second) {}

  void operator()(const Shape& shape, int32_t axis, Data data, Layout layout = Layout::dense, Mode mode = Mode::once,
                  bool ties = false) {
    const bool is_arg = op_ == BP_OP_ARGMAX || op_ == BP_OP_ARGMIN;
    if (is_arg && shape.extents[static_cast<size_t>(axis)] == 0) return;  // illegal: the host refuses it
    Spec spec{.op = op_,
              .dtype = dtype_,
              .shape = shape,
              .layout = layout,
              .values = values_of(data),
              .mode = mode,
              .make = make};
    spec.parameters = {axis, number_of(data), first_, second_, ties ? 1 : 0, values_only_ ? 1 : 0};
    std::string more("axis_");
    more.append(std::to_string(axis)).append(".").append(ties ? "ties" : name_of(data));
    if (first_ != 0) more.append(op_ == BP_OP_SORT ? ".descending" : ".exclusive");
    if (second_ != 0) more.append(".reverse");
    if (values_only_) more.append(".values");
    mixed ? add_mixed(catalogue_, spec, more) : add(catalogue_, spec, more);
  }
  bool mixed = false;  // cases of other dtypes than the plain ones

  // From here on sort cases have no output for indices.
  void want_values() { values_only_ = true; }

  void lengths(std::span<const int32_t> list, Data data, bool ties = false) {
    for (const int32_t n : list) {
      (*this)({n}, 0, data, Layout::dense, Mode::once, ties);
      (*this)({3, n}, 1, data, Layout::dense, Mode::once, ties);
      (*this)({n, 5}, 0, data, Layout::dense, Mode::once, ties);
    }
  }

  void layouts(Data data) {
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

  void data(std::initializer_list<Data> list, std::initializer_list<int32_t> extents) {
    for (const Data each : list) {
      for (const int32_t n : extents) (*this)({4, n}, 1, each), (*this)({n, 4}, 0, each);
    }
  }

 private:
  static Values values_of(Data data) {
    return data == Data::special ? Values::special : data == Data::overflow ? Values::bounds : Values::family;
  }

  Catalogue& catalogue_;
  uint32_t op_, dtype_;
  int32_t first_, second_;
  bool values_only_ = false;
};

std::span<const int32_t> lengths_for(uint32_t dtype) {
  if (dtype == BP_F32 || dtype == BP_I32) return tile_lengths;
  return few_lengths;
}

void add_arg(Catalogue& catalogue, uint32_t op, uint32_t dtype) {
  Adder adder(catalogue, op, dtype);
  adder.lengths(lengths_for(dtype), Data::zero_mean);
  adder.lengths(lengths_for(dtype), Data::zero_mean, true);
  adder.layouts(Data::zero_mean);
  adder.data({Data::equal, Data::few, Data::special, Data::negative}, {1, 2, 9, 33, 129, 257, 1025});
  if (oracle::is_float(dtype))
    adder.data({Data::one_nan, Data::one_inf, Data::two_infs}, {1, 2, 9, 33, 129, 257, 1025});
  if (dtype == BP_F32) adder.lengths(long_lengths, Data::zero_mean, true);
  if (dtype == BP_U8 && op == BP_OP_ARGMIN) adder({36000000}, 0, Data::zero_mean, Layout::dense, Mode::once, true);
  adder.mixed = true;
  for (const int32_t axis : {0, 1, 2}) adder({4, 5, 13}, axis, Data::few, Layout::padded);
  adder({3, 257}, 1, Data::zero_mean);
}

void add_cumsum(Catalogue& catalogue, uint32_t dtype) {
  for (const int32_t flags : {0, 1, 2, 3}) {
    Adder adder(catalogue, BP_OP_CUMSUM, dtype, flags & 1, flags >> 1);
    adder.lengths(flags == 0 ? lengths_for(dtype) : std::span<const int32_t>(few_lengths), Data::integers);
    adder.layouts(Data::integers);
    if (flags == 0 && dtype == BP_I32) adder({4500000}, 0, Data::integers);  // more than one dispatch should go through
    if (!oracle::is_float(dtype)) {
      adder.data({Data::special}, {33, 257});
      continue;
    }
    adder.data({Data::zero_mean, Data::spikes, Data::positive, Data::tenth, Data::cancel, Data::partial, Data::one_inf,
                Data::two_infs, Data::one_nan, Data::special, Data::overflow},
               {17, 257, 1025});
    if (dtype != BP_F32) continue;
    for (const Data data : {Data::tenth, Data::zero_mean, Data::integers}) {
      for (const int32_t n : long_lengths) adder({n}, 0, data);
    }
  }
}

void add_sort(Catalogue& catalogue, uint32_t dtype) {
  for (const int32_t descending : {0, 1}) {
    Adder adder(catalogue, BP_OP_SORT, dtype, descending);
    adder.lengths(lengths_for(dtype), Data::zero_mean);
    adder.lengths(lengths_for(dtype), Data::few);
    adder.layouts(Data::few);
    adder.data({Data::special, Data::equal, Data::negative}, {2, 17, 64, 65, 257, 1025});
    for (const int32_t n : {2047, 2048, 2049}) adder({n}, 0, Data::few);
    if (oracle::is_float(dtype)) adder.data({Data::one_nan, Data::two_infs}, {2, 17, 65, 257, 1025});
    if (dtype == BP_F32 || dtype == BP_I32) {
      for (const int32_t n : long_lengths) adder({n}, 0, Data::few), adder({n}, 0, Data::zero_mean);
    }
    adder.mixed = true;
    for (const int32_t axis : {0, 1, 2}) adder({4, 5, 13}, axis, Data::few, Layout::padded);
    adder({3, 257}, 1, Data::zero_mean);
    adder.mixed = false;
    adder.want_values();
    // Zeros of either sign are equal, and stay in their order.
    adder.data({Data::special, Data::zero_mean, Data::few}, {1, 17, 65, 512, 1025});
    for (const Layout layout : {Layout::transposed, Layout::reversed, Layout::in_place})
      adder({4, 5, 13}, 1, Data::few, layout);
    adder({0, 7}, 1, Data::few);
    for (const Mode mode : {Mode::twice, Mode::resized}) adder({5, 67}, 1, Data::zero_mean, Layout::dense, mode);
    if (dtype == BP_F32) adder({65537}, 0, Data::zero_mean);
  }
}

}  // namespace

void add_scan(Catalogue& catalogue) {
  for (uint32_t dtype = 1; dtype < BP_DTYPE_LIMIT; ++dtype) {
    const auto has = [&](uint32_t op) { return (oracle::operator_of(op)->dtypes & BP_DTYPE_BIT(dtype)) != 0; };
    for (const uint32_t op : {BP_OP_ARGMAX, BP_OP_ARGMIN}) {
      if (has(op)) add_arg(catalogue, op, dtype);
    }
    if (has(BP_OP_CUMSUM)) add_cumsum(catalogue, dtype);
    if (has(BP_OP_SORT)) add_sort(catalogue, dtype);
  }
}

}  // namespace bp::conformance::numeric
