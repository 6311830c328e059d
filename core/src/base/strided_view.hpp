// SPDX-License-Identifier: Apache-2.0
// Functions for strided views: arithmetic from the ABI's rules, and overlap tests.
#pragma once

#include <algorithm>
#include <backplane/rules/plan_class.hpp>
#include <bit>
#include <cstdint>

namespace backplane::core {

using rules::element_count;
using rules::Extent;
using rules::extent_of;
using rules::is_dense;
using rules::make_dense;
using rules::same_elements;
using rules::view_class;

// Returns log2 of the alignment of core's temporaries on a device whose buffers are aligned to
// `alignment`. tensor.h calls a view with this alignment "fully aligned".
inline uint8_t full_alignment_log2_of(uint64_t alignment) noexcept {
  return static_cast<uint8_t>(std::min(std::countr_zero(alignment), BP_MAX_ALIGNMENT_LOG2));
}

// Returns the view of a staged copy of `view`. The copy is dense, has the given alignment, is not
// an immediate and has no alias.
bp_tensor_desc staged_like(const bp_tensor_desc& view, uint8_t alignment_log2) noexcept;

enum class Overlap { no, yes, unknown };  // `unknown`: the search reached its limit of steps, or an integer overflowed

// Returns whether two elements of one view share an address.
Overlap self_overlap(const bp_tensor_desc& view) noexcept;
// Returns whether the views share a byte. Element 0 of `b` is `b_minus_a` bytes after element 0 of
// `a`.
Overlap views_overlap(const bp_tensor_desc& a, uint32_t a_bytes, const bp_tensor_desc& b, uint32_t b_bytes,
                      int64_t b_minus_a) noexcept;

}  // namespace backplane::core
