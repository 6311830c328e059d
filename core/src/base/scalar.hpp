// SPDX-License-Identifier: Apache-2.0
// Converts host numbers to the bits of a dtype, according to the cast rules of the operator table.
#pragma once

#include <cstdint>

namespace backplane::core {

uint64_t scalar_bits(uint32_t dtype, double value) noexcept;
uint64_t scalar_bits(uint32_t dtype, int64_t value) noexcept;

}  // namespace backplane::core
