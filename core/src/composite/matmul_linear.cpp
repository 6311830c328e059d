// SPDX-License-Identifier: Apache-2.0
// Lowers linear to matmul, add and an activation.
#include "composite/families.hpp"

namespace backplane::core::composite {

// Folds the rows of x into one dimension if the strides allow it. Otherwise broadcasts w over the
// leading dimensions of x.
void linear(Builder& b) {
  const auto& attributes = b.attributes<bp_linear_attributes>();
  const Value x = b.input(0);
  const Value w = transpose(b.cast(b.input(1), x.dtype()));  // shape [K,N]
  const int64_t depth = w.extent(0), cols = w.extent(1);
  int64_t rows = 1;
  for (uint32_t d = 0; d + 1 < x.rank(); ++d) rows *= x.extent(d);
  Value y;
  if (const std::optional<Value> matrix = try_reshape(x, {rows, depth})) {
    y = b.matmul(*matrix, w, attributes.precision);
  } else {
    Value weights = w;
    Extents shape = x.shape();
    while (weights.rank() < x.rank()) weights = insert(weights, 0);
    shape[x.rank() - 2] = depth;
    shape[x.rank() - 1] = cols;
    y = b.matmul(x, expand(weights, shape), attributes.precision);
  }
  if (b.has_input(2)) {
    Value bias = b.load(2);
    while (bias.rank() < y.rank()) bias = insert(bias, 0);
    y = b.add(y, bias);
  }
  y = activate(b, attributes.activation, y);
  b.store(b.output(0), b.reshape(y, b.output(0).shape()));
}

}  // namespace backplane::core::composite
