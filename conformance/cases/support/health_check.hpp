// SPDX-License-Identifier: Apache-2.0
// Checks that many cases share.
#pragma once

#include <string_view>

#include "harness/context.hpp"

namespace backplane::conformance {

// Checks that the device still allocates and copies memory. If the device supports u32, also checks
// an addition.
void require_healthy(Context& context);
// Returns whether `text` is UTF-8 without control characters, except line feeds and tabs.
bool is_text(std::string_view text);

}  // namespace backplane::conformance
