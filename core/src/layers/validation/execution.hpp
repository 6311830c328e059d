// SPDX-License-Identifier: Apache-2.0
// The layer `validation`: checks of an execution.
#pragma once

#include "layers/validation/call.hpp"

namespace backplane::core::layers {

// Everything that an execution must keep to beside its descriptor; `workspace` is what the plan needs. The buffers that it uses
// are occupied and returned. The device's mutex is held.
std::vector<CheckedBuffer*> check_execution(Call& call, const bp_execution& execution, const bp_op_desc& desc,
                                            uint64_t workspace);

}  // namespace backplane::core::layers
