// SPDX-License-Identifier: Apache-2.0
// Decides which devices can run the compiled kernels.
#pragma once

#include <string_view>

namespace backplane::hip {

// Returns whether a device of the architecture `device` can run kernels that were compiled for one of `architectures`,
// which are separated by commas. An architecture is gfxN, with optional features such as :xnack+. A
// device can run kernels if the names without features are equal, and the device has each feature
// of the kernels.
bool can_run(std::string_view architectures, std::string_view device);

}  // namespace backplane::hip
