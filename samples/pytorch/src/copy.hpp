// SPDX-License-Identifier: Apache-2.0
// Copies between tensors.
#pragma once

#include <ATen/ATen.h>

namespace backplane_torch {

// Copies `from` to `to` on the device. Converts the dtype and broadcasts. `to` may have any strides.
void copy_on_device(const at::Tensor& to, const at::Tensor& from);

}  // namespace backplane_torch
