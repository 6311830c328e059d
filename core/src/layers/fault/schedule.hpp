// SPDX-License-Identifier: Apache-2.0
// The schedule of the layer `fault`: its fault rules and their text format.
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
  bool onward = false;       // the fault rule applies to every later call too
  bp_status status = BP_OK;
  std::chrono::nanoseconds time{0};
};

struct FaultSchedule {
  std::vector<FaultEntry> entries;
};

// Parses fault rules that are separated by ';' (docs/layers.md):
//   fail SLOT N[+] STATUS   call N to SLOT returns STATUS and does not reach the plugin (but the
//                           layer still waits for the work of a failed stream_wait, and ends the
//                           capture of a failed graph_end); a + extends this to all later calls
//   delay SLOT TIME         each call to SLOT first sleeps for TIME; the SLOT `work` means
//                           plan_execute and all copies
//   lose [SLOT] N           the device is lost after call N to SLOT, or after N calls in total
// If the text is illegal, throws an INVALID_ARGUMENT error that states `source`, the position in
// `text`, and what is legal at that position.
FaultSchedule parse_faults(std::string_view text, const char* source);

}  // namespace backplane::core::layers
