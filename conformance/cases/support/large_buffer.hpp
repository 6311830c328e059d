// SPDX-License-Identifier: Apache-2.0
// Buffers of many gibibytes, of which a case touches a few pages.
#pragma once

#include "harness/context.hpp"

namespace backplane::conformance {

// A buffer of DEVICE memory; ends the case as not claimed where the device has no room for so much.
Buffer make_large(Context& context, uint64_t bytes);

}  // namespace backplane::conformance
