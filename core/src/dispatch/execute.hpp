// SPDX-License-Identifier: Apache-2.0
// The eager path from a bph_execute call to the plugin's plan_execute.
#pragma once

#include <backplane/backplane.h>

#include "streams/stream.hpp"

namespace backplane::core {

// Executes a call, and throws the errors of bph_execute.
void execute(Stream& stream, const bph_call& call);

}  // namespace backplane::core
