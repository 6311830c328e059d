// SPDX-License-Identifier: Apache-2.0
// Lowers conv_bwd_weight, and lowers conv_transpose and conv_bwd_input, which are the same computation.
#include "composite/window.hpp"

namespace backplane::core::composite {

namespace {

// Selects the columns of kernel tap `tap`: converts [n,C,kernel..,positions..] to
// [n,C,positions..].
Value tap_of(Value columns, const Window& window, int64_t tap) {
  for (uint32_t d = window.rank(); d-- > 0;) {
    columns = slice(columns, 2 + d, tap % window.kernel[d], 1);
    tap /= window.kernel[d];
  }
  return *try_reshape(columns, joined({columns.extent(0), columns.extent(1)}, window.positions));
}

// Returns a view of the elements of the padded image that kernel tap `tap` reads.
Value read_by_tap(Value padded, const Window& window, int64_t tap) {
  for (uint32_t d = window.rank(); d-- > 0;) {
    const int64_t at = tap % window.kernel[d];
    padded = slice(padded, 2 + d, at * window.dilation[d], window.positions[d], window.stride[d]);
    tap /= window.kernel[d];
  }
  return padded;
}

// Scatters each element of x over its window (col2im): multiplies the weight by x to get columns,
// then adds the columns to the output, one kernel tap at a time.
void spread(Builder& b) {
  const auto& attributes = b.attributes<bp_conv_attributes>();
  const Value x = b.input(0), w = b.input(1), y = b.output(0);
  const Window window(attributes, spatial(y), spatial(w));
  const int64_t batches = x.extent(0), from = x.extent(1), to = y.extent(1), groups = attributes.groups;
  const int64_t depth = to / groups * window.taps;
  const Value weight = insert(transpose(b.reshape(w, {groups, from / groups, depth})), 0);
  Value bias;
  if (b.has_input(2)) bias = b.reshape(b.load(2), joined({1, to}, Extents(window.rank(), 1)));

  const int64_t image_bytes = count_of({groups, depth, window.results, dtype_bytes(b.number())});
  each_tile(batches, tile_of(batches, image_bytes), [&](int64_t start, int64_t n) {
    const Value image = b.reshape(slice(x, 0, start, n), {n, groups, from / groups, window.results});
    const Value columns = b.matmul(expand(weight, {n, groups, depth, from / groups}), image, attributes.precision);
    const Value taps = *try_reshape(columns, joined({n, to}, window.kernel, window.positions));
    const Value sums = b.temporary(b.number(), joined({n, to}, window.padded));
    b.fill(sums, 0);
    for (int64_t tap = 0; tap < window.taps; ++tap)
      b.accumulate(read_by_tap(sums, window, tap), tap_of(taps, window, tap));
    Value result = inside(sums, window);
    if (b.has_input(2)) result = b.add(result, bias);
    b.store(slice(y, 0, start, n), activate(b, attributes.activation, result));
  });
}

}  // namespace

void conv_transpose(Builder& b) { spread(b); }
void conv_bwd_input(Builder& b) { spread(b); }

// Multiplies dy [O, N * positions] by the columns [N * positions, C * kernel]. The batch is part of
// the reduction, so the results of the tiles are added.
void conv_bwd_weight(Builder& b) {
  const auto& attributes = b.attributes<bp_conv_attributes>();
  const Value x = b.input(0), dy = b.input(1), dw = b.output(0);
  const Window window(attributes, spatial(x), spatial(dw));
  const int64_t batches = x.extent(0), channels = x.extent(1), outputs = dy.extent(1), groups = attributes.groups;
  const uint32_t rank = window.rank();
  // The orders of dimensions that give [C,kernel..,n,positions..] and [O,n,positions..].
  std::vector<uint32_t> order = {1}, dy_order = {1, 0};
  for (uint32_t d = 0; d < rank; ++d) order.push_back(2 + rank + d);
  order.push_back(0);
  for (uint32_t d = 0; d < rank; ++d) order.push_back(2 + d), dy_order.push_back(2 + d);

  const int64_t depth = channels / groups * window.taps;
  const int64_t image_bytes = count_of({groups, depth, window.results, dtype_bytes(x.dtype())});
  std::optional<Value> sum;
  each_tile(batches, tile_of(batches, image_bytes), [&](int64_t start, int64_t n) {
    const Value padded = pad(b, slice(x, 0, start, n), window, x.dtype(), 0);
    const Value columns = b.reshape(permute(unfold(padded, window), order), {groups, depth, n * window.results});
    const Value gradient =
        b.reshape(permute(slice(dy, 0, start, n), dy_order), {groups, outputs / groups, n * window.results});
    const Value part = b.matmul(gradient, transpose(columns), attributes.precision);
    sum = sum ? b.add(*sum, part) : part;
  });
  b.store(dw, b.reshape(*sum, dw.shape()));
}

}  // namespace backplane::core::composite
