// SPDX-License-Identifier: Apache-2.0
// Creates buffers of many gibibytes, of which a case uses only a few pages.
#pragma once

#include "harness/context.hpp"

namespace backplane::conformance {

// Ends the case as not claimed if the device has too little memory.
Buffer make_large(Context& context, uint64_t bytes, uint32_t kind = BP_MEMORY_DEVICE);

}  // namespace backplane::conformance
