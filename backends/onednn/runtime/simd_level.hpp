// SPDX-License-Identifier: Apache-2.0
// The instruction set of the vector kernels. By default, Highway chooses the best instruction set of
// the processor. A variable restricts the choice, so that tests cover every instruction set.
#pragma once

#include <backplane/kit/error.hpp>

namespace backplane::onednn {

inline constexpr const char* kSimdVariable = "BACKPLANE_ONEDNN_SIMD";

// Restricts Highway to the instruction set that the variable names, for all users of Highway in the
// process. Does nothing if the variable is unset, empty or refused. Must run before the plugin selects
// kernels.
void restrict_simd();

// Returns UNAVAILABLE with the reason if the variable names no instruction set of this processor.
kit::Status check_simd();

}  // namespace backplane::onednn
