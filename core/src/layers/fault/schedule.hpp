// SPDX-License-Identifier: Apache-2.0
// What the layer `fault` makes go wrong, as data and as text.
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
  uint64_t call = 0;         // from 1, as the layer counts the slot's calls; not of a delay
  bool onward = false;       // also every later call
  bp_status status = BP_OK;
  std::chrono::nanoseconds time{0};
};

struct FaultSchedule {
  std::vector<FaultEntry> entries;
};

// Rules with ';' between (docs/layers.md):
//   fail SLOT N[+] STATUS    call N of SLOT, or from N on every call, answers STATUS and is not passed on
//   delay SLOT TIME          each call of SLOT first sleeps; SLOT may be `work`: plan_execute and the copies
//   lose [SLOT] N            behind call N, of SLOT or of any slot, its device is lost
// Throws INVALID_ARGUMENT with the place in `text`, which `source` names, and with what is legal there.
FaultSchedule parse_faults(std::string_view text, const char* source);

}  // namespace backplane::core::layers
