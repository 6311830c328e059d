// SPDX-License-Identifier: Apache-2.0
// Arithmetic of views: numbers of elements, byte ranges, denseness, and the range of indices.
#pragma once

#include <backplane/tensor.h>

#include <algorithm>
#include <backplane/rules/violation.hpp>
#include <cstring>

namespace backplane::rules {

// Throws UNSUPPORTED if indices are i32 and there are more than 2^31 - 1 elements.
inline void require_room(const bp_tensor_desc& index, int64_t elements) {
  if (index.dtype != BP_I32 || elements <= INT32_MAX) return;
  unsupported("indices of i32 do not reach through ", elements, " elements; ask for i64");
}

// True if the operand has a layout that the plugin defines (BP_DESC_PACKED). Its strides state the
// size and the layout.
constexpr bool is_packed(const bp_tensor_desc& view) noexcept { return (view.flags & BP_DESC_PACKED) != 0; }

// Formats a shape like "[2,3]". If the rank is illegal, only the first BP_MAX_RANK dimensions are
// used.
inline std::string shape_text(const bp_tensor_desc& view) {
  return text('[', list_text({view.shape, std::min<std::size_t>(view.rank, BP_MAX_RANK)}), ']');
}
inline std::string stride_text(const bp_tensor_desc& view) {
  return text('[', list_text({view.strides, std::min<std::size_t>(view.rank, BP_MAX_RANK)}), ']');
}

// The range [lo, hi) of a view's bytes, relative to its element 0, with lo <= 0. Both are 0 if the
// view has no elements.
struct Extent {
  int64_t lo;
  int64_t hi;
};

// Returns the number of elements, or -1 if that number does not fit into 63 bits.
constexpr int64_t element_count(const bp_tensor_desc& view) noexcept {
  int64_t count = 1;
  bool overflow = false;
  for (uint32_t d = 0; d < view.rank; ++d) {
    if (view.shape[d] == 0) return 0;
    overflow |= __builtin_mul_overflow(count, view.shape[d], &count);
  }
  return overflow ? -1 : count;
}

// Writes the view's range of bytes to *out. Returns false if a byte offset within the view does not
// fit into 63 bits. The size of a packed operand is its strides[0].
constexpr bool extent_of(const bp_tensor_desc& view, uint32_t dtype_bytes, Extent* out) noexcept {
  *out = {0, 0};
  for (uint32_t d = 0; d < view.rank; ++d) {
    if (view.shape[d] == 0) return true;
  }
  if (is_packed(view)) {
    *out = {0, view.strides[0]};
    return true;
  }
  int64_t lo = 0;
  int64_t hi = dtype_bytes;
  for (uint32_t d = 0; d < view.rank; ++d) {
    int64_t span = 0;
    if (__builtin_mul_overflow(view.shape[d] - 1, view.strides[d], &span) ||
        __builtin_mul_overflow(span, static_cast<int64_t>(dtype_bytes), &span) ||
        __builtin_add_overflow(span < 0 ? lo : hi, span, span < 0 ? &lo : &hi)) {
      return false;
    }
  }
  *out = {lo, hi};
  return true;
}

// True if both views have the same dtype, shape and strides.
inline bool same_elements(const bp_tensor_desc& a, const bp_tensor_desc& b) noexcept {
  return a.dtype == b.dtype && a.rank == b.rank && std::memcmp(a.shape, b.shape, sizeof(a.shape)) == 0 &&
         std::memcmp(a.strides, b.strides, sizeof(a.strides)) == 0;
}

// Returns whether the view is contiguous in row-major order. Ignores the strides of dimensions of
// extent 0 or 1. A view without elements is dense. A packed operand is not dense.
constexpr bool is_dense(const bp_tensor_desc& view) noexcept {
  // `expected` is unsigned, because the product may wrap if an earlier extent is 0. The product
  // then does not matter, because the view has no elements.
  uint64_t expected = 1;
  bool dense = !is_packed(view);
  for (uint32_t d = view.rank; d-- > 0;) {
    if (view.shape[d] == 0) return true;
    if (view.shape[d] == 1) continue;
    dense &= static_cast<uint64_t>(view.strides[d]) == expected;
    expected *= static_cast<uint64_t>(view.shape[d]);
  }
  return dense;
}

constexpr void make_dense(bp_tensor_desc& view) noexcept {
  uint64_t stride = 1;  // unsigned, because the product may wrap, as in is_dense
  for (uint32_t d = view.rank; d-- > 0;) {
    view.strides[d] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(std::max<int64_t>(view.shape[d], 1));
  }
}

constexpr bool same_shape(const bp_tensor_desc& a, const bp_tensor_desc& b) noexcept {
  return a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape);
}

}  // namespace backplane::rules
