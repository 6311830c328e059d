// SPDX-License-Identifier: Apache-2.0
// The schedule of the layer `fault`: its entries and their text format.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

#include "layers/slots.hpp"

namespace backplane::core::layers {

struct FaultEntry {
  enum class Kind : uint8_t { fail, delay, lose } kind;
  std::optional<Slot> slot;  // nullopt means any slot of the device
  uint64_t call = 0;         // number of the call, from 1; unused for a delay
  bool onward = false;       // the entry applies to every later call too
  bp_status status = BP_OK;
  std::chrono::nanoseconds time{0};
};

struct FaultSchedule {
  std::vector<FaultEntry> entries;
};

// Parses entries that are separated by ';' (docs/layers.md):
//   fail SLOT N[+] STATUS   call N of SLOT returns STATUS and does not reach the plugin; with a +,
//                           each later call does so too
//   delay SLOT TIME         each call of SLOT first sleeps; the SLOT `work` stands for
//                           plan_execute and all copies
//   lose [SLOT] N           the device is lost after call N of SLOT, or of all slots together
// If the text is illegal, throws an INVALID_ARGUMENT error that states `source`, the position in
// `text`, and what is legal at that position.
FaultSchedule parse_faults(std::string_view text, const char* source);

}  // namespace backplane::core::layers
