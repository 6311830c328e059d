// SPDX-License-Identifier: Apache-2.0
// Queries support for a call without executing it.
#pragma once

#include <backplane/backplane.h>

#include "loading/device.hpp"

namespace backplane::core {

// Returns the support for a call, and throws the errors of bph_device_supports.
bph_support supports(Device& device, const bph_call& call);

}  // namespace backplane::core
