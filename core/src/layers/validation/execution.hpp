// SPDX-License-Identifier: Apache-2.0
// The checks that the layer `validation` makes for one execution.
#pragma once

#include "layers/validation/call.hpp"

namespace backplane::core::layers {

// Checks everything in an execution except its descriptor. `workspace` is the number of bytes that
// the plan needs. Marks the used buffers as in use and returns them. The caller holds the device's
// mutex.
std::vector<CheckedBuffer*> check_execution(Call& call, const bp_execution& execution, const bp_op_desc& desc,
                                            uint64_t workspace);

}  // namespace backplane::core::layers
