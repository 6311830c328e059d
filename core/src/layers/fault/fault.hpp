// SPDX-License-Identifier: Apache-2.0
// Declares the layer `fault`, which injects failures.
#pragma once

#include <backplane/plugin.h>

#include <memory>

namespace backplane::core::layers {

struct FaultSchedule;

// Wraps `inner` in a layer that injects the faults of `schedule`. Throws bad_alloc.
const bp_plugin* fault(const bp_plugin* inner, const bp_host* host, std::shared_ptr<const FaultSchedule> schedule);

}  // namespace backplane::core::layers
