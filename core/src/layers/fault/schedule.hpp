// SPDX-License-Identifier: Apache-2.0
// The schedule of the layer `fault`, as data and as text.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

#include "layers/slots.hpp"

namespace backplane::core::layers {

struct FaultEntry {
  enum class Kind : uint8_t { fail, delay, lose } kind;
  std::optional<Slot> slot;  // none: any slot of the device
  uint64_t call = 0;         // the number of the call, from 1; unused for a delay
  bool onward = false;       // true: also every later call
  bp_status status = BP_OK;
  std::chrono::nanoseconds time{0};
};

struct FaultSchedule {
  std::vector<FaultEntry> entries;
};

// Parses entries that are separated by ';' (docs/layers.md):
//   fail SLOT N[+] STATUS    call N of SLOT (N+: also later calls) returns STATUS without the plugin
//   delay SLOT TIME          each call of SLOT sleeps first; `work` means plan_execute and all copies
//   lose [SLOT] N            call N of SLOT, or of any slot, loses the device when it ends
// Throws INVALID_ARGUMENT with `source`, the position in `text`, and what is legal there.
FaultSchedule parse_faults(std::string_view text, const char* source);

}  // namespace backplane::core::layers
