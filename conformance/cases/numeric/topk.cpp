// SPDX-License-Identifier: Apache-2.0
// Cases of topk.
#include "cases/numeric/cases.hpp"
#include "cases/numeric/composite.hpp"
#include "cases/numeric/mixed.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace backplane::conformance::numeric {

namespace {

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

}  // namespace

void add_topk(Catalogue& catalogue) {
  for_dtypes(oracle::operator_of(BP_OP_TOPK)->dtypes, [&](uint32_t dtype) { add_topk_of(catalogue, dtype); });
}

}  // namespace backplane::conformance::numeric
