// SPDX-License-Identifier: Apache-2.0
// Formats a shape as "[2,3,4]" into fixed storage, for messages.
#pragma once

#include <backplane/tensor.h>
#include <fmt/format.h>

namespace backplane::core {

struct ShapeText {
  char text[BP_MAX_RANK * 21 + 3];
  explicit ShapeText(const bp_tensor_desc& view, const int64_t* values) {
    char* at = text;
    *at++ = '[';
    for (uint32_t d = 0; d < view.rank && d < BP_MAX_RANK; ++d)
      at = fmt::format_to(at, "{}{}", d == 0 ? "" : ",", values[d]);
    *at++ = ']';
    *at = '\0';
  }
};
inline ShapeText shape_text(const bp_tensor_desc& view) { return ShapeText(view, view.shape); }
inline ShapeText stride_text(const bp_tensor_desc& view) { return ShapeText(view, view.strides); }

}  // namespace backplane::core
