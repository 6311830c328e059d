// SPDX-License-Identifier: Apache-2.0
// Declares the slots of the layer `validation` for bp.pack.
#pragma once

#include "layers/validation/call.hpp"

namespace backplane::core::layers {

void splice_pack(CheckedPlugin& plugin);

}  // namespace backplane::core::layers
