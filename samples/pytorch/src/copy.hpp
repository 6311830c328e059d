// SPDX-License-Identifier: Apache-2.0
// Copies between tensors.
#pragma once

#include <ATen/ATen.h>

namespace backplane_torch {

// Copies on the device, with conversion and broadcasting, to any strides.
void copy_on_device(const at::Tensor& to, const at::Tensor& from);

}  // namespace backplane_torch
