// SPDX-License-Identifier: Apache-2.0
// Arithmetic of views: extents in bytes, denseness, overlap.
#pragma once

#include <backplane/tensor.h>

#include <cstdint>

namespace bp {

// Bytes that a view touches, relative to its element 0: [lo, hi), lo <= 0. Both 0 for a view of no elements.
struct Extent {
  int64_t lo;
  int64_t hi;
};

// Number of elements, or -1 if it does not fit 63 bits.
int64_t element_count(const bp_tensor_desc& view) noexcept;
// False if an address does not fit 63 bits.
bool extent_of(const bp_tensor_desc& view, uint32_t dtype_bytes, Extent* out) noexcept;
// Whether both views have the same dtype, shape and strides.
bool same_elements(const bp_tensor_desc& a, const bp_tensor_desc& b) noexcept;
// Packed row-major; the strides of dimensions of extent 0 or 1 do not count, and a view of no elements is dense.
bool is_dense(const bp_tensor_desc& view) noexcept;
void make_dense(bp_tensor_desc& view) noexcept;
// `view` once core has copied it to a temporary: dense, aligned as much as a view may state, no immediate, aliasing nothing.
bp_tensor_desc staged_like(const bp_tensor_desc& view) noexcept;

// What a plan of any size keeps of a view beside its dtype, rank and flags: whether it is dense, and per dimension the class of
// the extent (0, 1, more) and of the stride (0, 1, more, negative; of an extent up to 1 it counts as 0).
uint64_t view_class(const bp_tensor_desc& view) noexcept;

enum class Answer { no, yes, unknown };  // unknown: not decided within the work allowed

// Whether two elements of one view share an address.
Answer self_overlap(const bp_tensor_desc& view) noexcept;
// Whether the views share a byte, `b` starting `b_minus_a` bytes after `a`.
Answer views_overlap(const bp_tensor_desc& a, uint32_t a_bytes, const bp_tensor_desc& b, uint32_t b_bytes,
                     int64_t b_minus_a) noexcept;

}  // namespace bp
