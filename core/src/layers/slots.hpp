// SPDX-License-Identifier: Apache-2.0
// The plugin slots that can fail, with their names and statuses.
#pragma once

#include <backplane/base.h>

#include <cstddef>
#include <cstdint>

namespace backplane::core::layers {

enum class Slot : uint8_t {
#define BP_SLOT(owner, name, statuses) name,
#include "layers/slots.def"
#undef BP_SLOT
  count
};
inline constexpr size_t kSlotCount = static_cast<size_t>(Slot::count);

const char* slot_name(Slot slot) noexcept;
// Returns true if the slot may return `status`, because every slot may return this status, or
// because the slot's comment lists it.
bool states(Slot slot, bp_status status) noexcept;

}  // namespace backplane::core::layers
