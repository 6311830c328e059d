// SPDX-License-Identifier: Apache-2.0
// Finds and enables the uses that a device can make of another device's objects (bp.peer). The bits BP_PEER_* denote
// these uses.
#pragma once

#include "loading/interface_slot.hpp"

namespace backplane::core {

// A device's bp.peer slots, and what they can do with one peer, as a mask of BP_PEER_*.
// All slots are null if the mask is 0.
struct PeerAccess {
  bp_peer_api slots = {};
  uint32_t uses = 0;

  bool has(uint32_t use) const noexcept { return (uses & use) == use; }
};

// Returns the ways in which `device` can use the objects of `peer`, which is another device. The mask
// is 0 if the devices are of different plugins, or of plugins that different registries loaded.
PeerAccess peer_access(const Device& device, const Device& peer);
// Enables the uses of `access`, which peer_access returned for the same devices.
void enable_peer(const PeerAccess& access, const Device& device, const Device& peer);

}  // namespace backplane::core
