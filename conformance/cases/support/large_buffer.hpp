// SPDX-License-Identifier: Apache-2.0
// Creates buffers of many gibibytes, of which a case uses only a few pages.
#pragma once

#include "harness/context.hpp"

namespace backplane::conformance {

// Returns a buffer of DEVICE memory. Ends the case as not claimed if the device has too little
// memory.
Buffer make_large(Context& context, uint64_t bytes);

}  // namespace backplane::conformance
