// SPDX-License-Identifier: Apache-2.0
// Values of a program under construction, and views of these values. A view function changes only metadata
// and copies no data.
#pragma once

#include <backplane/ops.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

namespace backplane::core::composite {

using Extents = std::vector<int64_t>;

// A view of an operand, a temporary, a constant or a scalar.
struct Value {
  uint32_t storage = 0;  // index of the Storage in the builder
  int64_t offset = 0;    // byte offset of element 0
  bp_tensor_desc view = {};

  uint32_t dtype() const { return view.dtype; }
  uint32_t rank() const { return view.rank; }
  int64_t extent(uint32_t d) const { return view.shape[d]; }
  bool immediate() const { return (view.flags & BP_DESC_IMMEDIATE) != 0; }
  Extents shape() const { return {view.shape, view.shape + view.rank}; }
};

// Returns the number of elements, or INT64_MAX on overflow.
int64_t count_of(const Extents& shape);
int64_t elements_of(const Value& value);
// Returns a dense view of `shape`.
bp_tensor_desc dense_view(uint32_t dtype, const Extents& shape);
bool same_view(const bp_tensor_desc& a, const bp_tensor_desc& b);

// Permutes the dimensions: dimension `order[d]` becomes dimension d.
Value permute(const Value& value, std::span<const uint32_t> order);
Value transpose(const Value& value);  // swaps the last two dimensions
// Selects `extent` elements of dimension `d`, at start, start + step, and so on.
Value slice(const Value& value, uint32_t d, int64_t start, int64_t extent, int64_t step = 1);
// Broadcasts dimensions of extent 1 to `shape`, which has the same rank.
Value expand(const Value& value, const Extents& shape);
// Inserts a dimension of extent 1 before dimension `d`.
Value insert(const Value& value, uint32_t d);
// Splits dimension `d` into two dimensions. The first new dimension has the extent `outer`.
Value split(const Value& value, uint32_t d, int64_t outer);
// Views sliding windows over dimension `d`. Dimension `d` becomes the window's index, and a new
// last dimension becomes the offset within the window.
Value windows(const Value& value, uint32_t d, int64_t positions, int64_t stride, int64_t kernel, int64_t dilation);
// Reduces broadcast dimensions (stride 0) to extent 1.
Value without_repeats(const Value& value);
// Views the elements in another shape, in the same order. Returns nullopt if the strides do not
// allow it.
std::optional<Value> try_reshape(const Value& value, const Extents& shape);

}  // namespace backplane::core::composite
