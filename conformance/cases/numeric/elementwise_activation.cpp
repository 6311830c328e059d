// SPDX-License-Identifier: Apache-2.0
// Cases of gelu, silu, sigmoid and pow.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/composite.hpp"
#include "oracle/number.hpp"

namespace backplane::conformance::numeric {

namespace {

// Spec: parameter 0 is gelu's approximation.
Job make(const Spec& spec, Random& random) {
  const std::vector<int64_t> shape = spec.shape.list();
  Job job;
  job.call.op = spec.op;
  if (spec.op == BP_OP_GELU) set_attributes(job, bp_gelu_attributes{0, static_cast<uint32_t>(spec.parameters[0])});
  job.call.inputs.push_back(make_tensor(spec.dtype, shape));
  if (spec.op == BP_OP_POW) job.call.inputs.push_back(make_tensor(spec.dtype, shape));
  job.call.outputs.push_back(output(spec.dtype, shape));
  if (spec.values != Values::family) {
    fill_inputs(job.call.inputs, spec, spec.dtype, random);
  } else if (spec.op == BP_OP_POW) {
    job.call.inputs = {scaled(spec.dtype, shape, 3, 3.25L, random), scaled(spec.dtype, shape, 4, 0, random)};
  } else {
    job.call.inputs = {scaled(spec.dtype, shape, 12, 0, random)};
  }
  return job;
}

void add_one(Catalogue& catalogue, uint32_t op, uint32_t dtype, int32_t variant, std::string_view more) {
  Spec spec{.op = op, .dtype = dtype, .make = make};
  spec.parameters = {variant};
  const auto put = [&](const Shape& shape, Values values, Layout layout = Layout::dense, Mode mode = Mode::once) {
    spec.shape = shape;
    spec.values = values;
    spec.layout = layout;
    spec.mode = mode;
    add_composite(catalogue, spec, more);
  };
  for (const int32_t n : {0, 1, 7, 33, 257, 4097}) put({n}, Values::family);
  put({}, Values::family);
  put({2, 1, 3, 1, 2, 2, 1, 3}, Values::family);
  put({2000}, Values::special);
  put({6000}, Values::windows);
  put({5000}, Values::bits);
  put({3000}, Values::zeros);
  if (oracle::bytes_of(dtype) == 2 && op != BP_OP_POW) put({256, 256}, Values::exhaustive);
  for (const Layout layout : common_layouts) put({5, 4, 11}, Values::family, layout);
  for (const Layout layout : {Layout::in_place, Layout::in_place_strided, Layout::outer_0, Layout::immediate_last}) {
    put({5, 4, 11}, Values::family, layout);
  }
  put({7, 9}, Values::family, Layout::dense, Mode::twice);
  put({7, 9}, Values::family, Layout::dense, Mode::resized);
}

}  // namespace

void add_elementwise_activation(Catalogue& catalogue) {
  for (const uint32_t dtype : float_dtypes) {
    add_one(catalogue, BP_OP_GELU, dtype, BP_GELU_ERF, "erf");
    add_one(catalogue, BP_OP_GELU, dtype, BP_GELU_TANH, "tanh");
    for (const uint32_t op : {BP_OP_SILU, BP_OP_SIGMOID, BP_OP_POW}) add_one(catalogue, op, dtype, 0, {});
  }
}

}  // namespace backplane::conformance::numeric
