// SPDX-License-Identifier: Apache-2.0
// Declares the slots of the layer `validation` for bp.external.
#pragma once

#include "layers/validation/checked.hpp"

namespace backplane::core::layers {

void splice_external(CheckedPlugin& plugin);

}  // namespace backplane::core::layers
