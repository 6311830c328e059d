// SPDX-License-Identifier: Apache-2.0
// Access to a call's operands and scratch memory.
#pragma once

#include <backplane/kit/call.hpp>

namespace backplane::onednn {

// Returns operand `i`, or null if the caller omitted it.
inline const kit::View* optional_operand(std::span<const kit::View> operands, std::size_t i) {
  return i < operands.size() && operands[i].dtype != 0 ? &operands[i] : nullptr;
}

// Returns scratch memory for `count` floats. Earlier pointers into the scratch memory become
// invalid.
inline float* scratch_floats(kit::Scratch& scratch, int64_t count) {
  return reinterpret_cast<float*>(scratch.get(static_cast<std::size_t>(count) * sizeof(float)));
}

}  // namespace backplane::onednn
