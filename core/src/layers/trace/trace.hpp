// SPDX-License-Identifier: Apache-2.0
// Declares the layer `trace`, which writes calls to a file.
#pragma once

#include <backplane/plugin.h>

namespace backplane::core::layers {

class TraceFile;

// Wraps `inner` in a layer that records every device call in `file`. The file must exist until the
// process ends. Throws bad_alloc.
const bp_plugin* trace(const bp_plugin* inner, const bp_host* host, TraceFile& file);

}  // namespace backplane::core::layers
