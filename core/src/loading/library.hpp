// SPDX-License-Identifier: Apache-2.0
// Opens shared libraries. The libraries stay mapped until the process ends, because vendor runtimes
// leave threads, exit handlers and callbacks behind.
#pragma once

#include <backplane/plugin.h>

#include <string>

namespace backplane::core {

// Opens `path` with RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE and returns its bp_plugin_query. Throws
// Refusal "library.open" or "query.symbol".
bp_plugin_query_fn open_library(const std::string& path);

}  // namespace backplane::core
