// SPDX-License-Identifier: Apache-2.0
// Buffers of many gibibytes, of which a case touches a few pages.
#pragma once

#include "harness/context.hpp"

namespace backplane::conformance {

// A buffer of DEVICE memory. Ends the case as not claimed if the device has too little memory.
Buffer make_large(Context& context, uint64_t bytes);

}  // namespace backplane::conformance
