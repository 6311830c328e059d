// SPDX-License-Identifier: Apache-2.0
#include "composite.hpp"
#include "operators.hpp"

namespace backplane::conformance::oracle {

std::vector<Expected> embedding(const Call& call) {
  const Tensor &table = call.inputs[0], &index = call.inputs[1], &out = call.outputs[0];
  const int64_t entries = table.shape[0], width = table.shape[1];
  std::vector<Expected> expected = outputs_of(call);
  for (int64_t i = 0; i < out.count(); ++i) {
    const int64_t chosen = integer_at(index, i / width);
    const bool inside = chosen >= 0 && chosen < entries;
    expected[0].elements[static_cast<size_t>(i)] =
        exact_bits(out.dtype, inside ? load(table, chosen * width + i % width) : 0);
  }
  return expected;
}

}  // namespace backplane::conformance::oracle
