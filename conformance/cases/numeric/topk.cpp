// SPDX-License-Identifier: Apache-2.0
// Cases of embedding, topk and adamw.
#include <cmath>

#include "cases/numeric/cases.hpp"
#include "cases/numeric/composite.hpp"
#include "cases/numeric/mixed.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace bp::conformance::numeric {

namespace {

// Spec: `shape` is the index's; parameters are the entries and the width of the table.
Job make_embedding(const Spec& spec, Random& random) {
  const int64_t entries = spec.parameters[0], width = spec.parameters[1];
  std::vector<int64_t> shape = spec.shape.list();
  Job job;
  job.call.op = spec.op;
  oracle::Tensor table = make_tensor(spec.dtype, {entries, width});
  for (int64_t i = 0; i < table.count(); ++i) oracle::store(table, i, any_bits(spec.dtype, random));
  oracle::Tensor index = make_tensor(BP_I32, shape);
  for (int64_t i = 0; i < index.count(); ++i) {
    const auto inside = static_cast<int64_t>(random() % static_cast<uint64_t>(entries));
    const int64_t outside[] = {-1, entries, INT32_MAX, INT32_MIN};
    oracle::store(index, i, oracle::encode_integer(BP_I32, i % 5 == 3 ? outside[random() % 4] : inside));
  }
  job.call.inputs = {table, index};
  shape.push_back(width);
  job.call.outputs = {output(spec.dtype, shape)};
  return job;
}

// Spec: `shape` is x's; parameters are the axis, k, smallest, the data, and whether values are the only output.
Job make_topk(const Spec& spec, Random& random) {
  std::vector<int64_t> shape = spec.shape.list();
  const auto axis = static_cast<size_t>(spec.parameters[0]);
  Job job;
  job.call.op = spec.op;
  set_attributes(job, bp_topk_attributes{0, static_cast<uint32_t>(axis), static_cast<uint32_t>(spec.parameters[2]), 0});
  job.call.inputs = {filled(spec.dtype, shape, static_cast<Data>(spec.parameters[3]), 1, random)};
  shape[axis] = spec.parameters[1];
  job.call.outputs = {output(spec.dtype, shape)};
  if (spec.parameters[4] == 0) job.call.outputs.push_back(output(BP_I32, shape));
  return job;
}

// Spec: parameters are the step's number, and whether weights decay.
Job make_adamw(const Spec& spec, Random& random) {
  const std::vector<int64_t> shape = spec.shape.list();
  const auto step = static_cast<double>(spec.parameters[0]);
  const float beta1 = 0.9f, beta2 = 0.999f;
  Job job;
  job.call.op = spec.op;
  set_attributes(job, bp_adamw_attributes{0, beta1, beta2, 1e-8f, spec.parameters[1] != 0 ? 0.25f : 0.0f, 0});
  job.call.inputs = {scaled(spec.dtype, shape, 1, 0, random)};
  const bool first = spec.parameters[0] == 1;
  job.call.outputs = {scaled(spec.dtype, shape, 1, 0, random), scaled(spec.dtype, shape, first ? 0 : 0.5L, 0, random),
                      scaled(spec.dtype, shape, first ? 0 : 0.25L, first ? 0 : 0.5L, random)};
  for (const double scalar :
       {1.0 / 1024, 1 - std::pow(static_cast<double>(beta1), step), 1 - std::pow(static_cast<double>(beta2), step)}) {
    job.call.scalars.push_back(oracle::encode(BP_F32, static_cast<long double>(scalar)));
  }
  return job;
}

void add_embedding_of(Catalogue& catalogue, uint32_t dtype) {
  auto* adding = add_plain;
  const auto put = [&](const Shape& shape, int32_t entries, int32_t width, Layout layout = Layout::dense) {
    Spec spec{.op = BP_OP_EMBEDDING,
              .dtype = dtype,
              .shape = shape,
              .layout = layout,
              .values = Values::bits,
              .make = make_embedding};
    spec.parameters = {entries, width};
    adding(catalogue, spec, std::to_string(entries) + "x" + std::to_string(width));
  };
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{33}, Shape{3, 5}, Shape{0, 4}, Shape{2, 3, 4}}) {
    put(shape, 1, 1);
    put(shape, 17, 8);
    put(shape, 1000, 65);
  }
  for (const Layout layout : common_layouts) put({3, 5}, 17, 9, layout);
  adding = add_mixed;
  put({33}, 17, 8);
  put({3, 5}, 17, 9, Layout::padded);
}

void add_topk_of(Catalogue& catalogue, uint32_t dtype) {
  auto* adding = add_plain;
  for (const int32_t smallest : {0, 1}) {
    int32_t values = 0;
    const auto put = [&](const Shape& shape, int32_t axis, int32_t k, Data data, Layout layout = Layout::dense) {
      Spec spec{.op = BP_OP_TOPK,
                .dtype = dtype,
                .shape = shape,
                .layout = layout,
                .values = data == Data::special ? Values::special : Values::family,
                .make = make_topk};
      spec.parameters = {axis, k, smallest, number_of(data), values};
      std::string more("axis_");
      more.append(std::to_string(axis)).append(".k").append(std::to_string(k)).append(".").append(name_of(data));
      more.append(smallest != 0 ? ".smallest" : "").append(values != 0 ? ".values" : "");
      adding(catalogue, spec, more);
    };
    for (const Data data : {Data::few, Data::zero_mean, Data::special, Data::equal}) {
      for (const int32_t k : {1, 2, 5, 33}) put({4, 33}, 1, k, data), put({33, 4}, 0, k, data);
      put({1025}, 0, 17, data);
    }
    for (const Layout layout : common_layouts) put({5, 4, 11}, 1, 3, Data::few, layout);
    values = 1;
    for (const Data data : {Data::few, Data::special}) put({4, 33}, 1, 5, data), put({1025}, 0, 17, data);
    put({5, 4, 11}, 1, 3, Data::few, Layout::transposed);
    values = 0;
    adding = add_mixed;
    put({4, 33}, 1, 5, Data::few);
    put({5, 4, 11}, 1, 3, Data::zero_mean, Layout::padded);
    adding = add_plain;
  }
}

void add_adamw_of(Catalogue& catalogue, uint32_t dtype) {
  auto* adding = add_plain;
  const auto put = [&](const Shape& shape, int32_t step, int32_t decays, Layout layout = Layout::dense,
                       Mode mode = Mode::once) {
    Spec spec{.op = BP_OP_ADAMW,
              .dtype = dtype,
              .shape = shape,
              .layout = layout,
              .values = Values::family,
              .mode = mode,
              .make = make_adamw};
    spec.parameters = {step, decays};
    adding(catalogue, spec, "step_" + std::to_string(step) + (decays != 0 ? ".decay" : ".plain"));
  };
  for (const int32_t step : {1, 2, 100, 10000}) {
    for (const int32_t decays : {0, 1}) {
      for (const Shape& shape : {Shape{1}, Shape{33}, Shape{1025}, Shape{5, 7}}) put(shape, step, decays);
    }
  }
  for (const Layout layout : common_layouts) put({5, 4, 11}, 3, 1, layout);
  put({65}, 3, 1, Layout::dense, Mode::twice);
  put({65}, 3, 1, Layout::dense, Mode::device_scalars);
  adding = add_mixed;
  for (const int32_t step : {1, 100}) {
    for (const Shape& shape : {Shape{33}, Shape{1025}}) put(shape, step, 1);
  }
  for (const Layout layout : {Layout::padded, Layout::transposed}) put({5, 4, 11}, 3, 0, layout);
}

}  // namespace

void add_lookups(Catalogue& catalogue) {
  for (const uint32_t dtype : float_dtypes) {
    add_embedding_of(catalogue, dtype);
    add_adamw_of(catalogue, dtype);
  }
  for (uint32_t dtype = 1; dtype < BP_DTYPE_LIMIT; ++dtype) {
    if ((oracle::operator_of(BP_OP_TOPK)->dtypes & BP_DTYPE_BIT(dtype)) != 0) add_topk_of(catalogue, dtype);
  }
}

}  // namespace bp::conformance::numeric
