// SPDX-License-Identifier: Apache-2.0
// The eager path: from a call to the plugin.
#pragma once

#include <backplane/backplane.h>

#include "streams/stream.hpp"

namespace backplane::core {

// Throws; see bph_execute.
void execute(Stream& stream, const bph_call& call);

}  // namespace backplane::core
