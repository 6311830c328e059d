// SPDX-License-Identifier: Apache-2.0
// Cases of linear.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/composite.hpp"
#include "cases/numeric/mixed.hpp"
#include "cases/numeric/narrow.hpp"
#include "cases/numeric/permissions.hpp"

namespace backplane::conformance::numeric {

namespace {

enum Parameter { depth_parameter, data_parameter, variant_parameter, narrow_parameter };

Job make_narrow_linear(const Spec& spec, Random&) {
  const int64_t depth = spec.parameters[depth_parameter];
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

void add_narrow(Catalogue& catalogue, uint32_t dtype) {
  for (const Narrow kind : {Narrow::range, Narrow::digits}) {
    const auto put = [&](const Shape& shape, int32_t depth) {
      Spec spec{
          .op = BP_OP_LINEAR, .dtype = dtype, .shape = shape, .values = Values::family, .make = make_narrow_linear};
      spec.parameters[depth_parameter] = depth;
      spec.parameters[narrow_parameter] = static_cast<int32_t>(kind);
      std::string more("k");
      more.append(std::to_string(depth)).append(".").append(narrow_names[static_cast<size_t>(kind)]);
      add_composite(catalogue, spec, more, {narrow_requirement});
    };
    for (const int32_t depth : {64, 256}) put({17, 9}, depth), put({40}, depth);
  }
}

// Spec: `shape` is y's [..,N].
Job make_linear(const Spec& spec, Random& random) {
  const int64_t depth = spec.parameters[depth_parameter];
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

void add_plain_and_mixed(Catalogue& catalogue, uint32_t dtype) {
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
  for (int32_t activation = 0; activation < activation_count; ++activation) {
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

}  // namespace

void add_linear(Catalogue& catalogue, uint32_t dtype) {
  add_plain_and_mixed(catalogue, dtype);
  add_narrow(catalogue, dtype);
}

}  // namespace backplane::conformance::numeric
