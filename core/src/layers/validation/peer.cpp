// SPDX-License-Identifier: Apache-2.0
// Implements the slots of the layer `validation` for bp.peer. The ledger of a device knows only the
// work of the device's own streams, so the layer does not check pending uses of a peer's objects.
#include "layers/validation/peer.hpp"

#include <algorithm>
#include <optional>

#include "layers/validation/memory.hpp"

namespace backplane::core::layers {

namespace {

// Returns the plugin's slot. Throws UNSUPPORTED if the device lacks the slot.
template <class Function>
Function peer_slot(const Call& call, Slot slot, Function bp_peer_api::*member) {
  const Function function = call.device().owner.inner_interface<bp_peer_api>(call.inner()).*member;
  if (function == nullptr) throw Error(BP_UNSUPPORTED, "{}: the device has no {}", call.device().name, slot_name(slot));
  return function;
}

// The peer device of a call. The peer stays open during the call.
class Peer {
 public:
  Peer(const Call& call, const bp_device* peer, Slot slot) : call_(peer, slot_name(slot)) {
    if (&call_.device() == &call.device() || &call_.device().owner != &call.device().owner) {
      call.refuse(rule::kPeerDevice, "{} is {}; pass another device of this plugin", call_.device().name,
                  &call_.device() == &call.device() ? "the device itself" : "of another plugin");
    }
  }
  Call& call() { return call_; }
  CheckedDevice& device() const { return call_.device(); }
  // Refuses the call unless peer_enable has enabled this peer for the device of `call`.
  void require_enabled(const Call& call) const {
    const std::lock_guard lock(call.device().mutex);
    const auto& enabled = call.device().enabled;
    if (std::find(enabled.begin(), enabled.end(), device().serial) != enabled.end()) return;
    call.refuse(rule::kPeerEnabled, "{} was not enabled for this device; call peer_enable first", device().name);
  }
  // Finds an object of the peer. Until the call returns, no other call may destroy the object.
  template <class Handle>
  auto& occupy(const Handle* handle, const char* role) {
    const std::lock_guard lock(device().mutex);
    auto& state = call_.object(handle, role);
    call_.occupy(state.calls);
    return state;
  }

 private:
  Call call_;
};

bp_status peer_query(bp_device* handle, bp_device* peer, uint32_t* out, bp_error* error) {
  if (out != nullptr) *out = 0;
  return checked(handle, Slot::peer_query, error, [&](Call& call) {
    call.need(out, "out");
    const Peer other(call, peer, Slot::peer_query);
    const auto function = peer_slot(call, Slot::peer_query, &bp_peer_api::peer_query);
    Outcome outcome = call.forward(Slot::peer_query, [&](const bp_device_api&, bp_device* inner, bp_error* record) {
      return function(inner, other.device().inner, out, record);
    });
    const std::lock_guard lock(call.device().mutex);
    call.note(outcome, nullptr);
    return outcome.write(error);
  });
}

bp_status peer_enable(bp_device* handle, bp_device* peer, bp_error* error) {
  return checked(handle, Slot::peer_enable, error, [&](Call& call) {
    const Peer other(call, peer, Slot::peer_enable);
    const auto function = peer_slot(call, Slot::peer_enable, &bp_peer_api::peer_enable);
    {
      const std::lock_guard lock(call.device().mutex);
      call.device().enabled.reserve(call.device().enabled.size() + call.device().calls);
    }
    Outcome outcome = call.forward(Slot::peer_enable, [&](const bp_device_api&, bp_device* inner, bp_error* record) {
      return function(inner, other.device().inner, record);
    });
    const std::lock_guard lock(call.device().mutex);
    call.note(outcome, nullptr);
    auto& enabled = call.device().enabled;
    const uint64_t serial = other.device().serial;
    if (outcome.ok() && std::find(enabled.begin(), enabled.end(), serial) == enabled.end()) enabled.push_back(serial);
    return outcome.write(error);
  });
}

bp_status peer_copy(bp_device* handle, bp_stream* stream, bp_device* dst_device, bp_buffer* dst, uint64_t dst_offset,
                    bp_device* src_device, bp_buffer* src, uint64_t src_offset, uint64_t bytes, bp_error* error) {
  return checked(handle, Slot::peer_copy, error, [&](Call& call) {
    const bool into_peer = dst_device != handle;
    if (into_peer == (src_device != handle)) {
      call.refuse(rule::kPeerDevice, "{} of the two devices is this device; pass this device and one peer",
                  into_peer ? "neither" : "each");
    }
    Peer other(call, into_peer ? dst_device : src_device, Slot::peer_copy);
    other.require_enabled(call);
    const CheckedBuffer& foreign = other.occupy(into_peer ? dst : src, into_peer ? "destination" : "source");
    CheckedStream* line = nullptr;
    std::vector<CheckedBuffer*> buffers;
    {
      const std::lock_guard lock(call.device().mutex);
      CheckedBuffer& own = call.object(into_peer ? src : dst, into_peer ? "source" : "destination");
      const CheckedBuffer& to = into_peer ? foreign : own;
      const CheckedBuffer& from = into_peer ? own : foreign;
      check_range(call, to, "destination", dst_offset, bytes);
      check_range(call, from, "source", src_offset, bytes);
      check_kinds(call, to, from);
      line = &call.occupy_stream(stream);
      buffers = {&own};
      occupy_buffers(call, buffers);
    }
    const auto function = peer_slot(call, Slot::peer_copy, &bp_peer_api::peer_copy);
    bp_device* const far = other.device().inner;
    Outcome outcome = call.forward(Slot::peer_copy, [&](const bp_device_api&, bp_device* inner, bp_error* record) {
      return function(inner, stream, into_peer ? far : inner, dst, dst_offset, into_peer ? inner : far, src, src_offset,
                      bytes, record);
    });
    const std::lock_guard lock(call.device().mutex);
    call.note(outcome, line);
    if (outcome.ok()) use_buffers(call, *line, buffers);
    return outcome.write(error);
  });
}

bp_status peer_map(bp_device* handle, bp_device* peer, bp_buffer* buffer, uint32_t* out_kind, bp_buffer** out,
                   bp_error* error) {
  if (out != nullptr) *out = nullptr;
  return checked(handle, Slot::peer_map, error, [&](Call& call) {
    call.need(out, "out");
    call.need(out_kind, "out_kind");
    Peer other(call, peer, Slot::peer_map);
    other.require_enabled(call);
    const CheckedBuffer& source = other.occupy(buffer, "buffer");
    const auto function = peer_slot(call, Slot::peer_map, &bp_peer_api::peer_map);
    bp_buffer* made = nullptr;
    uint32_t kind = UINT32_MAX;
    Outcome outcome = create(call, Slot::peer_map, &made,
                             [&](const bp_device_api&, bp_device* inner, bp_buffer** created, bp_error* record) {
                               return function(inner, other.device().inner, buffer, &kind, created, record);
                             });
    if (outcome.ok() && (kind >= BP_MEMORY_KINDS || (call.device().info.memory_kinds >> kind & 1u) == 0)) {
      call.blame(outcome, rule::kForeignKind, "gave a buffer of kind {}; report it to the plugin's author", kind);
    }
    CheckedBuffer state;
    state.kind = kind;
    state.bytes = source.bytes;
    state.alignment = source.alignment;
    state.imported = true;
    *out = keep(call, outcome, made, std::move(state));
    if (*out != nullptr) *out_kind = kind;
    return outcome.write(error);
  });
}

bp_status peer_wait_event(bp_device* handle, bp_stream* stream, bp_device* peer, bp_event* event, bp_error* error) {
  return checked(handle, Slot::peer_wait_event, error, [&](Call& call) {
    Peer other(call, peer, Slot::peer_wait_event);
    other.require_enabled(call);
    (void)other.occupy(event, "event");
    CheckedStream* line = nullptr;
    {
      const std::lock_guard lock(call.device().mutex);
      line = &call.occupy_stream(stream);
    }
    const auto function = peer_slot(call, Slot::peer_wait_event, &bp_peer_api::peer_wait_event);
    Outcome outcome =
        call.forward(Slot::peer_wait_event, [&](const bp_device_api&, bp_device* inner, bp_error* record) {
          return function(inner, stream, other.device().inner, event, record);
        });
    const std::lock_guard lock(call.device().mutex);
    call.note(outcome, line);
    if (outcome.ok()) (void)call.device().ledger.enqueue(line->line);
    return outcome.write(error);
  });
}

}  // namespace

void splice_peer(CheckedPlugin& plugin) {
  bp_peer_api& peer = plugin.peer;
  peer.peer_query = peer_query;
  peer.peer_enable = peer_enable;
  peer.peer_copy = peer_copy;
  peer.peer_map = peer_map;
  peer.peer_wait_event = peer_wait_event;
}

}  // namespace backplane::core::layers
