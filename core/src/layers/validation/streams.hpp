// SPDX-License-Identifier: Apache-2.0
// Declares the slots of the layer `validation` for streams and events.
#pragma once

#include "layers/validation/checked.hpp"

namespace backplane::core::layers {

void splice_streams(CheckedPlugin& plugin);

}  // namespace backplane::core::layers
