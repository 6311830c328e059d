// SPDX-License-Identifier: Apache-2.0
// Lowers max_pool and avg_pool to reductions of a view whose windows overlap.
#include <cmath>

#include "base/error.hpp"
#include "composite/window.hpp"

namespace backplane::core::composite {

namespace {

Window window_of(Builder& b) {
  const auto& attributes = b.attributes<bp_pool_attributes>();
  const Extents kernel(attributes.kernel, attributes.kernel + attributes.spatial_rank);
  return {attributes, spatial(b.input(0)), kernel};
}

// Returns a mask of the kernel's dimensions in an unfolded image.
uint32_t kernel_axes(const Window& window) { return ((1u << window.rank()) - 1) << (2 + window.rank()); }

// Unfolds an image that contains the index of each element within its plane. Padding has the index
// INT32_MAX.
Value indices_of(Builder& b, const Window& window) {
  if (count_of(window.image) > INT32_MAX) {
    throw Error(BP_UNSUPPORTED,
                "max_pool: its decomposition has i32 indices, and a plane of {} elements wants more; divide it",
                count_of(window.image))
        .with_op(BP_OP_MAX_POOL);
  }
  const Value plane = b.iota(BP_I32, {count_of(window.image)}, 0, 0);
  const Value image = *try_reshape(plane, joined({1, 1}, window.image));
  return unfold(pad(b, image, window, BP_I32, INT32_MAX), window);
}

// Returns the smallest index at which a window has its maximum or a NaN.
Value index_of(Builder& b, const Value& taps, const Value& maximum, const Value& indices, uint32_t axes) {
  const Value is_nan = b.compare(BP_COMPARE_NE, taps, taps);
  const Value found = b.binary(BP_OP_OR, b.compare(BP_COMPARE_EQ, taps, maximum), is_nan);
  return b.reduce(BP_OP_REDUCE_MIN, b.select(found, indices, b.integer(BP_I32, INT32_MAX)), axes);
}

// Returns the number of image elements in each window. The count of an empty window is 1, so that
// its mean is 0 / 1 = 0.
Value counts_of(Builder& b, const Window& window) {
  const Value ones = b.temporary(b.number(), joined({1, 1}, window.padded));
  b.fill(ones, 0);
  b.fill(inside(ones, window), 1);
  return b.binary(BP_OP_MAX, b.sum(unfold(ones, window), kernel_axes(window)), b.constant(1));
}

}  // namespace

void max_pool(Builder& b) {
  const Window window = window_of(b);
  const uint32_t axes = kernel_axes(window);
  const Value x = b.input(0), y = b.output(0);
  const bool indexed = b.has_output(1);
  Value indices;
  if (indexed) indices = indices_of(b, window);
  const int64_t image_bytes = indexed ? count_of({x.extent(1), window.results, window.taps, 4}) : 0;
  each_tile(x.extent(0), tile_of(x.extent(0), image_bytes), [&](int64_t start, int64_t n) {
    const Value taps = unfold(pad(b, slice(x, 0, start, n), window, b.number(), -HUGE_VAL), window);
    const Value maximum = b.reduce(BP_OP_REDUCE_MAX, taps, axes);
    const Value target = slice(y, 0, start, n);
    const Value kept = b.store(target, b.reshape(maximum, target.shape()));
    if (!indexed) return;
    const Value index = index_of(b, taps, *try_reshape(kept, maximum.shape()), indices, axes);
    b.store(slice(b.output(1), 0, start, n), b.reshape(index, target.shape()));
  });
}

void avg_pool(Builder& b) {
  const Window window = window_of(b);
  const bool all = b.attributes<bp_pool_attributes>().count_padding != 0 || window.padded == window.image;
  const Value taps = unfold(pad(b, b.input(0), window, b.number(), 0), window);
  const Value divisor = all ? b.constant(static_cast<double>(window.taps)) : counts_of(b, window);
  const Value mean = b.div(b.sum(taps, kernel_axes(window)), divisor);
  b.store(b.output(0), b.reshape(mean, b.output(0).shape()));
}

}  // namespace backplane::core::composite
