// SPDX-License-Identifier: Apache-2.0
// The layer `validation`.
#pragma once

#include <backplane/plugin.h>

namespace backplane::core {
class Object;
}

namespace backplane::core::layers {

// Wraps `inner` so that every call is checked against rules.def. A caller's mistake returns
// INVALID_ARGUMENT and is not passed on; a plugin's defect returns INTERNAL. Both name the rule.
// Slots without a status log the rule to `host`, which must outlive the layer. `keeper` (may be
// null) owns both; it is retained while the layer logs to this host on behalf of another plugin.
// Throws bad_alloc; then `inner` is unchanged.
const bp_plugin* validation(const bp_plugin* inner, const bp_host* host, Object* keeper = nullptr);

}  // namespace backplane::core::layers
