// SPDX-License-Identifier: Apache-2.0
// Implements the view functions, which copy no data.
#include "composite/views.hpp"

#include <cstring>

#include "base/op_table.hpp"
#include "base/strided_view.hpp"

namespace backplane::core::composite {

namespace {

// Returns a copy of `value` without dimensions, to which a view function appends dimensions.
Value bare(const Value& value) {
  Value made = value;
  made.view.rank = 0;
  std::memset(made.view.shape, 0, sizeof(made.view.shape));
  std::memset(made.view.strides, 0, sizeof(made.view.strides));
  return made;
}

void append(Value& value, int64_t extent, int64_t stride) {
  value.view.shape[value.view.rank] = extent;
  value.view.strides[value.view.rank] = stride;
  ++value.view.rank;
}

}  // namespace

int64_t count_of(const Extents& shape) {
  int64_t count = 1;
  bool fits = true;
  for (const int64_t extent : shape) {
    if (extent == 0) return 0;
    fits = fits && !__builtin_mul_overflow(count, extent, &count);
  }
  return fits ? count : INT64_MAX;
}

int64_t elements_of(const Value& value) { return count_of(value.shape()); }

bp_tensor_desc dense_view(uint32_t dtype, const Extents& shape) {
  bp_tensor_desc view = {};
  view.dtype = static_cast<uint16_t>(dtype);
  for (const int64_t extent : shape) view.shape[view.rank++] = extent;
  make_dense(view);
  return view;
}

bool same_view(const bp_tensor_desc& a, const bp_tensor_desc& b) {
  constexpr uint32_t kMeaning = ~uint32_t{BP_DESC_HINTS};
  return a.dtype == b.dtype && a.rank == b.rank && (a.flags & kMeaning) == (b.flags & kMeaning) &&
         std::memcmp(a.shape, b.shape, sizeof(a.shape)) == 0 &&
         std::memcmp(a.strides, b.strides, sizeof(a.strides)) == 0;
}

Value permute(const Value& value, std::span<const uint32_t> order) {
  Value made = bare(value);
  for (const uint32_t d : order) append(made, value.view.shape[d], value.view.strides[d]);
  return made;
}

Value transpose(const Value& value) {
  Value made = value;
  const uint32_t last = value.rank() - 1;
  std::swap(made.view.shape[last], made.view.shape[last - 1]);
  std::swap(made.view.strides[last], made.view.strides[last - 1]);
  return made;
}

Value slice(const Value& value, uint32_t d, int64_t start, int64_t extent, int64_t step) {
  Value made = value;
  made.view.shape[d] = extent;
  if (extent > 0) made.offset += start * value.view.strides[d] * dtype_bytes(value.dtype());
  made.view.strides[d] *= step;
  return made;
}

Value expand(const Value& value, const Extents& shape) {
  Value made = value;
  for (uint32_t d = 0; d < value.rank(); ++d) {
    if (value.view.shape[d] == shape[d]) continue;
    made.view.shape[d] = shape[d];
    made.view.strides[d] = 0;
  }
  return made;
}

Value insert(const Value& value, uint32_t d) {
  Value made = bare(value);
  for (uint32_t i = 0; i <= value.rank(); ++i) {
    if (i == d) append(made, 1, 0);
    if (i < value.rank()) append(made, value.view.shape[i], value.view.strides[i]);
  }
  return made;
}

Value split(const Value& value, uint32_t d, int64_t outer) {
  Value made = bare(value);
  for (uint32_t i = 0; i < value.rank(); ++i) {
    const int64_t extent = value.view.shape[i], stride = value.view.strides[i];
    if (i == d) append(made, outer, stride * (extent / outer));
    append(made, i == d ? extent / outer : extent, stride);
  }
  return made;
}

Value windows(const Value& value, uint32_t d, int64_t positions, int64_t stride, int64_t kernel, int64_t dilation) {
  Value made = value;
  const int64_t step = value.view.strides[d];
  made.view.shape[d] = positions;
  made.view.strides[d] = step * stride;
  append(made, kernel, step * dilation);
  return made;
}

Value without_repeats(const Value& value) {
  Value made = value;
  for (uint32_t d = 0; d < value.rank(); ++d) {
    if (value.view.strides[d] == 0 && value.view.shape[d] > 1) made.view.shape[d] = 1;
  }
  return made;
}

std::optional<Value> try_reshape(const Value& value, const Extents& shape) {
  // Keeps the strides of `value`, even strides without effect, because core compares strides to
  // detect an in-place operation.
  if (value.shape() == shape) return value;
  Value made = bare(value);
  if (value.immediate() || count_of(shape) == 0) {
    const bp_tensor_desc dense = dense_view(value.dtype(), shape);
    for (const int64_t extent : shape) append(made, extent, 0);
    if (!value.immediate()) std::memcpy(made.view.strides, dense.strides, sizeof(dense.strides));
    return made;
  }
  // Splits the old dimensions into contiguous runs, from the last dimension backwards, and matches
  // a run of new dimensions to each old run.
  const bp_tensor_desc& from = value.view;
  int64_t strides[BP_MAX_RANK] = {};
  auto to = static_cast<int>(shape.size()) - 1;
  int at = static_cast<int>(from.rank) - 1;
  while (at >= 0) {
    if (from.shape[at] == 1) {
      --at;
      continue;
    }
    int64_t run = from.shape[at];
    const int64_t base = from.strides[at];
    int64_t outermost = base * from.shape[at];
    for (--at; at >= 0 && (from.shape[at] == 1 || from.strides[at] == outermost); --at) {
      if (from.shape[at] == 1) continue;
      run *= from.shape[at];
      outermost = from.strides[at] * from.shape[at];
    }
    int64_t stride = base;
    while (to >= 0 && run > 1) {
      const int64_t extent = shape[static_cast<size_t>(to)];
      if (run % extent != 0) return std::nullopt;
      strides[to--] = extent == 1 ? 0 : stride;
      stride *= extent;
      run /= extent;
    }
    if (run != 1) return std::nullopt;
  }
  for (size_t d = 0; d < shape.size(); ++d) append(made, shape[d], strides[d]);
  return made;
}

}  // namespace backplane::core::composite
