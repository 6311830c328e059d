// SPDX-License-Identifier: Apache-2.0
// Checks that many cases end with.
#pragma once

#include <string_view>

#include "harness/context.hpp"

namespace backplane::conformance {

// The device still allocates and copies rightly, and computes if it has u32: what a refusal must not have broken.
void require_healthy(Context& context);
// `text` is UTF-8 without control characters but line breaks.
bool is_text(std::string_view text);

}  // namespace backplane::conformance
