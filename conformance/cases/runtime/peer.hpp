// SPDX-License-Identifier: Apache-2.0
// Two open devices that use each other's objects through bp.peer.
#pragma once

#include "harness/context.hpp"

namespace backplane::conformance {

inline constexpr const char* kPeerExtension = "PEER";
inline constexpr uint32_t kPeerSince = BP_VERSION(0, 3);

// Returns the slots of bp.peer. Ends the case as not claimed if the device lacks the interface.
bp_peer_api peer_of(Context& context, Device& device);

// The case's device and a peer. The peer is another device of the plugin, or the same device opened
// another time if there is only one.
struct Peers {
  // Ends the case as not claimed if one of the devices lacks one of `uses`, a bit mask of BP_PEER_*. If `uses` is not
  // 0, also enables each device to use the other device's objects.
  Peers(Context& given, uint32_t uses);
  // Returns the uses that `device` reports for its peer `of` (peer_query).
  uint32_t query(Device& device, Device& of) const;
  Context& context;
  Device& own;
  Device far;
  bp_peer_api table;
};

}  // namespace backplane::conformance
