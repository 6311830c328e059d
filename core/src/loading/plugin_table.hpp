// SPDX-License-Identifier: Apache-2.0
// Core's copy of a plugin's table. Every slot is filled, so callers need no null checks.
#pragma once

#include <backplane/plugin.h>
#include <backplane/rules/tables.hpp>

namespace backplane::core {

// Returns the name of the first required slot that is null in the known part of a table, or null if
// no slot is missing.
const char* missing_slot(const bp_plugin& known) noexcept;
const char* missing_slot(const bp_device_api& known) noexcept;

// Returns a copy of the known part of a table, with a stub in place of each missing optional slot.
// The stubs return UNSUPPORTED.
bp_device_api complete_table(const bp_device_api& known) noexcept;

}  // namespace backplane::core
