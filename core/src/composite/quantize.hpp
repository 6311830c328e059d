// SPDX-License-Identifier: Apache-2.0
// Unpacks 4-bit values. Each byte contains two values, the first in the low half.
#pragma once

#include "composite/families.hpp"

namespace backplane::core::composite {

// Unpacks rows of `extent` 4-bit values to u8.
Value unpacked(Builder& b, const Value& packed, int64_t extent);

}  // namespace backplane::core::composite
