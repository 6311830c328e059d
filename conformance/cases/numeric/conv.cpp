// SPDX-License-Identifier: Apache-2.0
// Cases of linear, conv and its relatives, max_pool and avg_pool.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/composite.hpp"
#include "cases/numeric/mixed.hpp"
#include "cases/numeric/narrow.hpp"
#include "cases/numeric/permissions.hpp"
#include "oracle/number.hpp"
#include "oracle/window.hpp"

namespace bp::conformance::numeric {

namespace {

// One problem as conv sees it; for its relatives image and result change places.
struct Setup {
  std::string_view name;
  uint32_t rank, groups;
  int64_t batches, in_channels, out_channels;
  std::array<int64_t, 3> image, kernel, stride, dilation, pad_begin, pad_end;
  int64_t result(size_t d) const {
    return (image[d] + pad_begin[d] + pad_end[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1;
  }
};
constexpr std::array<int64_t, 3> none{0, 0, 0}, one{1, 1, 1};
constexpr Setup setups[] = {
    {"plain", 2, 1, 2, 3, 4, {7, 9, 0}, {3, 3, 0}, one, one, none, none},
    {"padded", 2, 1, 2, 3, 5, {6, 7, 0}, {3, 3, 0}, one, one, {1, 1, 0}, {1, 1, 0}},
    {"uneven_pads", 2, 1, 1, 2, 3, {6, 8, 0}, {3, 2, 0}, one, one, {2, 0, 0}, {0, 1, 0}},
    {"strided", 2, 1, 2, 2, 3, {9, 10, 0}, {3, 3, 0}, {2, 3, 1}, one, {1, 0, 0}, {0, 1, 0}},
    {"dilated", 2, 1, 1, 2, 3, {11, 9, 0}, {3, 2, 0}, one, {2, 3, 1}, {1, 2, 0}, {2, 0, 0}},
    {"grouped", 2, 2, 2, 4, 6, {5, 6, 0}, {3, 3, 0}, one, one, {1, 1, 0}, {1, 1, 0}},
    {"depthwise", 2, 5, 1, 5, 5, {6, 6, 0}, {3, 3, 0}, {2, 1, 1}, one, {1, 1, 0}, {1, 1, 0}},
    {"pointwise", 2, 1, 2, 17, 9, {4, 5, 0}, {1, 1, 0}, one, one, none, none},
    {"all", 2, 3, 2, 6, 9, {13, 11, 0}, {3, 2, 0}, {2, 3, 1}, {2, 1, 1}, {3, 0, 0}, {1, 2, 0}},
    {"line", 1, 1, 2, 3, 4, {17, 0, 0}, {5, 0, 0}, {2, 1, 1}, {2, 1, 1}, {3, 0, 0}, {2, 0, 0}},
    {"volume", 3, 2, 1, 4, 4, {4, 5, 6}, {2, 3, 2}, {1, 2, 1}, {1, 1, 2}, {1, 0, 1}, {0, 1, 1}},
    {"one_place", 2, 1, 2, 3, 4, {5, 7, 0}, {5, 7, 0}, {0x7FFFFFFF, 0x7FFFFFFF, 1}, one, none, none},
    {"one_place_and_rest", 2, 1, 2, 3, 4, {4, 5, 0}, {3, 2, 0}, {2, 7, 1}, one, none, {0, 1, 0}},
    {"deep", 2, 1, 1, 33, 17, {8, 8, 0}, {3, 3, 0}, one, one, {1, 1, 0}, {1, 1, 0}},
    {"wide_kernel", 2, 1, 2, 3, 4, {3, 2, 0}, {5, 4, 0}, one, one, {2, 1, 0}, {1, 2, 0}},
    {"wide_dilation", 2, 1, 2, 3, 4, {3, 4, 0}, {2, 3, 0}, {1, 2, 1}, {4, 3, 1}, {2, 2, 0}, {1, 1, 0}},
    {"no_images", 2, 1, 0, 3, 4, {5, 6, 0}, {3, 3, 0}, one, one, {1, 1, 0}, {1, 1, 0}},
    {"no_channels", 2, 1, 2, 0, 4, {5, 6, 0}, {3, 3, 0}, one, one, {1, 1, 0}, {1, 1, 0}},
    {"no_results", 2, 1, 2, 3, 0, {5, 6, 0}, {3, 3, 0}, one, one, {1, 1, 0}, {1, 1, 0}},
    {"empty_image", 2, 1, 2, 3, 4, {0, 5, 0}, {2, 3, 0}, one, one, {1, 1, 0}, {2, 1, 0}},
    {"only_padding",
     2,
     1,
     2,
     3,
     4,
     {3, 5, 0},
     {2, 2, 0},
     one,
     one,
     {3, 2, 0},
     {2, 4, 0}},  // some windows see only padding
    {"only_padding_apart", 3, 1, 1, 2, 2, {2, 3, 2}, {2, 2, 1}, {2, 1, 3}, {3, 1, 1}, {4, 0, 3}, {5, 3, 3}},
};

// Sums of nothing, or no sums at all.
bool is_empty(const Setup& s) { return s.batches == 0 || s.in_channels == 0 || s.out_channels == 0 || s.image[0] == 0; }

std::vector<int64_t> image_shape(const Setup& s, int64_t channels) {
  std::vector<int64_t> shape = {s.batches, channels};
  for (uint32_t d = 0; d < s.rank; ++d) shape.push_back(s.image[d]);
  return shape;
}
std::vector<int64_t> result_shape(const Setup& s, int64_t channels) {
  std::vector<int64_t> shape = {s.batches, channels};
  for (uint32_t d = 0; d < s.rank; ++d) shape.push_back(s.result(d));
  return shape;
}

std::array<int64_t, 3> used(const Setup& s, const std::array<int64_t, 3>& values) {
  std::array<int64_t, 3> picked{};
  std::copy_n(values.begin(), s.rank, picked.begin());
  return picked;
}
template <typename Attributes>
void set_window(const Setup& s, Attributes& attributes) {
  attributes.spatial_rank = s.rank;
  std::copy_n(used(s, s.stride).begin(), 3, attributes.stride);
  std::copy_n(used(s, s.dilation).begin(), 3, attributes.dilation);
  std::copy_n(used(s, s.pad_begin).begin(), 3, attributes.pad_begin);
  std::copy_n(used(s, s.pad_end).begin(), 3, attributes.pad_end);
}

enum Parameter { setup_parameter, data_parameter, variant_parameter, narrow_parameter };

// Spec: `shape` is the forward's result, for the name. The variant is the activation, and from 8 on there is no bias.
constexpr int32_t without_bias = 8;

// Channels in runs of one sign, for sums over channels first or taps first; each weight is the same.
oracle::Tensor narrow_image(uint32_t dtype, const std::vector<int64_t>& shape, Narrow kind) {
  oracle::Tensor x = make_tensor(dtype, shape);
  int64_t plane = 1;
  for (size_t d = 2; d < shape.size(); ++d) plane *= shape[d];
  for (int64_t i = 0; i < x.count(); ++i) {
    const int64_t channel = i / plane % shape[1];
    oracle::store(x, i,
                  oracle::encode(dtype, narrow_term(kind, channel, shape[1], i / plane / shape[1]) / narrow_right));
  }
  return x;
}
oracle::Tensor narrow_weights(uint32_t dtype, const std::vector<int64_t>& shape) {
  oracle::Tensor w = make_tensor(dtype, shape);
  for (int64_t i = 0; i < w.count(); ++i) oracle::store(w, i, oracle::encode(dtype, narrow_right));
  return w;
}

Job make_narrow_conv(const Spec& spec, Random&) {
  const auto kind = static_cast<Narrow>(spec.parameters[narrow_parameter]);
  const int64_t channels = 64, results = 3, side = 5, kernel = spec.parameters[setup_parameter];
  const std::vector<int64_t> image = {1, channels, side, side};
  Job job;
  job.call.op = spec.op;
  bp_conv_attributes attributes = {};
  attributes.spatial_rank = 2;
  attributes.groups = 1;
  for (int d = 0; d < 2; ++d) attributes.stride[d] = attributes.dilation[d] = 1;
  set_attributes(job, attributes);
  job.call.inputs = {narrow_image(spec.dtype, image, kind),
                     narrow_weights(spec.dtype, {results, channels, kernel, kernel})};
  job.call.outputs = {output(spec.dtype, spec.shape.list())};
  return job;
}

Job make_narrow_linear(const Spec& spec, Random&) {
  const int64_t depth = spec.parameters[setup_parameter];
  std::vector<int64_t> shape = spec.shape.list();
  const int64_t cols = shape.back();
  Job job;
  job.call.op = spec.op;
  set_attributes(job, bp_linear_attributes{0, BP_ACTIVATION_NONE, BP_PRECISION_FULL, 0});
  job.call.outputs = {output(spec.dtype, shape)};
  shape.back() = depth;
  job.call.inputs = {narrow_rows(spec.dtype, shape, static_cast<Narrow>(spec.parameters[narrow_parameter])),
                     narrow_weights(spec.dtype, {cols, depth})};
  return job;
}

void add_narrow(Catalogue& catalogue, uint32_t op, uint32_t dtype) {
  for (const Narrow kind : {Narrow::range, Narrow::digits}) {
    const auto put = [&](const Shape& shape, int32_t extent, std::string_view word) {
      Spec spec{.op = op,
                .dtype = dtype,
                .shape = shape,
                .values = Values::family,
                .make = op == BP_OP_CONV ? make_narrow_conv : make_narrow_linear};
      spec.parameters[setup_parameter] = extent;
      spec.parameters[narrow_parameter] = static_cast<int32_t>(kind);
      std::string more(word);
      more.append(std::to_string(extent)).append(".").append(narrow_names[static_cast<size_t>(kind)]);
      add_composite(catalogue, spec, more, {narrow_requirement});
    };
    if (op == BP_OP_CONV) {
      for (const int32_t kernel : {1, 3}) put({1, 3, 6 - kernel, 6 - kernel}, kernel, "kernel_");
    } else {
      for (const int32_t depth : {64, 256}) put({17, 9}, depth, "k"), put({40}, depth, "k");
    }
  }
}

Job make_conv(const Spec& spec, Random& random) {
  const Setup& s = setups[spec.parameters[setup_parameter]];
  const auto data = static_cast<Data>(spec.parameters[data_parameter]);
  const int32_t variant = spec.parameters[variant_parameter];
  Job job;
  job.call.op = spec.op;
  bp_conv_attributes attributes = {};
  set_window(s, attributes);
  attributes.groups = s.groups;
  attributes.activation = static_cast<uint32_t>(variant % without_bias);
  attributes.precision = spec.precision;
  set_attributes(job, attributes);
  int64_t taps = 1;
  for (uint32_t d = 0; d < s.rank; ++d) taps *= s.kernel[d];
  const int64_t terms = std::max(s.in_channels, s.out_channels) / s.groups * taps;
  const bool transposed = spec.op == BP_OP_CONV_TRANSPOSE || spec.op == BP_OP_CONV_BWD_INPUT;
  std::vector<int64_t> weight = {s.out_channels, s.in_channels / s.groups};
  for (uint32_t d = 0; d < s.rank; ++d) weight.push_back(s.kernel[d]);
  const auto draw = [&](const std::vector<int64_t>& shape, Data kind, int64_t sum) {
    // Integers a and b of at most root of the limit, so that their products keep within it.
    return kind == Data::integers ? filled(spec.dtype, shape, Data::few, sum, random)
                                  : filled(spec.dtype, shape, kind, sum, random);
  };
  const Data other = data == Data::integers || data == Data::tenth ? data : Data::zero_mean;
  const auto signs = [&](oracle::Tensor tensor) {
    for (int64_t i = 0; i < tensor.count() && data == Data::integers; ++i) {
      if (random() % 2 == 0) oracle::store(tensor, i, oracle::load(tensor, i) ^ oracle::sign_bit(spec.dtype));
    }
    return tensor;
  };
  if (spec.op == BP_OP_CONV_BWD_WEIGHT) {
    job.call.inputs = {draw(image_shape(s, s.in_channels), data, terms),
                       signs(draw(result_shape(s, s.out_channels), other, terms))};
    job.call.outputs = {output(spec.dtype, weight)};
    return job;
  }
  job.call.inputs = {draw(transposed ? result_shape(s, s.out_channels) : image_shape(s, s.in_channels), data, terms),
                     signs(draw(weight, other, terms))};
  const int64_t channels = transposed ? s.in_channels : s.out_channels;
  if (variant < without_bias && spec.op != BP_OP_CONV_BWD_INPUT)
    job.call.inputs.push_back(draw({channels}, other, terms));
  job.call.outputs = {output(spec.dtype, transposed ? image_shape(s, channels) : result_shape(s, channels))};
  return job;
}

// The variant is count_padding, or whether the index is asked for.
Job make_pool(const Spec& spec, Random& random) {
  const Setup& s = setups[spec.parameters[setup_parameter]];
  const bool average = spec.op == BP_OP_AVG_POOL, flag = spec.parameters[variant_parameter] != 0;
  Job job;
  job.call.op = spec.op;
  bp_pool_attributes attributes = {};
  set_window(s, attributes);
  std::copy_n(used(s, s.kernel).begin(), 3, attributes.kernel);
  attributes.count_padding = average && flag ? 1 : 0;
  set_attributes(job, attributes);
  job.call.inputs = {filled(spec.dtype, image_shape(s, s.in_channels),
                            static_cast<Data>(spec.parameters[data_parameter]), 16, random)};
  job.call.outputs = {output(spec.dtype, result_shape(s, s.in_channels))};
  if (!average && flag) job.call.outputs.push_back(output(BP_I32, job.call.outputs[0].shape));
  return job;
}

// Spec: `shape` is y's [..,N], the setup K.
Job make_linear(const Spec& spec, Random& random) {
  const int64_t depth = spec.parameters[setup_parameter];
  const auto data = static_cast<Data>(spec.parameters[data_parameter]);
  const int32_t variant = spec.parameters[variant_parameter];
  std::vector<int64_t> shape = spec.shape.list();
  const int64_t cols = shape.back();
  Job job;
  job.call.op = spec.op;
  set_attributes(job, bp_linear_attributes{0, static_cast<uint32_t>(variant % without_bias), spec.precision, 0});
  job.call.outputs = {output(spec.dtype, shape)};
  shape.back() = depth;
  const bool integers = data == Data::integers;
  const Data other = integers ? Data::few : data == Data::tenth ? data : Data::zero_mean;
  job.call.inputs = {filled(spec.dtype, shape, data, depth * 4, random),
                     filled(spec.dtype, {cols, depth}, other, depth, random)};
  if (variant < without_bias) job.call.inputs.push_back(filled(spec.dtype, {cols}, other, depth, random));
  return job;
}

constexpr std::string_view activations[] = {"none", "relu", "gelu_erf", "gelu_tanh", "silu", "sigmoid"};

std::string variant_name(int32_t variant) {
  std::string name(activations[variant % without_bias]);
  return variant < without_bias ? name : name.append(".no_bias");
}

void add_conv(Catalogue& catalogue, uint32_t op, uint32_t dtype) {
  auto* adding = add_plain;
  const auto put = [&](size_t setup, Data data, int32_t variant, Layout layout = Layout::dense, Mode mode = Mode::once,
                       uint32_t precision = 0) {
    const Setup& s = setups[setup];
    Spec spec{.op = op,
              .dtype = dtype,
              .shape = shape_of(result_shape(s, s.out_channels)),
              .layout = layout,
              .values = Values::family,
              .mode = mode,
              .make = make_conv};
    spec.parameters = {static_cast<int32_t>(setup), number_of(data), variant};
    spec.precision = precision;
    std::string more(s.name);
    more.append(".").append(name_of(data)).append(".").append(variant_name(variant));
    adding(catalogue, spec, more.append(suffix_of(precision)));
  };
  const bool plain = op == BP_OP_CONV_BWD_INPUT || op == BP_OP_CONV_BWD_WEIGHT;  // no bias, no activation
  for (size_t setup = 0; setup < std::size(setups); ++setup) {
    for (const Data data : {Data::integers, Data::zero_mean, Data::spikes, Data::tenth}) {
      if (data == Data::integers || !is_empty(setups[setup])) put(setup, data, without_bias);
    }
    if (plain) continue;
    put(setup, Data::integers, BP_ACTIVATION_NONE);
    put(setup, Data::integers, BP_ACTIVATION_RELU);
  }
  for (const Layout layout : common_layouts) put(8, Data::integers, without_bias, layout);
  put(8, Data::zero_mean, without_bias, Layout::dense, Mode::twice);
  put(0, Data::one_nan, without_bias);
  put(0, Data::one_inf, without_bias);
  for (const Permission& permission : permissions) {
    put(5, Data::zero_mean, without_bias, Layout::dense, Mode::once, permission.mask);
    put(13, Data::spikes, without_bias, Layout::dense, Mode::once, permission.mask);
    if (!plain) put(1, Data::zero_mean, BP_ACTIVATION_RELU, Layout::dense, Mode::once, permission.mask);
  }
  for (int32_t activation = 2; activation < static_cast<int32_t>(std::size(activations)) && !plain; ++activation) {
    put(1, Data::zero_mean, activation);
    put(5, Data::spikes, activation);
  }
  if (plain) return;
  adding = add_mixed;
  for (const size_t setup : {size_t{0}, size_t{8}, size_t{9}}) put(setup, Data::zero_mean, BP_ACTIVATION_NONE);
  put(5, Data::zero_mean, BP_ACTIVATION_RELU, Layout::padded);
}

void add_linear(Catalogue& catalogue, uint32_t dtype) {
  auto* adding = add_plain;
  const auto put = [&](const Shape& shape, int32_t depth, Data data, int32_t variant, Layout layout = Layout::dense,
                       Mode mode = Mode::once, uint32_t precision = 0) {
    Spec spec{.op = BP_OP_LINEAR,
              .dtype = dtype,
              .shape = shape,
              .layout = layout,
              .values = Values::family,
              .mode = mode,
              .make = make_linear};
    spec.parameters = {depth, number_of(data), variant};
    spec.precision = precision;
    std::string more("k");
    more.append(std::to_string(depth)).append(".").append(name_of(data)).append(".").append(variant_name(variant));
    adding(catalogue, spec, more.append(suffix_of(precision)));
  };
  for (const int32_t depth : {0, 1, 7, 33, 129}) {
    for (const int32_t variant : {0, 1, without_bias}) put({5, 9}, depth, Data::integers, variant);
    put({2, 3, 17}, depth, Data::integers, without_bias);
    put({33}, depth, Data::integers, 0);
  }
  for (int32_t activation = 0; activation < static_cast<int32_t>(std::size(activations)); ++activation) {
    for (const Data data : {Data::zero_mean, Data::spikes, Data::tenth, Data::one_nan, Data::one_inf})
      put({9, 17}, 64, data, activation);
  }
  for (const Layout layout : common_layouts) put({3, 5, 8}, 13, Data::integers, 0, layout);
  for (const Mode mode : {Mode::twice, Mode::resized}) put({6, 8}, 13, Data::integers, 0, Layout::dense, mode);
  for (const Permission& permission : permissions) {
    for (const int32_t depth : {7, 129}) {
      put({9, 17}, depth, Data::zero_mean, 0, Layout::dense, Mode::once, permission.mask);
      put({9, 17}, depth, Data::tenth, BP_ACTIVATION_GELU_ERF, Layout::dense, Mode::once, permission.mask);
    }
  }
  adding = add_mixed;
  for (const int32_t variant : {0, 1}) put({9, 17}, 64, Data::zero_mean, variant);
  if (dtype == BP_F32) put({9, 17}, 64, Data::zero_mean, without_bias);
  put({2, 3, 17}, 33, Data::zero_mean, 0);
  put({3, 5, 8}, 13, Data::zero_mean, 0, Layout::padded);
}

void add_pool(Catalogue& catalogue, uint32_t op, uint32_t dtype) {
  auto* adding = add_plain;
  const auto put = [&](size_t setup, Data data, int32_t flag, Layout layout = Layout::dense) {
    Spec spec{.op = op,
              .dtype = dtype,
              .shape = shape_of(result_shape(setups[setup], setups[setup].in_channels)),
              .layout = layout,
              .values = Values::family,
              .make = make_pool};
    spec.parameters = {static_cast<int32_t>(setup), number_of(data), flag};
    std::string more(setups[setup].name);
    more.append(".").append(name_of(data)).append(flag == 0 ? "" : op == BP_OP_AVG_POOL ? ".count_padding" : ".index");
    adding(catalogue, spec, more);
  };
  for (size_t setup = 0; setup < std::size(setups); ++setup) {
    if (setups[setup].name == "deep") continue;
    for (const int32_t flag : {0, 1}) {
      for (const Data data :
           {Data::negative, Data::few, Data::zero_mean, Data::tenth, Data::one_nan, Data::two_infs, Data::integers}) {
        if (data == Data::integers || !is_empty(setups[setup])) put(setup, data, flag);
      }
    }
  }
  for (const Layout layout : common_layouts) put(8, Data::zero_mean, 1, layout);
  if (op != BP_OP_MAX_POOL) return;
  adding = add_mixed;
  for (const size_t setup : {size_t{0}, size_t{8}, size_t{10}}) put(setup, Data::zero_mean, 1);
  put(5, Data::few, 1, Layout::padded);
}

}  // namespace

void add_windows(Catalogue& catalogue) {
  for (const uint32_t dtype : float_dtypes) {
    add_linear(catalogue, dtype);
    for (const uint32_t op : {BP_OP_LINEAR, BP_OP_CONV}) add_narrow(catalogue, op, dtype);
    for (const uint32_t op : {BP_OP_CONV, BP_OP_CONV_TRANSPOSE, BP_OP_CONV_BWD_INPUT, BP_OP_CONV_BWD_WEIGHT}) {
      add_conv(catalogue, op, dtype);
    }
    for (const uint32_t op : {BP_OP_MAX_POOL, BP_OP_AVG_POOL}) add_pool(catalogue, op, dtype);
  }
}

}  // namespace bp::conformance::numeric
