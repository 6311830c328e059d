// SPDX-License-Identifier: Apache-2.0
// The layer `trace`.
#pragma once

#include <backplane/plugin.h>

namespace backplane::core::layers {

class TraceFile;

// Wraps `inner` so that every call of its devices is written to `file`, which lives as long as the
// process. Throws bad_alloc.
const bp_plugin* trace(const bp_plugin* inner, const bp_host* host, TraceFile& file);

}  // namespace backplane::core::layers
