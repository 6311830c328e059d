// SPDX-License-Identifier: Apache-2.0
// The C table of the interface "bp.peer", implemented by a C++ device class. `peer` is another
// device of the class. The interface exists if the class has the method peer_uses.
//   Result<uint32_t> peer_uses(Device& peer);
//       Returns a mask of BP_PEER_*.
//   Status enable_peer(Device& peer);
//       Optional. Called only if peer_uses returned at least one use.
//   Status peer_copy(Stream&, Device& dst_device, Buffer& dst, uint64_t dst_offset, Device& src_device,
//                    Buffer& src, uint64_t src_offset, uint64_t bytes);
//       Optional. One of the two devices is this device.
//   Result<Buffer*> map_peer(Device& peer, Buffer&, uint32_t& kind);
//       Optional. The buffer belongs to the peer.
//   Status wait_peer_event(Stream&, Device& peer, Event&);
//       Optional. The event belongs to the peer.
#pragma once

#include <backplane/kit/slot.hpp>

namespace backplane::kit {

template <class Device>
class PeerTable : DeviceSlots<Device> {
  using Slots = DeviceSlots<Device>;
  using Slots::of;
  using Slots::slot;
  using typename Slots::Buffer;
  using typename Slots::Event;
  using typename Slots::Stream;

  static constexpr bool kEnables = requires(Device& d) { d.enable_peer(d); };
  static constexpr bool kCopies =
      requires(Device& d, Stream& stream, Buffer& buffer) { d.peer_copy(stream, d, buffer, 0u, d, buffer, 0u, 0u); };
  static constexpr bool kMaps = requires(Device& d, Buffer& buffer, uint32_t& kind) { d.map_peer(d, buffer, kind); };
  static constexpr bool kWaits =
      requires(Device& d, Stream& stream, Event& event) { d.wait_peer_event(stream, d, event); };

  static Status check_two(const char* name, const bp_device* device, const bp_device* peer) {
    if (device != peer) return {};
    return invalid_argument(name, ": the device is no peer of itself; pass another open device");
  }

  static bp_status peer_query(bp_device* device, bp_device* peer, uint32_t* out, bp_error* error) {
    return slot(
        error, "peer_query",
        [&]() -> Status {
          if (out == nullptr) return invalid_argument("peer_query: the pointer for the result is null");
          *out = 0;
          if (Status status = check_two("peer_query", device, peer); !status.ok()) return status;
          auto uses = of(device).peer_uses(of(peer));
          if (uses.ok()) *out = uses.value();
          return uses.status();
        },
        device, peer);
  }

  static bp_status peer_enable(bp_device* device, bp_device* peer, bp_error* error) {
    return slot(
        error, "peer_enable",
        [&]() -> Status {
          if (Status status = check_two("peer_enable", device, peer); !status.ok()) return status;
          auto uses = of(device).peer_uses(of(peer));
          if (!uses.ok()) return uses.status();
          if (uses.value() == 0) return unsupported("peer_enable: this device has no use for the objects of the peer");
          if constexpr (kEnables) return of(device).enable_peer(of(peer));
          return {};
        },
        device, peer);
  }

  static bp_status peer_copy(bp_device* device, bp_stream* stream, bp_device* dst_device, bp_buffer* dst,
                             uint64_t dst_offset, bp_device* src_device, bp_buffer* src, uint64_t src_offset,
                             uint64_t bytes, bp_error* error) {
    return slot(
        error, "peer_copy",
        [&]() -> Status {
          if (Status status = check_two("peer_copy", dst_device, src_device); !status.ok()) return status;
          if (device != dst_device && device != src_device) {
            return invalid_argument(
                "peer_copy: both buffers belong to other devices; call it for one of these devices");
          }
          return of(device).peer_copy(of(stream), of(dst_device), of(dst), dst_offset, of(src_device), of(src),
                                      src_offset, bytes);
        },
        device, stream, dst_device, dst, src_device, src);
  }

  static bp_status peer_map(bp_device* device, bp_device* peer, bp_buffer* buffer, uint32_t* out_kind, bp_buffer** out,
                            bp_error* error) {
    return fence_out(device, out, error, [&]() -> Result<Buffer*> {
      if (peer == nullptr || buffer == nullptr) return invalid_argument("peer_map: a handle is null");
      if (Status status = check_two("peer_map", device, peer); !status.ok()) return status;
      uint32_t kind = 0;
      auto result = of(device).map_peer(of(peer), of(buffer), kind);
      if (result.ok() && out_kind != nullptr) *out_kind = kind;
      return result;
    });
  }

  static bp_status peer_wait_event(bp_device* device, bp_stream* stream, bp_device* peer, bp_event* event,
                                   bp_error* error) {
    return slot(
        error, "peer_wait_event",
        [&]() -> Status {
          if (Status status = check_two("peer_wait_event", device, peer); !status.ok()) return status;
          return of(device).wait_peer_event(of(stream), of(peer), of(event));
        },
        device, stream, peer, event);
  }

  static constexpr bp_peer_api make() {
    bp_peer_api api{};
    api.struct_size = sizeof(bp_peer_api);
    api.peer_query = peer_query;
    api.peer_enable = peer_enable;
    if constexpr (kCopies) api.peer_copy = peer_copy;
    if constexpr (kMaps) api.peer_map = peer_map;
    if constexpr (kWaits) api.peer_wait_event = peer_wait_event;
    return api;
  }

 public:
  static constexpr bp_peer_api table = make();
};

// Whether a device class implements "bp.peer".
template <class Device>
constexpr bool kHasPeers = requires(Device& d) { d.peer_uses(d); };

}  // namespace backplane::kit
