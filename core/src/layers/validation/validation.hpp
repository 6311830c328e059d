// SPDX-License-Identifier: Apache-2.0
// The layer `validation`.
#pragma once

#include <backplane/plugin.h>

namespace backplane::core {
class Object;
}

namespace backplane::core::layers {

// `inner` with every call checked: rules.def. A caller's fault is answered INVALID_ARGUMENT and not passed on, a plugin's fault
// INTERNAL; both name the rule. What cannot answer is logged. `host` gets the lines and outlives the layer: `keeper`, if it is not null, is
// what ends both, and is kept while a line is told that came from another of the layer's plugins. Throws bad_alloc; then `inner` is as
// it was.
const bp_plugin* validation(const bp_plugin* inner, const bp_host* host, Object* keeper = nullptr);

}  // namespace backplane::core::layers
