// SPDX-License-Identifier: Apache-2.0
// From an eager call to the plugin: key, plan, bounds, staging, execution.
#pragma once

#include <backplane/backplane.h>

#include "plan_cache.hpp"
#include "stream.hpp"

namespace bp {

// Throws; see bph_execute.
void execute(Stream& stream, const bph_call& call);

// The entry that copies between views which core made itself (staging): COPY, or FILL of an immediate. Throws what planning does.
Ref<PlanEntry> plan_copy(Stream& stream, const bp_tensor_desc& from, const bp_tensor_desc& to);

// Throws; see bph_device_supports.
bph_support supports(Device& device, const bph_call& call);

}  // namespace bp
