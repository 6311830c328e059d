// SPDX-License-Identifier: Apache-2.0
// The direct convolution of the plugin, for which conv.cpp prepares plans.
#pragma once

#include <backplane/kit/kernels.hpp>

namespace backplane::onednn {

// Returns whether the direct convolution is faster than oneDNN for a valid call of conv on f32. `needs` states
// the operands that core stages.
bool prefers_direct(const kit::CheckedDesc& checked, const kit::PlanNeeds& needs);

// Prepare the execution, and the packing of the weights, of a call for which prefers_direct() is true.
void prepare_direct(const kit::CheckedDesc& checked, kit::Prepared& prepared);
void pack_direct(const kit::CheckedDesc& checked, kit::PreparedPack& prepared);

}  // namespace backplane::onednn
