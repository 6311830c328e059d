// SPDX-License-Identifier: Apache-2.0
#include "loading/peer.hpp"

#include "loading/plugin_call.hpp"

namespace backplane::core {

PeerAccess peer_access(const Device& device, const Device& peer) {
  PeerAccess access;
  // The plugin cannot interpret a device handle of another instance, or of an instance with other
  // layers.
  if (device.plugin.get() != peer.plugin.get()) return access;
  const auto slots = interface_of<bp_peer_api>(device);
  if (slots.peer_query == nullptr || slots.peer_enable == nullptr) return access;
  bp_error error = fresh_error();
  uint32_t uses = 0;
  check(device, "peer_query", slots.peer_query(device.handle, peer.handle, &uses, &error), error);
  if (slots.peer_copy == nullptr) uses &= ~BP_PEER_COPY;
  if (slots.peer_map == nullptr) uses &= ~BP_PEER_OPERAND;
  if (slots.peer_wait_event == nullptr) uses &= ~BP_PEER_WAIT;
  if (uses != 0) access = {slots, uses};
  return access;
}

void enable_peer(const PeerAccess& access, const Device& device, const Device& peer) {
  bp_error error = fresh_error();
  check(device, "peer_enable", access.slots.peer_enable(device.handle, peer.handle, &error), error);
}

}  // namespace backplane::core
