// SPDX-License-Identifier: Apache-2.0
// Defects of bp.peer: wrong uses, copies, maps and waits between two devices.
#include <cstring>

#include "mutation.hpp"

namespace backplane::conformance::mutants {
namespace {

constexpr const bp_peer_api& kHonestPeer = PeerTable<HostDevice>::table;

// Implements get_interface. Returns a table of bp.peer in which kRun replaces the slot kSlot.
template <auto kSlot, auto kRun>
const void* changed_peer(const bp_plugin* plugin, bp_device* device, const char* name, uint32_t version) {
  static const bp_peer_api table = [] {
    bp_peer_api copy = kHonestPeer;
    copy.*kSlot = kRun;
    return copy;
  }();
  const void* honest = honest_plugin().get_interface(plugin, device, name, version);
  return honest != nullptr && std::string_view(name) == BP_INTERFACE_PEER ? &table : honest;
}
template <auto kSlot, auto kRun>
constexpr Mutation on_peer() {
  return {.plugin = [](bp_plugin& plugin) { plugin.get_interface = changed_peer<kSlot, kRun>; }};
}

bp_status unknown_use(bp_device* device, bp_device* peer, uint32_t* out, bp_error* error) {
  const bp_status status = kHonestPeer.peer_query(device, peer, out, error);
  if (status == BP_OK) *out |= 16;
  return status;
}
bp_status uses_forgotten(bp_device* device, bp_device* peer, uint32_t* out, bp_error* error) {
  static std::atomic<uint32_t> calls{0};
  const bp_status status = kHonestPeer.peer_query(device, peer, out, error);
  if (status == BP_OK && calls.fetch_add(1) % 3 == 2) *out = BP_PEER_COPY;
  return status;
}
bp_status itself_queried(bp_device* device, bp_device* peer, uint32_t* out, bp_error* error) {
  if (device == nullptr || device != peer || out == nullptr) return kHonestPeer.peer_query(device, peer, out, error);
  *out = BP_PEER_COPY;
  return BP_OK;
}
bp_status enabled_once(bp_device* device, bp_device* peer, bp_error* error) {
  static std::atomic<uint32_t> calls{0};
  const bp_status status = kHonestPeer.peer_enable(device, peer, error);
  if (status != BP_OK || calls.fetch_add(1) == 0) return status;
  return report(error, BP_INVALID_ARGUMENT, "peer_enable: the peer is already enabled");
}

// The arguments of peer_copy.
struct PeerArguments {
  bp_device* device;
  bp_stream* stream;
  bp_device* dst_device;
  bp_buffer* dst;
  uint64_t to;
  bp_device* src_device;
  bp_buffer* src;
  uint64_t from, bytes;
  bool legal() const {
    return device != nullptr && stream != nullptr && dst_device != nullptr && src_device != nullptr && dst != nullptr &&
           src != nullptr && dst_device != src_device;
  }
  bp_status honest(bp_error* error) const {
    return kHonestPeer.peer_copy(device, stream, dst_device, dst, to, src_device, src, from, bytes, error);
  }
};
// Implements peer_copy with kChange, which returns the slot's status.
template <bp_status (*kChange)(PeerArguments&, bp_error*)>
bp_status changed_copy(bp_device* device, bp_stream* stream, bp_device* dst_device, bp_buffer* dst, uint64_t to,
                       bp_device* src_device, bp_buffer* src, uint64_t from, uint64_t bytes, bp_error* error) {
  PeerArguments given{device, stream, dst_device, dst, to, src_device, src, from, bytes};
  return given.legal() ? kChange(given, error) : given.honest(error);
}
template <bp_status (*kChange)(PeerArguments&, bp_error*)>
constexpr Mutation on_peer_copy() {
  return on_peer<&bp_peer_api::peer_copy, changed_copy<kChange>>();
}

bool fits(const PeerArguments& copy) {
  const uint64_t to = buffer_of(copy.dst).span.bytes, from = buffer_of(copy.src).span.bytes;
  return copy.to <= to && copy.bytes <= to - copy.to && copy.from <= from && copy.bytes <= from - copy.from;
}

template <void (*kSpoil)(HostBuffer&, uint32_t&)>
bp_status mapped_otherwise(bp_device* device, bp_device* peer, bp_buffer* buffer, uint32_t* out_kind, bp_buffer** out,
                           bp_error* error) {
  const bp_status status = kHonestPeer.peer_map(device, peer, buffer, out_kind, out, error);
  if (status == BP_OK) kSpoil(buffer_of(*out), *out_kind);
  return status;
}

bp_status wait_forgotten(bp_device* device, bp_stream* stream, bp_device* peer, bp_event* event, bp_error* error) {
  if (stream == nullptr || event == nullptr || peer == nullptr || peer == device)
    return kHonestPeer.peer_wait_event(device, stream, peer, event, error);
  return BP_OK;
}
bp_status wait_for_nothing_recorded(bp_device* device, bp_stream* stream, bp_device* peer, bp_event* event,
                                    bp_error* error) {
  if (stream == nullptr || event == nullptr || peer == nullptr || event_of(event).latest().timeline != nullptr)
    return kHonestPeer.peer_wait_event(device, stream, peer, event, error);
  return report(error, BP_INVALID_ARGUMENT, "peer_wait_event: the event was never recorded");
}

}  // namespace

const Mutation defect::peer_unknown_use = on_peer<&bp_peer_api::peer_query, unknown_use>();
const Mutation defect::peer_uses_forgotten = on_peer<&bp_peer_api::peer_query, uses_forgotten>();
const Mutation defect::peer_of_itself = on_peer<&bp_peer_api::peer_query, itself_queried>();
const Mutation defect::peer_enabled_once = on_peer<&bp_peer_api::peer_enable, enabled_once>();
const Mutation defect::peer_copy_reversed = on_peer_copy<[](PeerArguments& copy, bp_error* error) {
  std::swap(copy.dst_device, copy.src_device);
  std::swap(copy.dst, copy.src);
  std::swap(copy.to, copy.from);
  return copy.honest(error);
}>();
const Mutation defect::peer_copy_of_words = on_peer_copy<[](PeerArguments& copy, bp_error* error) {
  copy.bytes = copy.bytes / 4 * 4;
  return copy.honest(error);
}>();
const Mutation defect::peer_copy_to_the_start = on_peer_copy<[](PeerArguments& copy, bp_error* error) {
  if (copy.dst_device != copy.device && fits(copy)) copy.to = 0;
  return copy.honest(error);
}>();
const Mutation defect::peer_copy_cut = on_peer_copy<[](PeerArguments& copy, bp_error* error) {
  return fits(copy) ? copy.honest(error) : bp_status{BP_OK};
}>();
const Mutation defect::peer_copy_of_host = on_peer_copy<[](PeerArguments& copy, bp_error* error) {
  const bool both = buffer_of(copy.dst).kind == BP_MEMORY_HOST && buffer_of(copy.src).kind == BP_MEMORY_HOST;
  return both ? bp_status{BP_OK} : copy.honest(error);
}>();
const Mutation defect::peer_copy_at_once = on_peer_copy<[](PeerArguments& copy, bp_error* error) {
  if (!fits(copy)) return copy.honest(error);
  std::memcpy(buffer_of(copy.dst).span.address + copy.to, buffer_of(copy.src).span.address + copy.from, copy.bytes);
  return bp_status{BP_OK};
}>();
const Mutation defect::peer_copy_waits = on_peer_copy<[](PeerArguments& copy, bp_error* error) {
  const bp_status status = copy.honest(error);
  if (status == BP_OK) (void)stream_of(copy.stream).wait(BP_WAIT_FOREVER);
  return status;
}>();
const Mutation defect::peer_wait_forgotten = on_peer<&bp_peer_api::peer_wait_event, wait_forgotten>();
const Mutation defect::peer_wait_unrecorded = on_peer<&bp_peer_api::peer_wait_event, wait_for_nothing_recorded>();
const Mutation defect::peer_map_copies =
    on_peer<&bp_peer_api::peer_map, mapped_otherwise<[](HostBuffer& made, uint32_t&) {
      auto* copy = static_cast<std::byte*>(::operator new(made.span.bytes, std::align_val_t{64}));
      std::memcpy(copy, made.span.address, made.span.bytes);
      made.span.address = copy;
    }>>();
const Mutation defect::peer_map_owns =
    on_peer<&bp_peer_api::peer_map,
            mapped_otherwise<[](HostBuffer& made, uint32_t&) { made.alignment = HostMemory::kAlignment; }>>();
const Mutation defect::peer_map_of_no_kind =
    on_peer<&bp_peer_api::peer_map, mapped_otherwise<[](HostBuffer&, uint32_t& kind) { kind = BP_MEMORY_KINDS; }>>();

}  // namespace backplane::conformance::mutants
