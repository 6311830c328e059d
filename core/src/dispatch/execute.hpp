// SPDX-License-Identifier: Apache-2.0
// The eager path: from a call to the plugin.
#pragma once

#include <backplane/backplane.h>

#include "streams/stream.hpp"

namespace bp {

// Throws; see bph_execute.
void execute(Stream& stream, const bph_call& call);

// Throws; see bph_device_supports.
bph_support supports(Device& device, const bph_call& call);

}  // namespace bp
