// SPDX-License-Identifier: Apache-2.0
// The devices on which compiled kernels run.
#pragma once

#include <string_view>

namespace backplane::cuda {

// Returns whether a device of the compute capability `major`.`minor` can run kernels that were compiled for one of
// `architectures`, which are separated by commas. sm_XY is machine code, which runs on devices with the same major and
// at least the same minor compute capability. compute_XY is PTX, which a driver compiles for devices with compute
// capability X.Y or later.
bool can_run(std::string_view architectures, int major, int minor);

}  // namespace backplane::cuda
