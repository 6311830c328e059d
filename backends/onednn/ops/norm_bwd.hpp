// SPDX-License-Identifier: Apache-2.0
// The part of norm_bwd for batch_norm and group_norm.
#pragma once

#include <backplane/kit/kernels.hpp>

namespace backplane::onednn {

// Sets the kernel of norm_bwd for batch_norm or group_norm in `prepared`.
void prepare_norm_bwd_planes(const kit::CheckedDesc& checked, kit::Prepared& prepared);

}  // namespace backplane::onednn
