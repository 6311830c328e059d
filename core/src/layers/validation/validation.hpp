// SPDX-License-Identifier: Apache-2.0
// Declares the layer `validation`, which checks calls against the rules of the ABI.
#pragma once

#include <backplane/plugin.h>

namespace backplane::core {
class Object;
}

namespace backplane::core::layers {

// Wraps `inner` in a layer that checks every call against rules.def. If the caller breaks a rule,
// the call returns INVALID_ARGUMENT without reaching the plugin. If the plugin breaks a rule, the
// call returns INTERNAL. Both errors name the rule.
//
// For a slot that returns no status, the layer logs the rule to `host`, which must outlive the layer.
// `keeper` (may be null) owns the plugin and its host, and the layer retains the keeper while it logs to `host`.
// Throws bad_alloc, and leaves `inner` unchanged in that case.
const bp_plugin* validation(const bp_plugin* inner, const bp_host* host, Object* keeper = nullptr);

}  // namespace backplane::core::layers
