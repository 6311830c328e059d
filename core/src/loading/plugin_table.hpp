// SPDX-License-Identifier: Apache-2.0
// Core's own copy of a plugin's table: complete, so that nobody tests for null, and wrapped by layers.
#pragma once

#include <backplane/plugin.h>
#include <backplane/rules/tables.hpp>

namespace backplane::core {

// The first required slot that the known part of a table lacks, null if it has all.
const char* missing_slot(const bp_plugin& known) noexcept;
const char* missing_slot(const bp_device_api& known) noexcept;

// A copy of the known part of a table, with a stub in each empty optional slot; the stub returns UNSUPPORTED.
bp_device_api complete_table(const bp_device_api& known) noexcept;

}  // namespace backplane::core
