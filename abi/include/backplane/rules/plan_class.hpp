// SPDX-License-Identifier: Apache-2.0
// The class of a view: properties that are the same in all executions of an any-size plan
// (BP_PLAN_ANY_SIZE in ops.h).
#pragma once

#include <backplane/ops.h>

#include <backplane/rules/views.hpp>

namespace backplane::rules {

// Returns whether the view is near (BP_NEAR_LIMIT in ops.h). Ignores the distances between elements
// of a packed operand, because they depend on the plugin's layout.
constexpr bool is_near(const bp_tensor_desc& view) noexcept {
  constexpr uint64_t limit = BP_NEAR_LIMIT;
  bool empty = false;
  for (uint32_t d = 0; d < view.rank; ++d) {
    if (static_cast<uint64_t>(view.shape[d]) >= limit) return false;
    empty |= view.shape[d] == 0;
  }
  if (empty) return true;
  uint64_t count = 1, reach = 0;  // both are below 2^31 before each iteration, so no product wraps
  for (uint32_t d = 0; d < view.rank; ++d) {
    const auto extent = static_cast<uint64_t>(view.shape[d]);
    if (extent == 1) continue;
    count *= extent;
    if (count >= limit) return false;
    if (is_packed(view)) continue;
    const uint64_t stride =
        view.strides[d] < 0 ? -static_cast<uint64_t>(view.strides[d]) : static_cast<uint64_t>(view.strides[d]);
    if (stride >= limit) return false;
    reach += (extent - 1) * stride;
    if (reach >= limit) return false;
  }
  return true;
}

// Returns four bits for a dimension. The upper two are the class of the extent (0, 1, more). The
// lower two are the class of the stride (0, 1, more, negative), or 0 if the extent is 0 or 1.
constexpr uint32_t dim_class(int64_t extent, int64_t stride) noexcept {
  if (extent <= 1) return static_cast<uint32_t>(extent) << 2;
  return 2u << 2 | (stride < 0 ? 3u : stride > 1 ? 2u : static_cast<uint32_t>(stride));
}

// Parts of a view's class. The result of dim_class for dimension d starts at bit 4 * d. The flags
// dense and far follow.
inline constexpr uint64_t kClassStrides = 0x33333333;
inline constexpr uint64_t kClassDense = uint64_t{1} << 32;
inline constexpr uint64_t kClassFar = uint64_t{1} << 33;

constexpr uint64_t view_class(const bp_tensor_desc& view) noexcept {
  uint64_t classes = (is_dense(view) ? kClassDense : 0) | (is_near(view) ? 0 : kClassFar);
  for (uint32_t d = 0; d < view.rank; ++d) {
    classes |= static_cast<uint64_t>(dim_class(view.shape[d], is_packed(view) ? 0 : view.strides[d])) << 4 * d;
  }
  return classes;
}

// True if an any-size plan for `a` may serve the shape and strides of `b`. The shape and the
// strides of a packed operand are fixed.
inline bool same_class(const bp_tensor_desc& a, const bp_tensor_desc& b) noexcept {
  if (is_packed(a) || is_packed(b)) return is_packed(a) && is_packed(b) && same_elements(a, b);
  return a.rank == b.rank && view_class(a) == view_class(b);
}

}  // namespace backplane::rules
