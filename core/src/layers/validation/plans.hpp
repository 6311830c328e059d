// SPDX-License-Identifier: Apache-2.0
// The layer `validation`: slots of plans.
#pragma once

#include "layers/validation/checked.hpp"

namespace bp::layers {

void splice_plans(CheckedPlugin& plugin);

}  // namespace bp::layers
