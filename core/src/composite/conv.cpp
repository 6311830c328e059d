// SPDX-License-Identifier: Apache-2.0
// Lowers conv: copies the unfolded image to columns (im2col) and multiplies the weight by the
// columns.
#include "composite/window.hpp"

namespace backplane::core::composite {

void conv(Builder& b) {
  const auto& attributes = b.attributes<bp_conv_attributes>();
  const Value x = b.input(0), w = b.input(1), y = b.output(0);
  const Window window(attributes, spatial(x), spatial(w));
  const int64_t batches = x.extent(0), channels = x.extent(1), outputs = y.extent(1), groups = attributes.groups;
  const int64_t depth = channels / groups * window.taps, rank = window.rank();
  const Value weight = insert(b.reshape(w, {groups, outputs / groups, depth}), 0);
  Value bias;
  if (b.has_input(2)) bias = b.reshape(b.load(2), {1, groups, outputs / groups, 1});

  const int64_t image_bytes = count_of({groups, depth, window.results, dtype_bytes(x.dtype())});
  each_tile(batches, tile_of(batches, image_bytes), [&](int64_t start, int64_t n) {
    const Value padded = pad(b, slice(x, 0, start, n), window, x.dtype(), 0);
    // The order of dimensions that gives [n,C,kernel..,positions..].
    std::vector<uint32_t> order = {0, 1};
    for (int64_t d = 0; d < rank; ++d) order.push_back(static_cast<uint32_t>(2 + rank + d));
    for (int64_t d = 0; d < rank; ++d) order.push_back(static_cast<uint32_t>(2 + d));
    const Value columns = b.reshape(permute(unfold(padded, window), order), {n, groups, depth, window.results});
    const Value repeated = expand(weight, {n, groups, outputs / groups, depth});
    Value result = b.matmul(repeated, columns, attributes.precision);
    if (b.has_input(2)) result = b.add(result, bias);
    result = activate(b, attributes.activation, result);
    const Value target = slice(y, 0, start, n);
    b.store(target, b.reshape(result, target.shape()));
  });
}

}  // namespace backplane::core::composite
