// SPDX-License-Identifier: Apache-2.0
// Access to single elements of dense views of f32, f16 and bf16, for operands with few elements.
#pragma once

#include <backplane/kit/call.hpp>
#include <backplane/kit/types.hpp>

namespace backplane::onednn {

// Returns element `i` of a dense view of a float dtype.
inline double element(const kit::View& view, int64_t i) {
  switch (view.dtype) {
    case BP_F32:
      return static_cast<double>(view.as<float>()[i]);
    case BP_F16:
      return static_cast<double>(static_cast<float>(view.as<kit::f16>()[i]));
    default:
      return static_cast<double>(static_cast<float>(view.as<kit::bf16>()[i]));
  }
}
// Returns element `i` of `view`, or `otherwise` if `view` is null (an absent operand).
inline double element_or(const kit::View* view, int64_t i, double otherwise) {
  return view == nullptr ? otherwise : element(*view, i);
}
// Stores element `i` of `view`. Does nothing if `view` is null (an absent operand).
inline void put(const kit::View* view, int64_t i, double value) {
  if (view == nullptr) return;
  switch (view->dtype) {
    case BP_F32:
      view->as<float>()[i] = static_cast<float>(value);
      return;
    case BP_F16:
      view->as<kit::f16>()[i] = kit::f16::from(value);
      return;
    default:
      view->as<kit::bf16>()[i] = kit::bf16::from(value);
  }
}

}  // namespace backplane::onednn
