// SPDX-License-Identifier: Apache-2.0
// Unary, binary, compare and select: one element of each input makes one of the output.
#include <cstring>

#include "cases/numeric/families.hpp"
#include "cases/numeric/values.hpp"
#include "oracle/number.hpp"
#include "oracle/table.hpp"

namespace bp::conformance::numeric {

namespace {

Job make(const Spec& spec, Random& random) {
  const std::vector<int64_t> shape = spec.shape.list();
  Job job;
  job.call.op = spec.op;
  const oracle::Operator& row = *oracle::operator_of(spec.op);
  for (uint32_t i = 0; i < row.inputs_max; ++i) job.call.inputs.push_back(make_tensor(spec.dtype, shape));
  job.call.outputs.push_back({spec.dtype, shape, {}});
  fill_inputs(job.call.inputs, spec, spec.dtype, random);
  return job;
}

}  // namespace

void add_elementwise(Catalogue& catalogue) {
  for (const Layout layout : {Layout::dense, Layout::mixed, Layout::in_place}) {
    for (const Shape& shape : {Shape{}, Shape{17}, Shape{3, 1, 5}, Shape{0, 4}}) {
      add(catalogue, {.op = BP_OP_ADD, .dtype = BP_F32, .shape = shape, .layout = layout, .make = make});
    }
  }
}

}  // namespace bp::conformance::numeric
