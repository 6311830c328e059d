// SPDX-License-Identifier: Apache-2.0
// Two values to a byte, the first in the low half.
#pragma once

#include "composite/families.hpp"

namespace backplane::core::composite {

// The u8 values of packed rows, of `extent` each.
Value unpacked(Builder& b, const Value& packed, int64_t extent);

}  // namespace backplane::core::composite
