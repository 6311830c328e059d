// SPDX-License-Identifier: Apache-2.0
// The instruction set of the vector kernels. By default, Highway chooses the best instruction set of the
// processor. The variable BACKPLANE_ONEDNN_SIMD restricts this choice, so that tests cover older instruction
// sets.
#pragma once

#include <backplane/kit/error.hpp>

namespace backplane::onednn {

inline constexpr const char* kSimdVariable = "BACKPLANE_ONEDNN_SIMD";

// Restricts Highway to the instruction set that the variable names, for all users of Highway in the process.
// Does nothing if the variable is unset or empty, or if check_simd() refuses its value. Call this function
// before the plugin selects kernels.
void restrict_simd();

// Returns UNAVAILABLE if the variable does not name an instruction set of this processor. The message states
// the reason.
kit::Status check_simd();

}  // namespace backplane::onednn
