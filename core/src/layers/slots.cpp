// SPDX-License-Identifier: Apache-2.0
// The table of slots: the name of each slot, and the statuses that the slot may return.
#include "layers/slots.hpp"

namespace backplane::core::layers {

namespace {

// Status bits, with the names that slots.def uses.
enum StatusBit : uint32_t {
  NONE = 0,
  UNSUPPORTED = 1u << BP_UNSUPPORTED,
  OUT_OF_MEMORY = 1u << BP_OUT_OF_MEMORY,
  NOT_READY = 1u << BP_NOT_READY,
  TIMEOUT = 1u << BP_TIMEOUT,
  UNAVAILABLE = 1u << BP_UNAVAILABLE,
  EXECUTION_FAILED = 1u << BP_EXECUTION_FAILED
};
constexpr uint32_t kAnySlot = 1u << BP_OK | 1u << BP_INVALID_ARGUMENT | 1u << BP_DEVICE_LOST | 1u << BP_INTERNAL;

struct SlotRow {
  const char* name;
  uint32_t statuses;
};
constexpr SlotRow kSlotRows[] = {
#define BP_SLOT(owner, name, statuses) {#name, kAnySlot | (statuses)},
#include "layers/slots.def"
#undef BP_SLOT
};

}  // namespace

const char* slot_name(Slot slot) noexcept { return kSlotRows[static_cast<size_t>(slot)].name; }

bool states(Slot slot, bp_status status) noexcept {
  return status >= BP_OK && status <= BP_EXECUTION_FAILED &&
         (kSlotRows[static_cast<size_t>(slot)].statuses >> status & 1u) != 0;
}

}  // namespace backplane::core::layers
