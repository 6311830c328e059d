// SPDX-License-Identifier: Apache-2.0
// Declares the slots of the layer `validation` for bp.graph.
#pragma once

#include "layers/validation/checked.hpp"

namespace backplane::core::layers {

void splice_graph(CheckedPlugin& plugin);

}  // namespace backplane::core::layers
