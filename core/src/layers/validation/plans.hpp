// SPDX-License-Identifier: Apache-2.0
// The layer `validation`: the slots for plans.
#pragma once

#include "layers/validation/checked.hpp"

namespace backplane::core::layers {

void splice_plans(CheckedPlugin& plugin);

}  // namespace backplane::core::layers
