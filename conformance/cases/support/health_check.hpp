// SPDX-License-Identifier: Apache-2.0
// Checks that many cases make at their end.
#pragma once

#include <string_view>

#include "harness/context.hpp"

namespace backplane::conformance {

// Checks that the device still allocates, copies and, if it has u32, computes correctly.
void require_healthy(Context& context);
// Whether `text` is UTF-8 without control characters other than line breaks.
bool is_text(std::string_view text);

}  // namespace backplane::conformance
